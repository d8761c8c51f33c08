"""Beginning and end of a life: the order of the hooks, children before parents, who may still
spawn. Restarts: test_lifecycle_restart.py.
"""

import asyncio

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, Stop


class Sync:
    """Writes down which of its hooks are called."""

    def __init__(self, log, label=""):
        super().__init__()
        self.log, self.label = log, label

    def on_start(self):
        self.log.append(f"{self.label}on_start")

    def on_receive(self, message):
        self.log.append(f"{self.label}{message}")
        return message

    def on_stop(self):
        self.log.append(f"{self.label}on_stop")

    def on_failure(self, kind, error, traceback):
        self.log.append(f"{self.label}on_failure({error})")


class Async:
    """The same with asynchronous hooks, which say when they begin and when they end."""

    def __init__(self, log, label=""):
        super().__init__()
        self.log, self.label = log, label

    async def on_start(self):
        await self.slowly("on_start")

    async def on_receive(self, message):
        await self.slowly(message)
        return message

    async def on_stop(self):
        await self.slowly("on_stop")

    async def slowly(self, what):
        self.log.append(f"{self.label}{what} begins")
        await asyncio.sleep(0)
        self.log.append(f"{self.label}{what}")


def of(kind, mixin):
    return type(mixin.__name__, (mixin, kind), {})


# --- one life ---


def test_hooks_are_called_in_the_order_of_a_life(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Sync), log)
            ref.tell("a")
            assert await ref.request("b") == "b"
            assert await ref.stop() is True

    run(main())
    assert log == ["on_start", "a", "b", "on_stop"]


def test_asynchronous_hooks_and_handlers_end_before_the_next_one_begins(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Async), log)
            ref.tell("a")
            await ref.request("b")
            await ref.stop()

    run(main())
    assert log == [
        step for what in ("on_start", "a", "b", "on_stop") for step in (f"{what} begins", what)
    ]


def test_leaving_the_system_calls_on_stop_of_everybody(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            for label in "xyz":
                await system.spawn(of(kind, Sync), log, label).request("m")
            log.clear()
        assert sorted(log) == ["xon_stop", "yon_stop", "zon_stop"]

    run(main())


def test_an_actor_without_hooks_lives_and_stops_like_any_other(run, kind):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(
                type("Plain", (kind,), {"on_receive": lambda self, message: message})
            )
            assert await ref.request(1) == 1
            assert await ref.stop() is True
            assert not ref.is_alive()

    run(main())


def test_messages_wait_until_on_start_has_ended(run, kind, gate):
    class Slow(Sync):
        async def on_start(self):
            await gate.wait()
            self.log.append("on_start")

    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Slow), log)
            reply = asyncio.ensure_future(ref.request("a"))
            await gate.reached()
            assert ref.is_alive()
            assert system.stats().by_state == {"starting": 1}
            assert log == []
            gate.open()
            await reply

    run(main())
    assert log == ["on_start", "a", "on_stop"]


def test_start_and_stop_are_paired_also_when_it_is_stopped_at_once(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Sync), log)
            ref.tell("never handled")
            assert await ref.stop() is True

    run(main())
    assert log == ["on_start", "on_stop"]


def test_a_stop_during_on_start_waits_for_it_and_then_calls_on_stop(run, kind, gate):
    class Slow(Sync):
        async def on_start(self):
            await gate.wait()
            self.log.append("on_start")

    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Slow), log)
            await gate.reached()
            ref.tell("never handled")
            stopped = ref.stop()
            assert not ref.is_alive()
            gate.open()
            assert await stopped is True

    run(main())
    assert log == ["on_start", "on_stop"]


def test_a_stop_lets_the_handler_under_way_end_before_on_stop(run, kind, gate):
    class Slow(Sync):
        async def on_receive(self, message):
            await gate.wait()
            return super().on_receive(message)

    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Slow), log)
            under_way = asyncio.ensure_future(ref.request("under way"))
            await gate.reached()
            queued = ref.ask("queued", block=False)
            stopped = ref.stop()
            with pytest.raises(ActorDeadError):
                await queued
            gate.open()
            assert await under_way == "under way"
            assert await stopped is True

    run(main())
    assert log == ["on_start", "under way", "on_stop"]


def test_leaving_the_system_cancels_the_handler_under_way_and_still_calls_on_stop(
    run, kind, gate, errors
):
    class Slow(Sync):
        async def on_receive(self, message):
            await gate.wait()

    log = []

    async def main():
        async with ActorSystem() as system:
            reply = system.spawn(of(kind, Slow), log, name="slow").ask("work", block=False)
            await gate.reached()
        with pytest.raises(ActorDeadError, match=r"slow.*on_receive"):
            await reply

    run(main())
    assert log == ["on_start", "on_stop"]
    assert errors() == []


def test_leaving_the_system_right_after_a_spawn_ends_at_once(run, kind, errors):
    log = []

    async def main():
        async with ActorSystem(stop_timeout=5) as system:
            refs = [
                system.spawn(of(kind, mixin), log, supervision=Stop())
                for mixin in (Sync, Async)
                for _ in range(3)
            ]
            replies = [ref.ask("never handled", block=False) for ref in refs]
        for reply in replies:
            with pytest.raises(ActorDeadError):
                await reply

    run(main())
    assert errors() == []
    assert "never handled" not in log


def test_an_actor_that_stops_itself_ends_the_handler_and_handles_nothing_more(run, kind):
    class Quitter(Sync):
        def on_receive(self, message):
            self.stop()
            return super().on_receive(message)

    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Quitter), log)
            first, second = ref.ask("first", block=False), ref.ask("second", block=False)
            assert await first == "first"
            with pytest.raises(ActorDeadError):
                await second
            await ref.wait_stopped()

    run(main())
    assert log == ["on_start", "first", "on_stop"]


def test_on_stop_may_ask_an_actor_that_still_lives(run, kind):
    class Clerk(Sync):
        async def on_stop(self):
            self.log.append(await self.log[0].request("last words"))

    log = []

    async def main():
        async with ActorSystem() as system:
            log.append(
                system.spawn(type("Echo", (Actor,), {"on_receive": lambda self, message: message}))
            )
            ref = system.spawn(of(kind, Clerk), log)
            await ref.stop()

    run(main())
    assert log[1:] == ["on_start", "last words"]


def test_cancel_is_for_handlers_and_leaves_hooks_alone(run, kind, new_gate, errors):
    starting, stopping = new_gate(), new_gate()

    class Slow(Sync):
        async def on_start(self):
            await starting.wait()
            self.log.append("on_start")

        async def on_stop(self):
            await stopping.wait()
            self.log.append("on_stop")

    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Slow), log)
            await starting.reached()
            ref.cancel()
            starting.open()
            assert await ref.request("a") == "a"
            stopped = ref.stop()
            await stopping.reached()
            ref.cancel()
            stopping.open()
            await stopped

    run(main())
    assert log == ["on_start", "a", "on_stop"]
    assert errors() == []
