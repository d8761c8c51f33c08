"""Leases and turns, where something comes between: a store that is slow or fails, somebody who
gives up, two stores, two systems, a process that is lost.
"""

import asyncio
import gc
import sys
import threading

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Runner,
    ScriptedModel,
    SessionBusy,
    SQLiteStore,
    StoreError,
    SystemDraining,
    ToolCalls,
)
from offbook.runtime.durability import store_owner
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import (
    LEASE_SECONDS,
    Echo,
    Gate,
    HeldStore,
    beside,
    echoing,
    passing,
    soon,
    texts,
    turns,
)


class Apart:
    """Some processes with one store: a runner of each, with a model and a door to the store of its
    own.
    """

    def __init__(self, count, **options):
        self.clock = ManualClock()
        self.store = HeldStore(time=self.clock.time)
        self.models = [Echo() for _ in range(count)]
        self.doors = [self.store.door() for _ in range(count)]
        systems = [beside(self.clock) for _ in range(count)]
        self.runners = [
            Runner(echoing(model), system=system, store=door, **options)
            for model, system, door in zip(self.models, systems, self.doors, strict=True)
        ]

    async def work(self, index, session="s", text="wait", **options):
        """Let one of them work on a message of a session."""
        self.models[index].asked.clear()
        work = self.runners[index].session(session, **options).query(text)
        await soon(self.models[index].asked.wait())
        return work


# --- prolonging ---


def test_one_that_waits_for_another_process_has_not_lost_what_it_never_had(run):
    async def main():
        apart = Apart(2)
        at_work, other = (
            await apart.work(0),
            await apart.work(1, "t"),
        )  # whose lease has to be prolonged
        waiting = apart.runners[1].session("s").query("x")
        await passing(apart.clock, 3 * LEASE_SECONDS)
        for model in apart.models:
            model.gate.set()
        assert (await soon(at_work)).status == "completed"
        await passing(apart.clock, 1)
        assert (await soon(waiting)).final_output == "3 x"
        assert (await soon(other)).status == "completed"

    run(main())


@pytest.mark.parametrize("trouble", ["hangs", "fails", "is closed"])
def test_a_store_in_trouble_costs_nobody_a_lease_in_another_one(run, trouble):
    async def main():
        apart = Apart(1)
        other = HeldStore(time=apart.clock.time)
        model = Echo()
        in_trouble = (
            Runner(echoing(model), system=apart.runners[0].system, store=other)
            .session("t")
            .query("wait")
        )
        at_work = await apart.work(0)
        gate = other.hold("keep_alive") if trouble == "hangs" else None
        if trouble == "fails":
            other.fail("keep_alive", error=ZeroDivisionError)
        elif trouble == "is closed":
            other.close()
        await passing(apart.clock, 2 * LEASE_SECONDS)
        assert apart.store.leases() == ["session:s"]
        apart.models[0].gate.set()
        assert (await soon(at_work)).status == "completed"
        if gate is not None:
            gate.open()
        model.gate.set()
        await soon(in_trouble)

    run(main())


def test_a_renewal_that_is_never_answered_does_not_outlast_its_run(run):
    async def main():
        apart = Apart(1)
        apart.doors[0].hold("keep_alive", skip=1)
        at_work = await apart.work(0)
        await passing(apart.clock, 2 * LEASE_SECONDS)
        assert "its lease expired" in str((await soon(at_work)).error)
        await passing(apart.clock, 1)

    run(main())  # which fails if a task is left


def test_who_cannot_prolong_is_told_before_another_one_can_have_it(run):
    async def main():
        apart = Apart(2)
        at_work = await apart.work(0)
        apart.doors[0].fail("keep_alive")
        waiting = apart.runners[1].session("s").query("wait")
        while not apart.models[1].asked.is_set():
            await passing(apart.clock, 0.5)
        assert apart.models[0].cut == 1, "two work on one session"
        assert "its lease expired" in str((await soon(at_work)).error)
        apart.models[1].gate.set()
        assert (await soon(waiting)).final_output == "1 wait"

    run(main())


def test_a_store_that_is_away_for_less_than_a_lease_costs_nothing(run):
    async def main():
        apart = Apart(1)
        at_work = await apart.work(0)
        works = apart.doors[0].fail("keep_alive")
        # A part of it is left unused, and the store is asked again after a while.
        await passing(apart.clock, LEASE_SECONDS * 5 / 6 - 2)
        works()
        await passing(apart.clock, LEASE_SECONDS)
        assert apart.store.leases() == ["session:s"]
        apart.models[0].gate.set()
        assert (await soon(at_work)).status == "completed"

    run(main())


