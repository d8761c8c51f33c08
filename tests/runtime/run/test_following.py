"""A run is known as soon as it was asked for, queued or not, and is followed as it happens, through
interrupts, to its one end.
"""

import asyncio
import tracemalloc

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointNotFound,
    MemoryStore,
    Message,
    MessageDelta,
    RunCancelled,
    RunLost,
    Runner,
    RunStatus,
    ScriptedModel,
    SessionBusy,
    ToolCalls,
    UsageError,
)
from offbook.runtime.durability import leases
from offbook.runtime.testing import ManualClock
from tests.doubles.gated_model import Gated
from tests.doubles.held_stores import beside
from tests.doubles.watched_stores import unfinished

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
STORED = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
PATIENCE = 20


class Words:
    """Streams its words, each when it is told to."""

    def __init__(self, *words):
        self.words = words
        self.gates = [asyncio.Event() for _ in words]

    async def generate(self, request):
        raise AssertionError

    async def stream(self, request):
        for gate, word in zip(self.gates, self.words, strict=True):
            await gate.wait()
            yield MessageDelta(word)
        yield Message.assistant("".join(self.words))


@tool(needs_approval=True)
async def pay(euros: int) -> str:
    """Pay."""
    return f"{euros} paid"


def payer():
    return ChatModelAgent(
        name="A", tools=[pay], model=ScriptedModel([ToolCalls(("pay", {"euros": 3})), "done"])
    )


def pair(store_of, kind):
    """The store of one process, and that of another one."""
    store = store_of(kind, "shared")
    return store, store if kind == "memory" else store_of(kind, "shared")


def text_of(event):
    return event.delta.content if event.delta else event.text


async def soon(what):
    return await asyncio.wait_for(what, PATIENCE)


def test_a_message_that_still_streams_takes_little_more_than_its_pieces(run):
    """What a follower that comes later is shown of it is in memory until the message is whole."""
    pieces = 5_000

    class Talks:
        def __init__(self):
            self.said, self.go = asyncio.Event(), asyncio.Event()

        async def generate(self, request):
            raise AssertionError

        async def stream(self, request):
            yield MessageDelta("", reasoning="why")
            for number in range(pieces):
                yield MessageDelta(f"{number} ")
            self.said.set()
            await self.go.wait()
            yield Message.assistant("all")

    async def main():
        model = Talks()
        runner = Runner(
            ChatModelAgent(name="A", model=model),
            system=beside(),
            store=MemoryStore(),
            durability="step",
            streaming=True,
        )
        tracemalloc.start()
        try:
            begun = runner.query("q", run_id="r", detached=True)
            await soon(model.said.wait())
            taken = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert taken < 160 * pieces
        followed = runner.attach("r")
        seen = []
        async for event in followed:
            if event.delta is not None:
                seen.append(event)
            if len(seen) == pieces + 1:
                model.go.set()
        assert seen[0].delta == MessageDelta("", reasoning="why")
        assert [one.delta for one in seen[1:]] == [
            MessageDelta(f"{number} ") for number in range(pieces)
        ]
        assert [one.seq for one in seen] == sorted({one.seq for one in seen})
        assert {(one.agent_name, one.run_id, one.run_path) for one in seen} == {("A", "r", ("A",))}
        assert (await soon(begun)).final_message.text == "all"

    run(main())


# --- known from the beginning ---


@KINDS
@pytest.mark.parametrize("in_session", [False, True])
def test_a_run_is_known_in_its_process_when_query_has_returned(run, store_of, kind, in_session):
    async def main():
        runner = Runner(
            ChatModelAgent(name="A", model=ScriptedModel(["x"] * 20)),
            system=beside(),
            store=store_of(kind),
            durability="step",
        )
        for number in range(20):
            begun = (runner.session(f"s{number}") if in_session else runner).query(
                "q", run_id=f"r{number}", detached=True
            )
            followed = runner.attach(begun.id)
            info = await soon(runner.info(begun.id))
            assert (info.id, (await soon(followed)).status) == (begun.id, "completed")

    run(main())


