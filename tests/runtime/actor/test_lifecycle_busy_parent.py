"""Parents that are in the middle of something when a child fails: also when what they wait for is
that very child.
"""

import asyncio

import pytest

from offbook.runtime import (
    Actor,
    ActorFailed,
    ActorSystem,
    Backoff,
    Escalate,
    Restart,
    Resume,
    Stop,
    ThreadActor,
)

AT_ONCE = Restart(max_restarts=5, backoff=Backoff(initial=0))


def of(kind, mixin):
    return type(mixin.__name__, (mixin, kind), {})


# --- parents in the middle of something ---


class Busy:
    """Holds a gate in its handler or in `on_start`, with a child that has been told to fail; then,
    if so told, fails itself.
    """

    def __init__(self, log, gate, where, fails):
        super().__init__()
        self.log, self.gate, self.where, self.fails = log, gate, where, fails
        log.append("init")

    async def on_start(self):
        if self.where == "on_start" and self.log.count("init") == 1:
            await self.hold()

    async def on_receive(self, message):
        if message == "hold":
            await self.hold()
        return self.log.count("init")

    async def hold(self):
        child = self.spawn(
            type("Child", (Actor,), {"on_receive": lambda self, message: 1 / 0}),
            supervision=Escalate(),
        )
        child.tell("fail")
        await self.gate.wait()
        await child.wait_stopped()
        self.log.append("held")
        if self.fails:
            raise ValueError("after the child")


@pytest.mark.parametrize(
    "case",
    [("handler", False), ("handler", True), ("on_start", False), ("on_start", True)],
    ids=str,
)
def test_an_escalation_waits_for_what_the_parent_is_at_and_is_one_failure(
    run, kind, gate, until, case
):
    where, fails = case
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Busy), log, gate, where, fails, supervision=AT_ONCE)
            if where == "handler":
                ref.tell("hold")
            await gate.reached()
            await until(lambda: system.stats().actors == 1)
            assert log == ["init"], "the child is gone, and the parent still at what it was at"
            gate.open()
            assert await ref.request("m") == 2
            assert await ref.request("m") == 2
            assert system.stats().restarts == 1

    run(main())
    assert log == ["init", "held", "init"]


@pytest.mark.parametrize("ending", ["stop", "leave"])
def test_an_escalation_to_a_parent_that_stops_meanwhile_is_only_logged(
    run, kind, gate, ending, until
):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Busy), log, gate, "handler", False, supervision=AT_ONCE)
            ref.tell("hold")
            await gate.reached()
            await until(lambda: system.stats().actors == 1)
            if ending == "stop":
                stopped = ref.stop()
                gate.open()
                assert await stopped is True

    run(main())
    assert log.count("init") == 1


# --- parents that wait for the child ---


class Asker:
    """Asks its child for something that makes it fail, and returns what came of it."""

    def __init__(self, fate):
        super().__init__()
        self.fate, self.asked = fate, 0

    def on_start(self):
        self.child = self.spawn(self.Child)

    def on_child_failure(self, ref, error):
        self.asked += 1
        return self.fate


@pytest.mark.parametrize(
    "fate", [AT_ONCE, Resume(), Stop(), Escalate()], ids=lambda fate: type(fate).__name__
)
@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_a_parent_that_awaits_the_reply_of_its_failing_child_gets_an_answer(
    run, kind, errors, fate, error
):
    class AwaitingAsker(Asker):
        class Child(kind):
            def on_receive(self, message):
                if message == "crash":
                    raise error
                return message

        async def on_receive(self, message):
            if message != "crash":
                return self.asked
            with pytest.raises(ActorFailed, match=error.__name__):
                await self.child.request("crash")
            return "answered"

    async def main():
        async with ActorSystem(stop_timeout=1) as system:
            ref = system.spawn(of(kind, AwaitingAsker), fate, supervision=Resume())
            assert await ref.request("crash", timeout=10) == "answered"
            while not await ref.request("how often asked?"):
                pass  # whoever asked may have been answered before the supervisor heard of it
            assert await ref.request("how often asked?") == 1

    run(main())
    assert len(errors()) == (2 if fate == Escalate() else 1), errors()


