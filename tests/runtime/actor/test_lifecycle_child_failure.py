"""What becomes of a failed child, when its parent decides by `on_child_failure`: right, wrong, slow
and late decisions.
"""

import asyncio
import itertools

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    Backoff,
    Directive,
    Escalate,
    Restart,
    Resume,
    Stop,
    UsageError,
)

AT_ONCE = Restart(backoff=Backoff(initial=0))


@pytest.fixture
def child(kind):
    class Child(kind):
        made = 0

        def __init__(self, fail_to_start=False):
            super().__init__()
            type(self).made += 1
            self.number = type(self).made
            self.fail_to_start = fail_to_start and self.number == 1

        def on_start(self):
            if self.fail_to_start:
                raise ValueError("on_start")

        def on_receive(self, message):
            if isinstance(message, BaseException):
                raise message
            return self.number

        def on_stop(self):
            if getattr(type(self), "fails_to_stop", False):
                raise ValueError("on_stop")

    return Child


@pytest.fixture
def parent(kind):
    """Spawns children, fails on request, and lets a function decide."""

    class Parent(kind):
        made = 0

        def __init__(self, decide, asked):
            super().__init__()
            type(self).made += 1
            self.number = type(self).made
            self.decide, self.asked = decide, asked

        def on_receive(self, message):
            if isinstance(message, type):
                return self.spawn(message)
            if isinstance(message, tuple):
                return self.spawn(*message[:-1], **message[-1])
            if isinstance(message, BaseException):
                raise message
            return self.number

        def on_child_failure(self, ref, error):
            self.asked.append((ref, error))
            decision = self.decide(ref, error)
            return super().on_child_failure(ref, error) if decision == "super" else decision

    return Parent


# --- right decisions ---


@pytest.mark.parametrize(
    ("directive", "reply"), [(AT_ONCE, 2), (Resume(), 1), (Stop(), None), (Escalate(), None)]
)
def test_the_parent_is_asked_once_and_what_it_says_is_done(run, parent, child, directive, reply):
    async def main():
        async with ActorSystem() as system:
            top = system.spawn(
                parent, lambda ref, error: directive, asked := [], supervision=Resume()
            )
            ref = await top.request(child)
            error = ValueError("x")
            ref.tell(error)
            if reply is None:
                await ref.wait_stopped()
            else:
                assert await ref.request("m") == reply
            assert await top.request("m") == 1
            assert asked == [(ref, error)]
            assert asked[0][1] is error

    run(main())


def test_a_parent_can_decide_by_ref_and_by_error(run, parent, child):
    fates = {}

    def decide(ref, error):
        return fates[ref] if isinstance(error, ValueError) else AT_ONCE

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, decide, [])
            kept, dropped = await top.request(child), await top.request(child)
            fates.update({kept: Resume(), dropped: Stop()})
            kept.tell(ValueError())
            assert await kept.request("m") == 1
            kept.tell(KeyError())
            assert await kept.request("m") == 3
            dropped.tell(ValueError())
            await dropped.wait_stopped()

    run(main())


def test_the_decision_of_the_parent_overrides_what_was_said_at_the_spawn(run, parent, child):
    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: Resume(), [])
            ref = await top.request((child, {"supervision": Stop()}))
            ref.tell(ValueError())
            assert await ref.request("m") == 1

    run(main())


@pytest.mark.parametrize(("supervision", "lives"), [(Resume(), True), (None, False)])
def test_a_parent_can_leave_the_decision_to_what_was_said_at_the_spawn(
    run, parent, child, supervision, lives
):
    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: "super", [])
            ref = await top.request((child, {"supervision": supervision}))
            ref.tell(ValueError())
            if lives:
                assert await ref.request("m") == 1
            else:
                await ref.wait_stopped()

    run(main())


def test_a_decision_may_be_asynchronous_and_messages_wait_for_it(run, parent, child, gate):
    async def decide(ref, error):
        await gate.wait()
        return AT_ONCE

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, decide, asked := [])
            ref = await top.request(child)
            ref.tell(ValueError())
            await gate.reached()
            reply = ref.ask("m", block=False)
            assert ref.is_alive()
            assert system.stats().by_class_and_state["Child", "suspended"] == 1
            gate.open()
            assert await reply == 2
            assert len(asked) == 1

    run(main())


def test_children_that_fail_together_are_decided_one_by_one(run, parent, child):
    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: Resume(), asked := [])
            refs = [await top.request(child) for _ in range(10)]
            for ref in refs:
                ref.tell(ValueError())
            assert [await ref.request("m") for ref in refs] == list(range(1, 11))
            assert {ref for ref, _ in asked} == set(refs)
            assert len(asked) == 10

    run(main())


def test_a_child_that_fails_in_on_start_is_decided_too(run, parent, child):
    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: AT_ONCE, asked := [])
            ref = await top.request((child, {"fail_to_start": True}))
            assert await ref.request("m") == 2
            assert [str(error) for _, error in asked] == ["on_start"]

    run(main())