@KINDS
def test_a_queued_turn_is_known_to_every_process_once_it_was_accepted(run, store_of, kind):
    async def main():
        ours, theirs = pair(store_of, kind)
        model = Gated()
        agent = ChatModelAgent(name="A", model=model)
        runner = Runner(agent, system=beside(), store=ours, durability="step")
        elsewhere = Runner(agent, system=beside(), store=theirs, durability="step")
        first = runner.session("s").query("one", run_id="one", detached=True)
        assert (await soon(first.accepted())) is first
        second = runner.session("s").query("two", run_id="two", detached=True)
        # Waits for a turn of another process.
        third = elsewhere.session("s").query("three", run_id="three", detached=True)
        await soon(asyncio.gather(second.accepted(), third.accepted()))
        assert (await elsewhere.info("one")).status is RunStatus.RUNNING
        assert (await elsewhere.info("two")).status is RunStatus.PENDING
        assert (await runner.info("three")).status is RunStatus.PENDING
        assert {info.id for info in await elsewhere.runs("pending")} == {"two", "three"}
        following = asyncio.gather(
            elsewhere.attach("two"),
            runner.attach("three"),
            elsewhere.session("s").query("two", run_id="two"),
        )
        model.gate.set()
        assert [result.text for result in await soon(following)] == ["at last"] * 3
        assert (await elsewhere.info("two")).status is RunStatus.COMPLETED
        assert not await unfinished(ours)

    run(main())


@KINDS
def test_a_queued_turn_is_cancelled_from_another_process(run, store_of, monkeypatch, kind):
    monkeypatch.setattr(leases, "PREEMPT_SECONDS", 0.1)

    async def main():
        ours, theirs = pair(store_of, kind)
        model = Gated()
        agent = ChatModelAgent(name="A", model=model)
        runner = Runner(agent, system=beside(), store=ours, durability="step")
        elsewhere = Runner(agent, system=beside(), store=theirs, durability="step")
        first = runner.session("s").query("one", detached=True)
        second = await soon(
            runner.session("s").query("two", run_id="two", detached=True).accepted()
        )
        assert await soon(elsewhere.attach("two").cancel()) is True
        assert (await soon(second)).status is RunStatus.CANCELLED
        assert (await elsewhere.info("two")).status is RunStatus.CANCELLED
        assert not [key for key in await unfinished(ours) if "two" in key]
        again = runner.session("s").query("two", run_id="two", detached=True)  # it had not begun
        model.gate.set()
        assert (await soon(again)).text == (await soon(first)).text == "at last"

    run(main())


@pytest.mark.parametrize("how", ["left", "drained"])
@KINDS
def test_a_queued_turn_whose_system_ends_had_not_begun_and_its_followers_are_told(
    run, store_of, kind, how
):
    async def main():
        ours, theirs = pair(store_of, kind)
        model = Gated()
        agent = ChatModelAgent(name="A", model=model)
        elsewhere = Runner(agent, system=beside(), store=theirs, durability="step")
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=ours, durability="step")
            runner.session("s").query("one", run_id="one", detached=True)
            await soon(model.asked.wait())
            await soon(runner.session("s").query("two", run_id="two", detached=True).accepted())
            following = elsewhere.attach("two")
            await soon(following.accepted())
            if how == "drained":
                await system.drain(0.05)
        result = await soon(following)
        assert result.status is RunStatus.CANCELLED
        assert "send it again" in str(result.error)
        assert (
            await elsewhere.info("one")
        ).status is RunStatus.DRAINED  # and not running: its system was left
        model.gate.set()
        recovered = {one.id: await soon(one) for one in await elsewhere.recover()}
        assert {run_id: result.status for run_id, result in recovered.items()} == {
            "one": "completed"
        }
        assert (
            await soon(elsewhere.session("s").query("two", run_id="two", detached=True))
        ).text == "at last"

    run(main())


@STORED
def test_a_queued_turn_whose_process_is_lost_had_not_begun(run, store_of, kind):
    async def main():
        ours, theirs = pair(store_of, kind)
        model, clock = Gated(), ManualClock()
        agent = ChatModelAgent(name="A", model=model)
        runner = Runner(agent, system=beside(), store=ours, durability="step")
        elsewhere = Runner(agent, system=beside(clock), store=theirs, durability="step")
        first = runner.session("s").query("one", run_id="one", detached=True)
        await soon(model.asked.wait())
        second = await soon(
            runner.session("s").query("two", run_id="two", detached=True).accepted()
        )
        following = elsewhere.attach("two")
        await soon(following.accepted())
        await theirs.revoke(
            await theirs.holder(next(key for key in await unfinished(theirs) if "two" in key))
        )
        while following.status in ("pending", "running"):
            clock.advance(0.5)
            await asyncio.sleep(0)
        with pytest.raises(RunLost, match="send it again"):
            await following
        model.gate.set()
        await asyncio.gather(first, second, return_exceptions=True)
        assert (
            await soon(elsewhere.session("t").query("two", run_id="two", detached=True))
        ).text == "at last"

    run(main())


