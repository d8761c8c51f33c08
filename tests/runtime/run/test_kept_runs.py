"""What can be asked of the runs in a store, from any process: `runs`, `info`, `pending`, `labels=`,
`forget`, and `keep=` for how long.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointNotFound,
    MemoryStore,
    RunInfo,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from offbook.runtime.stores import JournalStore
from tests.doubles.agents import PlannedAgent
from tests.doubles.held_stores import beside
from tests.doubles.left_runs import lose_all

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])


@tool
def pay(context: ToolContext, amount: int) -> str:
    """Pay."""
    return f"paid, as {context.interrupt({'amount': amount})} has said"


def payer(*amounts, name="Payer"):
    """An agent that asks about each payment."""
    return ChatModelAgent(
        name=name,
        model=ScriptedModel([*(ToolCalls(pay={"amount": amount}) for amount in amounts), "Done."]),
        tools=[pay],
    )


class Gate:
    """An agent that stands in its first step until it is let go."""

    def __init__(self, name="Gate"):
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self.agent = PlannedAgent(name, self.wait, "passed")

    async def wait(self, _context):
        self.reached.set()
        await self.go.wait()


def ids(infos):
    return [info.id for info in infos]


@KINDS
def test_a_run_is_listed_from_its_beginning_to_its_end_in_any_process(run, store_of, kind):
    async def main():
        store, gate = store_of(kind), Gate()
        here, there = (
            Runner(gate.agent, store=store, durability="step"),
            Runner(PlannedAgent("Other", "x"), store=store),
        )
        before = datetime.now(UTC)
        begun = here.query("go", labels={"tenant": "acme"}, run_id="one", session_id="s")
        await gate.reached.wait()
        info = await there.info("one")
        assert (info.status, info.agent, info.session_id, info.checkpoint_id) == (
            RunStatus.RUNNING,
            "Gate",
            "s",
            "one",
        )
        assert (
            before - timedelta(seconds=1)
            <= info.started
            <= info.updated
            <= datetime.now(UTC) + timedelta(seconds=1)
        )
        assert (info.ended, info.waiting, info.attempts, info.error, info.labels) == (
            None,
            (),
            0,
            None,
            {"tenant": "acme"},
        )
        assert (
            await there.runs()
            == await there.runs("running", "s", "Gate", {"tenant": "acme"})
            == [info]
        )
        gate.go.set()
        assert (await begun).status == "completed"
        ended = await there.info("one")
        assert (ended.status, ended.started, ended.labels, ended.session_id) == (
            RunStatus.COMPLETED,
            info.started,
            info.labels,
            "s",
        )
        assert (ended.ended, ended.last_agent, ended.steps) == (ended.updated, "Gate", 1)
        assert await there.runs("running") == []
        assert ids(await there.runs("completed", labels={"tenant": "acme"})) == ["one"]

    run(main())


@KINDS
@pytest.mark.parametrize("durability", ["step", "interrupt"])
def test_runs_that_wait_are_pending_with_what_they_wait_for_until_they_are_answered(
    run, store_of, kind, durability
):
    async def main():
        store = store_of(kind)
        runner = Runner(payer(3, 4), store=store, durability=durability)
        paid = runner.query("pay", labels={"tenant": "acme"})
        result = await paid
        (info,) = await runner.pending()
        assert (info.id, info.status, info.waiting, info.labels) == (
            paid.id,
            RunStatus.INTERRUPTED,
            result.interrupts,
            {"tenant": "acme"},
        )
        assert (info.waiting[0].info, info.ended, info.checkpoint_id) == (
            {"amount": 3},
            None,
            paid.checkpoint_id,
        )
        assert (
            await runner.resume(info.checkpoint_id, {info.waiting[0].id: "Ann"})
        ).status == "interrupted"
        (again,) = await runner.pending()
        assert (again.id, again.started, again.labels, again.waiting[0].info) == (
            paid.id,
            info.started,
            info.labels,
            {"amount": 4},
        )
        assert again.updated >= info.updated
        assert (await runner.resume(again.checkpoint_id, data="Ann")).status == "completed"
        assert await runner.pending() == []
        assert ids(await runner.runs()) == [paid.id]  # with its saves, for a day at least

    run(main())


@KINDS
def test_how_runs_have_ended_is_told(run, store_of, kind):
    async def main():
        store, gate = store_of(kind), Gate("Cancelled")
        failed = Runner(
            PlannedAgent("Failed", "so far", ValueError("no luck")), store=store, durability="step"
        ).query("go")
        await failed
        cancelled = Runner(gate.agent, store=store, durability="step").query("go")
        await gate.reached.wait()
        await cancelled.cancel()
        runner = Runner(PlannedAgent("A", "x"), store=store)
        one, two = await runner.info(failed.id), await runner.info(cancelled.id)
        assert (one.status, one.agent, one.error) == (
            RunStatus.FAILED,
            "Failed",
            "ValueError: no luck",
        )
        assert (two.status, two.agent) == (RunStatus.CANCELLED, "Cancelled")
        assert two.error is not None
        assert "cancel() was called" in two.error
        assert one.ended is not None
        assert two.ended is not None
        assert ids(await runner.runs(["failed", RunStatus.CANCELLED])) == [cancelled.id, failed.id]
        assert ids(await runner.runs(agent="Failed")) == [failed.id]
        gate.go.set()
        assert (
            await Runner(gate.agent, store=store, durability="step").resume(two.checkpoint_id)
        ).status == "completed"
        assert (await runner.info(cancelled.id)).status == "completed"

    run(main())


def test_a_run_that_is_drained_lost_recovered_or_set_aside_is_listed_so(run):
    async def main():
        store, gate = MemoryStore(), Gate()
        first = beside()
        begun = Runner(gate.agent, store=store, durability="step", system=first).query(
            "go", labels={"a": "b"}
        )
        await gate.reached.wait()
        await first.drain(0.1)
        assert (await begun).status == RunStatus.DRAINED
        looks = Runner(gate.agent, store=store, durability="step")
        assert (await looks.info(begun.id)).status == RunStatus.DRAINED
        lost = []
        for life in (0, 1):
            gate.reached.clear()
            system = beside()
            (again,) = await Runner(
                gate.agent, store=store, durability="step", system=system
            ).recover(max_attempts=5)
            await gate.reached.wait()
            info = await looks.info(begun.id)
            assert (again.id, info.status, info.attempts, info.labels) == (
                begun.id,
                RunStatus.RUNNING,
                life,
                {"a": "b"},
            )
            await lose_all(system, store)
            lost.append(again)
        assert (
            await Runner(gate.agent, store=store, durability="step", system=beside()).recover(
                max_attempts=2
            )
            == []
        )
        info = await looks.info(begun.id)
        assert (info.status, info.attempts, info.ended) == (RunStatus.STUCK, 2, None)
        assert ids(await looks.stuck()) == [begun.id]
        gate.go.set()
        assert (await (await looks.retry(begun.id))).status == "completed"
        info = await looks.info(begun.id)
        assert (info.status, info.labels) == (RunStatus.COMPLETED, {"a": "b"})
        assert [(await one).status for one in lost] == [
            "failed",
            "failed",
        ]  # they may not write any more

    run(main())


def test_pages_follow_one_another_the_newest_first(run):
    async def main():
        store = MemoryStore()
        runner = Runner(PlannedAgent("A", "x"), store=store, durability="step")
        for number in range(7):
            await runner.query(
                "go", run_id=f"r{number}", labels={"odd": "yes" if number % 2 else "no"}
            )
        first = await runner.runs(limit=3)
        assert ids(first) == ["r6", "r5", "r4"]
        assert ids(await runner.runs(limit=3, after="r4")) == ["r3", "r2", "r1"]
        assert ids(await runner.runs(limit=3, after="r1")) == ["r0"]
        assert await runner.runs(after="r0") == []
        assert ids(await runner.runs(labels={"odd": "yes"}, after="r5")) == ["r3", "r1"]
        assert ids(await runner.runs(since=first[1].started)) == ["r6", "r5"]
        assert ids(await runner.runs(until=first[2].started.timestamp(), limit=2)) == ["r3", "r2"]
        with pytest.raises(CheckpointNotFound, match="no longer listed"):
            await runner.runs(after="nothing")

    run(main())


@KINDS
@pytest.mark.parametrize("durability", ["step", "interrupt"])
def test_what_is_forgotten_is_nowhere(run, store_of, kind, durability):
    async def main():
        async with ActorSystem() as system:
            await forget_it(store_of(kind), system)

    async def forget_it(store, system):
        runner = Runner(payer(3, 4), store=store, durability=durability, system=system)
        paid = runner.query("pay", checkpoint_id="mine")
        await paid
        await runner.resume("mine", data="Ann")
        other = Runner(payer(5, name="Other"), store=store, durability=durability).query("pay")
        await other
        before = await store.keys()
        await runner.forget(paid.id)
        assert ids(await runner.runs()) == [other.id]
        assert not [key for key in await store.keys() if paid.id in key or key.startswith("mine")]
        assert [key for key in before if other.id in key]
        for ask in (runner.info(paid.id), runner.forget(paid.id)):
            with pytest.raises(CheckpointNotFound):
                await ask
        with pytest.raises(CheckpointNotFound):
            await runner.resume("mine", data="Ann")
        await runner.forget(other.id)  # of another agent
        assert await store.keys() == []

    run(main())


def test_a_run_at_work_is_not_forgotten_and_one_that_lost_its_process_is(run):
    async def main():
        store, gate, system = MemoryStore(), Gate(), beside()
        begun = Runner(gate.agent, store=store, durability="step", system=system).query("go")
        await gate.reached.wait()
        runner = Runner(gate.agent, store=store, durability="step")
        with pytest.raises(UsageError, match="is running"):
            await runner.forget(begun.id)
        assert (await runner.info(begun.id)).status == "running"
        await lose_all(system, store)
        await runner.forget(begun.id)
        assert await store.keys() == []
        assert await runner.recover() == []
        gate.go.set()
        assert (await begun).status == "failed"  # it may not write any more

    run(main())


def test_a_save_of_another_run_under_the_same_name_is_not_forgotten(run):
    async def main():
        store = MemoryStore()
        runner = Runner(payer(1, 2), store=store)
        first = runner.query("pay", checkpoint_id="desk")
        await first
        second = Runner(payer(7), store=store).query("pay", checkpoint_id="desk")
        await second
        await runner.forget(first.id)
        assert ids(await runner.pending()) == [second.id]
        with pytest.raises(CheckpointNotFound):
            await runner.resume("desk@1", data="Ann")
        assert (await Runner(payer(), store=store).resume("desk", data="Ann")).status in (
            "completed",
            "failed",
        )

    run(main())


def test_ended_runs_stay_as_long_as_keep_says(run):
    async def main():
        for keep, stays in ((None, True), ("unfinished", False), (60, True), ("all", True)):
            store = MemoryStore()
            runner = Runner(PlannedAgent("A", "x"), store=store, durability="step", keep=keep)
            done = runner.query("go")
            await done
            assert ids(await runner.runs()) == ([done.id] if stays else []), keep
            assert bool(await store.keys()) is stays
        now = [0.0]
        store = MemoryStore(time=lambda: now[0])
        runner = Runner(PlannedAgent("A", "x"), store=store, durability="step")
        done = runner.query("go")
        await done
        now[0] = 86_000
        assert ids(await runner.runs()) == [done.id]
        assert (await runner.attach(done.id)).final_output == "x"
        now[0] = 87_000
        assert await runner.runs() == []
        with pytest.raises(CheckpointNotFound):
            await runner.attach(done.id)
        await runner.query("again")
        assert len(await store.keys()) == 1  # what had expired went with the next one

    run(main())


def test_labels_belong_to_turns_of_sessions_and_branches_too(run):
    async def main():
        store = MemoryStore()
        runner = Runner(payer(1, 2), store=store, durability="step")
        turn = runner.session("s").query("pay", labels={"a": "b"})
        await turn
        await runner.resume(turn.checkpoint_id, data="Ann")
        branch = runner.resume(f"{turn.checkpoint_id}@1", data="Bob")
        await branch
        assert {info.id for info in await runner.runs(labels={"a": "b"})} == {turn.id, branch.id}
        assert ids(await runner.runs(session_id="s"))[-1] == turn.id

    run(main())


@pytest.mark.parametrize(
    "labels",
    [
        "text",
        {"a": 1},
        {1: "a"},
        {"": "a"},
        {"a\0b": "c"},
        {"a" * 65: "b"},
        {"a": "b" * 257},
        {f"l{number}": "x" for number in range(17)},
    ],
)
def test_labels_that_cannot_be_looked_for_are_refused_when_they_are_given(run, labels):
    async def main():
        runner = Runner(PlannedAgent("A", "x"), store=MemoryStore(), durability="step")
        for call in (runner.query, runner.session("s").query):
            with pytest.raises(UsageError, match="labels"):
                call("go", labels=labels)
        with pytest.raises(UsageError, match="labels"):
            await runner.runs(labels=labels)
        longest = {f"{number:064}": "ä" * 256 for number in range(16)}
        assert (await runner.query("go", labels=longest)).status == "completed"
        assert (await runner.runs(labels=longest))[0].labels == longest

    run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        *({"limit": limit} for limit in (0, 10_001, True, "x")),
        *({"status": status} for status in ("done", ["completed", "x"])),
        *(
            {"session_id": ""},
            {"agent": 1},
            {"after": ""},
            {"since": "yesterday"},
            {"until": -1},
            {"since": True},
            {"until": 1e12},
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(run, wrong):
    async def main():
        with pytest.raises(UsageError, match=next(iter(wrong))):
            await Runner(PlannedAgent("A", "x"), store=MemoryStore()).runs(**wrong)

    run(main())


def test_a_store_without_a_list_says_what_is_missing_and_keeps_runs_all_the_same(run):
    async def main():
        inner = MemoryStore()
        own = {
            name: staticmethod(getattr(inner, name))
            for name in vars(MemoryStore)
            if not name.startswith(("_", "run_entr"))
        }
        async with ActorSystem() as system:
            await use(type("Own", (), own)(), system)

    async def use(store, system):
        runner = Runner(payer(3), store=store, durability="step", system=system)
        assert isinstance(store, JournalStore)
        paid = runner.query("pay", labels={"a": "b"})
        assert (await paid).status == "interrupted"
        for ask in (runner.runs(), runner.info(paid.id), runner.pending()):
            with pytest.raises(UsageError, match="run_entry, run_entries"):
                await ask
        assert (await runner.resume(paid.id, data="Ann")).status == "completed"
        await runner.forget(paid.id)
        assert await store.keys() == []
        with pytest.raises(UsageError, match="store"):
            await Runner(payer(3)).runs()

    run(main())


def test_a_long_session_is_found_by_its_id(run):
    async def main():
        runner = Runner(PlannedAgent("A", "x"), store=MemoryStore(), durability="step")
        names = ["s" * 5000, "s" * 4999 + "t"]
        for name in names:
            await runner.query("go", session_id=name)
        for name in names:
            (found,) = await runner.runs(session_id=name)
            assert found.session_id == name
            assert isinstance(found, RunInfo)

    run(main())