def test_a_child_that_fails_in_on_stop_has_stopped_all_the_same_and_its_parent_hears_of_it(
    run, parent, child, errors
):
    child.fails_to_stop = True

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: AT_ONCE, asked := [])
            ref = await top.request(child)
            assert await ref.stop() is True
            assert [(str(ref), str(error)) for ref, error in asked] == [(str(ref), "on_stop")]
            assert await top.request("m") == 1
            assert child.made == 1

    run(main())
    assert len(errors()) == 1


# --- wrong decisions ---


@pytest.mark.parametrize(
    "how",
    list(
        itertools.product(
            [ZeroDivisionError, asyncio.CancelledError, KeyboardInterrupt], [False, True]
        )
    ),
    ids=lambda how: f"{how[0].__name__}-{how[1]}",
)
def test_a_decision_that_raises_stops_the_child_and_fails_the_parent(
    run, parent, child, errors, how
):
    problem, asynchronous = how

    def decide(ref, error):
        raise problem("in the decision")

    async def decide_asynchronously(ref, error):
        raise problem("in the decision")

    async def main():
        async with ActorSystem() as system:
            over, told = [], []
            grandparent = system.spawn(parent, lambda ref, error: Resume(), over)
            top = await grandparent.request(
                (parent, decide_asynchronously if asynchronous else decide, told, {"name": "top"})
            )
            ref = await top.request((child, {"name": "child"}))
            ref.tell(ValueError())
            await ref.wait_stopped()
            assert await top.request("m") == 2, "resumed, as its own parent has decided"
            assert [(each, type(error)) for each, error in over] == [(top, problem)]
            assert len(told) == 1

    run(main())
    assert len(errors()) == 2
    assert "child failed in on_receive: ValueError" in errors()[0]
    assert f"top failed in on_child_failure: {problem.__name__}" in errors()[1]


@pytest.mark.parametrize("nonsense", [None, "restart", Restart, 1], ids=repr)
def test_a_decision_that_is_none_stops_the_child_and_fails_the_parent_with_a_word_of_advice(
    run, parent, child, errors, nonsense
):
    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: nonsense, [], name="top")
            ref = await top.request(child)
            ref.tell(ValueError())
            await ref.wait_stopped()
            await top.wait_stopped()

    run(main())
    assert len(errors()) == 2
    assert "Parent.on_child_failure() must return" in errors()[1]
    assert repr(nonsense) in errors()[1]
    for directive in Directive.__args__:
        assert directive.__name__ in errors()[1]


@pytest.mark.parametrize("nonsense", ["restart", Restart, Backoff(), 1], ids=repr)
def test_a_supervision_that_is_none_is_refused_at_the_spawn(run, parent, child, nonsense):
    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError, match="supervision must be") as caught:
                system.spawn(child, supervision=nonsense)
            assert "Restart(" in str(caught.value)
            top = system.spawn(parent, lambda ref, error: Resume(), [])
            with pytest.raises(UsageError, match="supervision must be"):
                await top.request((child, {"supervision": nonsense}))
            assert system.stats().actors == 1

    run(main())


# --- decisions that come while something else is under way ---


def test_a_child_stopped_before_its_parent_has_decided_stays_stopped(run, parent, child, gate):
    async def decide(ref, error):
        await gate.wait()
        return AT_ONCE

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, decide, [])
            ref = await top.request(child)
            ref.tell(ValueError())
            queued = ref.ask("m", block=False)
            await gate.reached()
            assert await ref.stop() is True
            with pytest.raises(ActorDeadError):
                await queued
            gate.open()
            assert await top.request("m") == 1
            assert child.made == 1

    run(main())


def test_leaving_the_system_does_not_wait_for_a_decision(run, child, gate):
    async def decide(ref, error):
        await gate.wait()

    class Undecided(Actor):
        def on_receive(self, message):
            return self.spawn(message)

        async def on_child_failure(self, ref, error):
            await decide(ref, error)

    async def main():
        async with ActorSystem() as system:
            ref = await system.spawn(Undecided).request(child)
            ref.tell(ValueError())
            queued = ref.ask("m", block=False)
            await gate.reached()
        with pytest.raises(ActorDeadError):
            await queued

    run(main())


def test_a_parent_that_stops_does_not_decide_any_more(run, parent, child, gate):
    class Slow(child):
        async def on_receive(self, message):
            await gate.wait()
            raise ValueError("too late")

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(parent, lambda ref, error: AT_ONCE, asked := [])
            ref = await top.request(Slow)
            ref.tell("fail slowly")
            await gate.reached()
            stopped = top.stop()
            while ref.is_alive():
                await asyncio.sleep(0)
            gate.open()
            assert await stopped is True
            assert asked == []
            assert Slow.made == 1

    run(main())