def test_accepted_raises_what_keeps_a_run_from_beginning(run):
    async def main():
        model = Gated()
        runner = Runner(
            ChatModelAgent(name="A", model=model),
            system=beside(),
            store=MemoryStore(),
            durability="step",
        )
        first = await soon(runner.session("s").query("one").accepted())
        with pytest.raises(SessionBusy):
            await soon(runner.session("s", busy="reject").query("two", run_id="two").accepted())
        with pytest.raises(CheckpointNotFound):
            await soon(runner.resume("never").accepted())
        with pytest.raises(CheckpointNotFound):
            await runner.info("two")
        model.gate.set()
        assert (await soon(first)).text == "at last"

    run(main())


def test_accepted_takes_no_events(run):
    async def main():
        begun = (
            await Runner(ChatModelAgent(name="A", model=ScriptedModel(["x"]))).query("q").accepted()
        )
        return [event.text async for event in begun]

    assert run(main()) == ["x"]


# --- as it happens ---


def test_who_follows_a_run_of_the_same_process_sees_its_words_as_they_come_and_who_comes_late_those_so_far(
    run,
):
    async def main():
        model = Words("one ", "two ", "three")
        runner = Runner(
            ChatModelAgent(name="A", model=model),
            system=beside(),
            store=MemoryStore(),
            durability="step",
            streaming=True,
        )
        begun = runner.query("q", run_id="r", detached=True)
        early = aiter(runner.attach("r"))
        model.gates[0].set()
        assert text_of(await soon(anext(early))) == "one "
        model.gates[1].set()
        assert text_of(await soon(anext(early))) == "two "
        late, came_back = aiter(runner.attach("r")), aiter(runner.attach("r", after=1))
        assert [text_of(await soon(anext(late))) for _ in range(2)] == ["one ", "two "]
        assert text_of(await soon(anext(came_back))) == "two "
        model.gates[2].set()
        for follower in (early, late, came_back):
            assert [(event.seq, text_of(event)) async for event in follower] == [
                (3, "three"),
                (4, "one two three"),
            ]
        assert (await begun).text == "one two three"

    run(main())


def test_a_follower_that_is_slow_holds_up_no_run_and_gets_all_of_it(run, until):
    async def main():
        words = [f"{number} " for number in range(3000)]
        model = Words(*words)
        runner = Runner(
            ChatModelAgent(name="A", model=model),
            system=beside(),
            store=MemoryStore(),
            durability="step",
            streaming=True,
        )
        begun = runner.query("q", run_id="r", detached=True)
        slow = aiter(runner.attach("r"))
        model.gates[0].set()
        first = await soon(anext(slow))
        for gate in model.gates:
            gate.set()
        assert (await soon(begun)).text == "".join(words)
        rest = [event async for event in slow]
        assert first.delta.content + "".join(
            event.delta.content for event in rest if event.delta
        ) == "".join(words)
        assert len(rest) < 1500, "pieces go together to it"
        assert rest[-1].text == "".join(words)

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_follower_that_leaves_changes_nothing_and_its_cancel_ends_the_run(run, durability):
    async def main():
        model = Words("one ", "two")
        runner = Runner(
            ChatModelAgent(name="A", model=model),
            system=beside(),
            store=MemoryStore(),
            durability=durability,
            streaming=True,
        )
        begun = runner.query("q", run_id="r", detached=True)
        leaving = aiter(runner.attach("r"))
        model.gates[0].set()
        await soon(anext(leaving))
        await leaving.aclose()
        staying = runner.attach("r")
        assert await soon(staying.cancel()) is True
        assert isinstance((await soon(begun)).error, RunCancelled)
        assert (await staying).status is RunStatus.CANCELLED

    run(main())


def test_a_follower_is_drained_with_its_system_and_the_run_is_not(run):
    async def main():
        model, store, here = Words("one ", "two"), MemoryStore(), beside()
        agent = ChatModelAgent(name="A", model=model)
        begun = Runner(
            agent, system=beside(), store=store, durability="step", streaming=True
        ).query("q", run_id="r", detached=True)
        await soon(begun.accepted())
        follower = Runner(agent, system=here, store=store, durability="step").attach("r")
        await soon(follower.accepted())
        await soon(here.drain(5))
        told = await soon(follower)
        assert told.status is RunStatus.DRAINED
        assert "attach(run_id) follows it again" in str(told.error)
        for gate in model.gates:
            gate.set()
        assert (await soon(begun)).text == "one two"

    run(main())


# --- through interrupts ---


