"""Failures that climb the tree: who hears of them, in what order, and where they end."""

import asyncio

import pytest

from offbook.runtime import ActorSystem, Backoff, Escalate, Restart, Resume, Stop

AT_ONCE = Restart(max_restarts=5, backoff=Backoff(initial=0))


class Link:
    """One of a chain: spawns the next in `on_start`, and passes an error down to the last, which
    raises it.
    """

    def __init__(self, log, names, fates):
        super().__init__()
        self.log, self.names, self.fates = log, names, fates
        self.name = names[0]
        log.append(f"init {self.name}")

    def on_start(self):
        if self.names[1:]:
            self.next = self.spawn(
                type(self), self.log, self.names[1:], self.fates, name=self.names[1]
            )

    def on_receive(self, message):
        if message == "next":
            return self.next
        if not isinstance(message, BaseException):
            return f"{self.name} says {message}"
        if not self.names[1:]:
            raise message
        self.next.tell(message)

    def on_child_failure(self, ref, error):
        self.log.append(f"{self.name} hears of {ref.name}: {error}")
        return self.fates.get(ref.name, Escalate())

    def on_failure(self, kind, error, traceback):
        self.log.append(f"failure {self.name}: {error}")

    def on_stop(self):
        self.log.append(f"stop {self.name}")


def of(kind, mixin=Link):
    return type(mixin.__name__, (mixin, kind), {})


async def last(ref, name):
    """The last one of the chain, when all of it is there."""
    while ref.name != name:
        ref = await ref.request("next")
    return ref


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt("x")], ids=repr)
def test_an_error_climbs_level_by_level_until_somebody_keeps_the_actor(run, kind, errors, error):
    log = []

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(of(kind), log, ("a", "b", "c", "d"), {"b": AT_ONCE}, name="a")
            middle, bottom = await top.request("next"), await last(top, "d")
            above = await middle.request("next")
            log.clear()
            top.tell(error)
            await bottom.wait_stopped()
            # So that its failure has reached the middle one before the next message does.
            await above.wait_stopped()
            await last(middle, "d")
            assert await top.request("next") == middle, "a kept b, as it was told to"
            assert await middle.request("hello") == "b says hello"
            assert system.stats().actors == 4

    run(main())
    assert [entry for entry in log if "hears" in entry] == [
        "c hears of d: x",
        "b hears of c: x",
        "a hears of b: x",
    ]
    assert [entry for entry in log if "failure" in entry] == [
        "failure d: x",
        "failure c: x",
        "failure b: x",
    ]
    assert [entry for entry in log if "init" in entry] == ["init b", "init c", "init d"]
    assert len(errors()) == 3, "one for each actor that failed"


def test_an_error_that_nobody_keeps_stops_the_root_and_nobody_beside_it(run, kind, errors):
    log = []

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(of(kind), log, ("a", "b", "c"), {}, name="a", supervision=Escalate())
            await last(top, "c")
            other = system.spawn(of(kind), [], ("other",), {})
            top.tell(ValueError("x"))
            await top.wait_stopped()
            assert await other.request("hello") == "other says hello"
            assert system.stats().actors == 1

    run(main())
    assert [entry for entry in log if "failure" in entry] == [
        "failure c: x",
        "failure b: x",
        "failure a: x",
    ]
    assert len(errors()) == 3


def test_the_error_that_arrives_is_the_very_one_that_was_raised(run, kind):
    heard = []

    class Listener(kind):
        def on_receive(self, message):
            return self.spawn(of(kind), [], ("a", "b"), {})

        def on_child_failure(self, ref, error):
            heard.append(error)
            return Stop()

    async def main():
        error = ValueError("x")
        async with ActorSystem() as system:
            ref = await system.spawn(Listener).request("spawn")
            ref.tell(error)
            await ref.wait_stopped()
        assert heard[0] is error

    run(main())


def test_a_parent_that_is_resumed_goes_on_without_the_child(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(of(kind), log, ("a", "b"), {}, name="a", supervision=Resume())
            child = await top.request("next")
            top.tell(ValueError("x"))
            await child.wait_stopped()
            assert await top.request("hello") == "a says hello"
            assert log == ["init a", "init b", "a hears of b: x", "failure b: x"]

    run(main())