@pytest.mark.parametrize("how", ["awaits", "awaits in a thread", "blocks a thread"])
@pytest.mark.parametrize("where", ["handler", "on_start"])
def test_a_parent_that_waits_for_a_child_which_fails_before_it_comes_to_the_message_gets_an_answer(
    run, gate, until, how, where
):
    tries = []

    class Child(Actor):
        async def on_start(self):
            tries.append("on_start")
            if len(tries) == 1:
                await gate.wait()
                raise ValueError("the first time")

        def on_receive(self, message):
            return message

    class Waiting:
        reply = None

        def on_child_failure(self, ref, error):
            return AT_ONCE

    class Awaiting(Waiting):
        async def on_start(self):
            if where == "on_start":
                self.reply = await self.spawn(Child).request("m")

        async def on_receive(self, message):
            return self.reply or await self.spawn(Child).request(message)

    class Blocking(Waiting):
        def on_start(self):
            if where == "on_start":
                self.reply = self.spawn(Child).ask("m")

        def on_receive(self, message):
            return self.reply or self.spawn(Child).ask(message)

    async def main():
        async with ActorSystem(stop_timeout=0.1) as system:
            ref = system.spawn(
                of(
                    Actor if how == "awaits" else ThreadActor,
                    Blocking if how == "blocks a thread" else Awaiting,
                )
            )
            reply = asyncio.ensure_future(ref.request("m", timeout=3))
            await gate.reached()
            await until(lambda: any("Child" in path for path, _ in system.stats().deepest))
            gate.open()
            assert await reply == "m"

    run(main())
    assert len(tries) == 2


@pytest.mark.parametrize("how", ["asks", "awaits", "asks while it decides"])
def test_a_thread_that_waits_for_a_child_which_has_failed_before_gets_an_answer(
    run, gate, until, how
):
    class Child(Actor):
        def on_receive(self, message):
            return 1 / message

    class Parent:
        def fail(self, child):
            child.tell(0)
            gate.block()  # until the child has failed, and waits for a decision

        def on_child_failure(self, ref, error):
            if how == "asks while it decides" and self.other is not None:
                other, self.other = self.other, None
                self.fail(other)
                assert other.ask(1) == 1
            return Resume()

    class Asking(Parent, ThreadActor):
        def on_receive(self, message):
            child, self.other = self.spawn(Child), self.spawn(Child)
            self.fail(child)
            return child.ask(message)

    class Awaiting(Parent, ThreadActor):
        async def on_receive(self, message):
            child = self.spawn(Child)
            self.fail(child)
            return await child.request(message)

    async def main():
        async with ActorSystem(stop_timeout=0.1) as system:
            reply = asyncio.ensure_future(
                system.spawn(Awaiting if how == "awaits" else Asking).request(1, timeout=3)
            )
            await gate.reached()
            await until(lambda: "suspended" in system.stats().by_state)
            gate.open()
            assert await reply == 1

    run(main())


def test_a_decision_that_a_thread_has_not_come_to_survives_its_own_failure(run, new_gate, until):
    busy, deciding = new_gate(), new_gate()

    class Child(Actor):
        def on_receive(self, message):
            return 1 / message

    class Parent(ThreadActor):
        def on_receive(self, message):
            if message == "spawn":
                return self.spawn(Child)
            busy.block()
            raise ValueError("and the child has failed meanwhile")

        def on_child_failure(self, ref, error):
            return Resume()

    class Grandparent(Actor):
        def on_receive(self, message):
            return self.spawn(Parent)

        async def on_child_failure(self, ref, error):
            await deciding.wait()
            return Resume()

    async def main():
        async with ActorSystem() as system:
            parent = await system.spawn(Grandparent).request("spawn")
            child = await parent.request("spawn")
            parent.tell("fail")
            await busy.reached()
            child.tell(0)
            await until(lambda: system.stats().by_class_and_state.get(("Child", "suspended")))
            busy.open()
            await deciding.reached()
            deciding.open()
            assert await child.request(1, timeout=5) == 1

    run(main())