@KINDS
def test_a_run_is_followed_through_an_approval_to_its_end(run, store_of, kind):
    async def main():
        ours, theirs = pair(store_of, kind)
        runner, elsewhere = (
            Runner(payer(), system=beside(), store=store, durability="step")
            for store in (ours, theirs)
        )
        await soon(runner.query("q", run_id="r", detached=True))
        here, there = runner.attach("r", wait=True), elsewhere.attach("r", wait=True)
        assert (await soon(elsewhere.attach("r"))).status is RunStatus.INTERRUPTED
        events = aiter(there)
        while not (await soon(anext(events))).action:
            pass
        (info,) = await runner.pending()
        answered = runner.approve(info.waiting[0])
        assert [event.text async for event in events] == ["3 paid", "done"]
        assert (
            (await soon(here)).text
            == (await soon(there)).text
            == (await soon(answered)).text
            == "done"
        )
        assert [event.seq for event in (await here).events] == [
            event.seq for event in (await there).events
        ]

    run(main())


@pytest.mark.parametrize("keep", ["unfinished", "all"])
def test_a_run_that_waits_and_whose_result_is_not_kept_is_followed_too(run, keep):
    async def main():
        runner = Runner(payer(), system=beside(), store=MemoryStore(), durability="step", keep=keep)
        waiting = await soon(runner.query("q"))
        run_id = (await runner.pending())[0].id
        result = await soon(runner.attach(run_id))
        assert (result.status, result.interrupts) == (RunStatus.INTERRUPTED, waiting.interrupts)
        following = runner.attach(run_id, wait=True)
        await soon(following.accepted())
        answered = runner.approve(waiting.interrupts[0])
        assert (await soon(following)).text == (await soon(answered)).text == "done"

    run(main())


# --- one end, for each consumer ---


@KINDS
def test_the_same_turn_sent_twice_ends_once_for_each_caller(run, store_of, kind):
    async def main():
        ours, theirs = pair(store_of, kind)
        model = Gated()
        agent = ChatModelAgent(name="A", model=model)
        runners = [
            Runner(agent, system=beside(), store=store, durability="step")
            for store in (ours, theirs, ours)
        ]
        turns = [runner.session("s").query("q", run_id="r", detached=True) for runner in runners]

        async def seen(turn):
            return [(event.text, event.error) async for event in turn]

        reading = asyncio.gather(*map(seen, turns))
        await soon(model.asked.wait())
        model.gate.set()
        assert await soon(reading) == [[("at last", None)]] * 3
        assert [(await turn).status for turn in turns] == ["completed"] * 3

    run(main())


def test_a_second_consumer_is_refused_and_the_first_one_gets_all(run):
    async def main():
        model = Words("one ", "two")
        begun = Runner(ChatModelAgent(name="A", model=model), streaming=True).query("q")
        first = aiter(begun)
        model.gates[0].set()
        seen = [text_of(await soon(anext(first)))]
        with pytest.raises(UsageError, match="already has a consumer that iterates over it"):
            aiter(begun)
        model.gates[1].set()
        seen.append(text_of(await soon(anext(first))))
        await begun.wait_ended()
        assert [text_of(event) async for event in begun] == [
            "one two"
        ]  # what has ended is read again
        assert [*seen, *[text_of(event) async for event in first]] == ["one ", "two", "one two"]

    run(main())


def test_a_queued_turn_that_is_stored_only_when_it_rests_is_accepted_and_followed_in_its_process(
    run,
):
    async def main():
        model = Gated()
        runner = Runner(ChatModelAgent(name="A", model=model), system=beside(), store=MemoryStore())
        first = runner.session("s").query("one")
        second = await soon(runner.session("s").query("two").accepted())
        following = runner.attach(second.id)
        with pytest.raises(CheckpointNotFound):
            await soon(runner.info(second.id))
        model.gate.set()
        assert [(await soon(one)).text for one in (first, following, second)] == ["at last"] * 3

    run(main())


class BeginsMeanwhile(MemoryStore):
    """A run begins elsewhere between two looks of its follower: after its mark, before its journal."""

    begin = None

    async def read(self, key, after=0):
        begin, self.begin = self.begin, None
        if begin is not None:
            await begin()
        return await super().read(key, after)


def test_a_run_that_begins_between_two_looks_is_followed_and_not_taken_for_ended(run):
    async def story():
        store, model = BeginsMeanwhile(), Gated()
        async with ActorSystem() as system:
            agent = ChatModelAgent(name="A", model=model)
            runner = Runner(agent, system=system, store=store, durability="step")
            begun = []

            async def begin():
                begun.append(asyncio.ensure_future(ended(runner.query("hi", run_id="r"))))
                await model.asked.wait()

            store.begin = begin
            following = asyncio.ensure_future(ended(runner.attach("r")))
            while not begun:
                await asyncio.sleep(0)
            model.gate.set()
            return await soon(begun[0]), await soon(following)

    assert [one.text for one in run(story())] == ["at last", "at last"]


async def ended(one):
    return await one