def test_an_old_answer_says_nothing_of_a_lease_that_was_taken_anew(run):
    async def main():
        apart = Apart(1)
        store, other_model = apart.doors[0], Echo()
        other = Runner(echoing(other_model), system=apart.runners[0].system, store=store)
        kept, first = await apart.work(0, "t"), other.session("s").query("wait")
        await other_model.asked.wait()
        before, behind = store.hold("keep_alive"), store.hold("keep_alive", after=True)
        apart.clock.advance(LEASE_SECONDS / 3)
        await soon(before.reached.wait())
        other_model.gate.set()
        await soon(first)
        before.open()
        await soon(behind.reached.wait())  # it does not have the lease at this moment
        again = await apart.work(0)
        behind.open()
        await turns()
        apart.models[0].gate.set()
        assert [(await soon(one)).status for one in (again, kept)] == ["completed"] * 2

    run(main())


# --- two stores that are one ---


def test_two_objects_for_one_database_are_one_store(run, tmp_path):
    async def main():
        async with (
            SQLiteStore(tmp_path / "db") as one,
            SQLiteStore(tmp_path / "db") as two,
            ActorSystem() as system,
        ):
            model = Echo()
            first = Runner(echoing(model), system=system, store=one).session("s").query("wait")
            await model.asked.wait()
            other = Runner(echoing(model), system=system, store=two)
            with pytest.raises(SessionBusy):
                await other.session("s", busy="reject").query("no")
            second = other.session("s").query("x")
            model.gate.set()
            await soon(first)
            assert (await soon(second)).final_output == "3 x"

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_approved_tool_runs_once_through_two_objects_for_one_database(run, tmp_path, durability):
    paid = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        await asyncio.sleep(0.01)
        return "paid"

    async def main():
        async with (
            SQLiteStore(tmp_path / "db") as one,
            SQLiteStore(tmp_path / "db") as two,
            ActorSystem() as system,
        ):
            agent = ChatModelAgent(
                name="A",
                model=ScriptedModel([ToolCalls(pay={"amount": 5}), "end", "end"]),
                tools=[pay],
            )
            runners = [
                Runner(agent, system=system, store=store, durability=durability)
                for store in (one, two)
            ]
            (waits,) = (await runners[0].query("q", checkpoint_id="c")).interrupts
            await asyncio.gather(
                *(runner.approve(waits) for runner in runners), return_exceptions=True
            )

    run(main())
    assert paid == [5]


# --- who wants it at once ---


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_who_is_asked_to_end_is_asked_once(run, where):
    """The second time would cut short what it does to end in order."""

    class Tidy(Echo):
        async def generate(self, request):
            try:
                return await super().generate(request)
            except asyncio.CancelledError:
                tidying.reached.set()
                try:
                    await tidying.wait()
                except asyncio.CancelledError:
                    cut.append(request)
                raise

    async def main():
        apart = Apart(2)
        at_work = (
            Runner(echoing(Tidy()), system=apart.runners[0].system, store=apart.doors[0])
            .session("s")
            .query("wait")
        )
        await turns()
        sender = apart.runners[0 if where == "here" else 1].session("s", busy="preempt")
        urgent = [sender.query(text) for text in ("now", "at once", "immediately")]
        await passing(apart.clock, 5)
        assert tidying.reached.is_set()
        assert cut == []
        tidying.open()
        await turns()
        await passing(apart.clock, 5)
        assert (await soon(at_work)).status == "cancelled"
        assert [(await soon(one)).status for one in urgent] == [
            "cancelled",
            "cancelled",
            "completed",
        ]

    tidying, cut = Gate(), []
    run(main())


def test_who_wants_it_at_once_says_so_to_whoever_has_it_by_now(run):
    async def main():
        apart = Apart(3)
        first = await apart.work(0)
        second = apart.runners[1].session("s").query("wait")
        await turns()
        urgent = apart.runners[2].session("s", busy="preempt").query("now")
        await turns()
        late = apart.doors[2].hold("claim")
        while not apart.models[1].asked.is_set():
            await passing(apart.clock, 0.5)
        assert (await soon(first)).status == "cancelled"
        late.open()
        await passing(apart.clock, 5)
        assert (await soon(urgent)).final_output == "3 now"
        assert (await soon(second)).status == "cancelled"
        assert [key for key in apart.store._entries if "preempt" in key] == []

    run(main())


def test_who_wants_it_at_once_does_not_wait_behind_one_who_has_time(run):
    async def main():
        apart = Apart(2)
        at_work = await apart.work(0)
        patient = apart.runners[1].session("s").query("wait")
        await turns()
        urgent = apart.runners[1].session("s", busy="preempt").query("now")
        await passing(apart.clock, 5)
        assert [(await soon(one)).status for one in (at_work, patient, urgent)] == [
            "cancelled",
            "cancelled",
            "completed",
        ]
        assert texts(await apart.runners[0].session("s").history()) == [
            "wait",
            "wait",
            "now",
            "3 now",
        ]

    run(main())


def test_a_wish_that_was_left_behind_ends_no_later_turn(run):
    async def main():
        apart = Apart(2)
        kept, first = await apart.work(0, "t"), await apart.work(0)
        dying = apart.runners[1].session("s", busy="preempt").query("now")
        await turns()
        works = apart.doors[1].fail("delete", "preempt")  # its process ends here
        dying.cancel()
        await soon(dying)
        works()
        await passing(apart.clock, 3)
        assert (await soon(first)).status == "cancelled"
        later = await apart.work(0)
        await passing(apart.clock, 3)
        apart.models[0].gate.set()
        assert [(await soon(one)).status for one in (later, kept)] == ["completed"] * 2

    run(main())


def test_a_wish_that_cannot_be_taken_back_costs_nobody_the_turn(run):
    async def main():
        apart = Apart(2)
        first = await apart.work(0)
        apart.doors[1].fail("delete", "preempt")
        urgent = apart.runners[1].session("s", busy="preempt").query("now")
        await passing(apart.clock, 3)
        assert (await soon(first)).status == "cancelled"
        assert (await soon(urgent)).final_output == "2 now"
        await turns()
        assert apart.store.leases() == []

    run(main())


# --- giving up, and being left ---


@pytest.mark.parametrize("what", ["a turn", "a run"])
def test_what_was_taken_in_the_moment_of_giving_up_is_given_back(run, what):
    async def main():
        apart = Apart(1, durability="step")
        gate = apart.doors[0].hold("claim", "session:" if what == "a turn" else "open:", after=True)
        given_up = apart.runners[0].session("s").query("x")
        await soon(gate.reached.wait())
        given_up.cancel()
        await soon(given_up)
        gate.open()
        await turns()
        assert apart.store.leases() == []

    run(main())


@pytest.mark.parametrize("how", ["gives up", "fails"])
def test_the_next_one_has_its_turn_if_the_first_one_does_not_get_it(run, how):
    async def main():
        apart = Apart(1)
        if how == "gives up":
            gate = apart.doors[0].hold("claim")
        else:
            gate = apart.doors[0].hold("read")
            apart.doors[0].fail("claim", once=True)
        session = apart.runners[0].session("s")
        first, second, third = (session.query(text) for text in "abc")
        await soon(gate.reached.wait())
        first.cancel()
        second.cancel()
        gate.open()
        if how == "gives up":
            assert (await soon(first)).status == "cancelled"
        else:
            with pytest.raises(StoreError):
                await soon(first)
        assert (await soon(second)).status == "cancelled"
        assert (await soon(third)).final_output == "1 c"
        await turns()
        assert apart.store.leases() == []

    run(main())


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_who_waits_to_clear_a_session_is_told_when_the_system_is_left(run, where):
    async def main():
        apart = Apart(1)
        async with ActorSystem() as system:
            model = Echo()
            here = Runner(echoing(model), system=system, store=apart.store.door())
            at_work = here.session("s").query("wait") if where == "here" else await apart.work(0)
            await turns()
            clearing = asyncio.create_task(here.session("s").clear())
            await turns()
        with pytest.raises(SystemDraining, match="left"):
            await soon(clearing)
        apart.models[0].gate.set()
        await soon(at_work)

    run(main())


def test_systems_in_several_threads_keep_their_leases_apart():
    store, problems = MemoryStore(), []

    def work():
        kept = []  # whoever keeps his runs keeps what they had to do with
        try:
            with ActorSystem.in_thread() as system:
                runner = Runner(echoing(), system=system, store=store, durability="step")
                for _ in range(150):
                    kept.append(runner.query("x"))
                    kept[-1].result(20)
        except Exception as error:
            problems.append(error)

    gc.collect()
    before, interval = len(store_owner._owners), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
    assert len(store_owner._owners) <= before + len(threads), (
        "those that have ended are looked at each time"
    )
