"""G13: whoever has lost a run writes nothing of it any more, shows nothing more, and starts nothing
more, wherever it was stopped in between.

What stalls is a call that was made and has not come to its store: between the look whether the run
is still this process's and the write.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import Runner, ScriptedModel, ToolCalls
from offbook.runtime.durability import lease
from offbook.runtime.durability.leases import leases_of
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.errors import RunLost
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import LEASE_SECONDS, HeldStore, beside, held, soon, turns
from tests.doubles.watched_stores import unfinished

KINDS = ("memory", "sqlite", "redis", "postgres")
LAST = 5  # the step with which the run ends: its record and its end are written at once


class Sleeps(ManualClock):
    """The clock of a machine that may be suspended: what was due meanwhile is not called before
    somebody looks.
    """

    def suspend(self, seconds):
        self._now += seconds


def paying(made, gate=None, **options):
    """An agent that pays twice, in one step each; `made` holds the key of each payment that was
    begun.
    """

    @tool
    async def pay(context: ToolContext) -> str:
        made.append(context.idempotency_key)
        if gate is not None:
            await gate.wait()
        return "paid"

    def reply(request):
        paid = sum(message.role == "tool" for message in request.messages)
        return ToolCalls("pay") if paid < 2 else "done"

    return ChatModelAgent(name="A", model=ScriptedModel([reply] * 9), tools=[pay], **options)


class Two:
    """Two processes with one store: `here` can be stalled, and `there` takes over from it."""

    def __init__(self, kind, store_of, store_recipe, *, clock=None):
        if kind == "memory":
            self.store = HeldStore() if clock is None else HeldStore(time=clock.boottime)
            self.other = self.store.door()
        else:
            self.store, self.other = held(store_recipe(kind, "shared")), store_of(kind, "shared")
        self.made, self.made_there, self.seen = [], [], []
        self.clock = clock
        self.system = beside(clock)

    def begin(self, gate=None, **options):
        self.run = Runner(
            paying(self.made, gate, **options),
            system=self.system,
            store=self.store,
            durability="step",
            keep="unfinished",
        ).query("go")
        self.looking = asyncio.create_task(self._look())
        return self.run

    async def _look(self):
        async for event in self.run:
            self.seen.append(event)
        return await self.run

    async def revoke(self):
        (key,) = await unfinished(self.other)
        await self.other.revoke(await self.other.holder(key))

    async def take_over(self):
        """Continue it there, to its end."""
        (again,) = await Runner(
            paying(self.made_there),
            system=beside(),
            store=self.other,
            durability="step",
            keep="unfinished",
        ).recover()
        assert (await soon(again)).status == "completed"

    async def close(self):
        await turns()
        assert await self.other.keys() == []
        await self.store.aclose()

    def check_lost(self, shown, begun):
        """It has shown and begun no more than that, and whatever was paid was paid under two
        keys.
        """
        result = self.looking.result()
        assert result.status == "failed"
        assert isinstance(result.error, RunLost), result.error
        assert [event.error for event in self.seen[shown:]] == [result.error], (
            "all that is shown is that it is lost"
        )
        assert self.made[begun:] == [], "a tool was started by an owner that had lost the run"
        assert len({*self.made, *self.made_there}) == 2, "what is made again has the same key"
        assert len(self.made_there) == len(set(self.made_there))


@pytest.mark.parametrize("number", range(1, LAST + 1))
@pytest.mark.parametrize("kind", KINDS)
def test_g13_a_write_that_stalls_until_another_owner_has_the_run_is_refused(
    run, store_of, store_recipe, kind, number
):
    async def main():
        two = Two(kind, store_of, store_recipe)
        gate = two.store.hold("append", "journal", skip=number)
        two.begin()
        await soon(gate.reached.wait())
        await two.revoke()
        await two.take_over()
        shown, begun = len(two.seen), len(two.made)
        gate.open()
        await soon(two.looking)
        two.check_lost(shown, begun)
        await two.close()

    run(main())


@pytest.mark.parametrize("number", range(1, LAST))
@pytest.mark.parametrize("kind", KINDS)
def test_g13_an_owner_that_does_not_hear_that_it_was_revoked_starts_at_most_what_it_has_recorded(
    run, store_of, store_recipe, kind, number
):
    """Its reply was written in time, and by its own clock it is alive: the tool that the reply
    wants may be started twice, with one key. Nothing behind it is.
    """

    async def main():
        two = Two(kind, store_of, store_recipe)
        gate = two.store.hold("append", "journal", after=True, skip=number)
        two.begin()
        await soon(gate.reached.wait())
        await two.revoke()
        await two.take_over()
        begun = len(two.made)
        gate.open()
        await soon(two.looking)
        assert len({*two.made, *two.made_there}) == 2, "what is made again has the same key"
        assert len(two.made) <= begun + (number in (1, 3)), (
            "only behind a reply is there a tool to be started"
        )
        await two.close()

    run(main())


@pytest.mark.parametrize("number", [1, 3])
def test_g13_an_owner_that_was_revoked_starts_no_tool_though_it_was_not_told(
    run, store_of, store_recipe, number, monkeypatch
):
    monkeypatch.setattr(lease, "FRESH_SECONDS", 0.0)  # as if it had taken longer to take over

    async def main():
        two = Two("memory", store_of, store_recipe)
        gate = two.store.hold("append", "journal", after=True, skip=number)
        two.begin()
        await soon(gate.reached.wait())
        await two.revoke()
        await two.take_over()
        begun = len(two.made)
        gate.open()
        await soon(two.looking)
        assert two.made[begun:] == []

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_g13_an_end_that_stalls_until_another_owner_has_the_run_takes_nothing_away(
    run, store_of, store_recipe, kind
):
    async def main():
        two = Two(kind, store_of, store_recipe)
        gate = two.store.hold("remove", "journal")
        two.begin(output_key="said")  # which is put there between the last step and the end
        await soon(gate.reached.wait())
        await two.revoke()
        holding = held(store_recipe(kind, "shared")) if kind != "memory" else two.store.door()
        end = holding.hold("remove", "journal")
        (again,) = await Runner(
            paying(two.made_there, output_key="said"),
            system=beside(),
            store=holding,
            durability="step",
            keep="unfinished",
        ).recover()
        await soon(end.reached.wait())
        before = await two.other.keys()
        gate.open()
        assert (await soon(two.looking)).status == "completed"
        assert await two.other.keys() == before
        end.open()
        assert (await soon(again)).status == "completed"
        assert two.made_there == []
        await turns()
        await holding.aclose()
        if kind != "memory":
            await two.close()

    run(main())


def test_g13_a_run_whose_last_steps_a_failover_has_lost_does_not_end(run, store_of, store_recipe):
    """It has no record to write, but its end stands on those that are lost."""

    async def main():
        two = Two("memory", store_of, store_recipe)
        gate = two.store.hold("remove", "journal")
        two.begin(output_key="said")  # which is put there between the last step and the end
        await soon(gate.reached.wait())
        (journal,) = [key for key in await two.other.keys() if ":journal:" in key]
        del two.store._entries[journal].records[-2:]
        gate.open()
        await soon(two.looking)
        assert len(await unfinished(two.other)) == 1
        await leases_of(two.system).pay_debts(StoreAccess(two.store))  # as its next renewal does
        await two.take_over()
        await two.close()

    run(main())


@pytest.mark.parametrize("number", range(1, LAST + 1))
@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it"])
@pytest.mark.parametrize("taken", [False, True], ids=["nobody has taken it", "another one has it"])
def test_g13_a_machine_that_was_suspended_starts_nothing_that_is_not_its_own_any_more(
    run, store_of, store_recipe, number, after, taken
):
    async def main():
        clock = Sleeps()
        two = Two("memory", store_of, store_recipe, clock=clock)
        gate = two.store.hold("append", "journal", skip=number, after=after)
        two.begin()
        await soon(gate.reached.wait())
        clock.suspend(LEASE_SECONDS + 1)
        taking = taken and not (after and number == LAST)
        if taking:
            await two.take_over()
        shown, begun = len(two.seen), len(two.made)
        gate.open()
        result = await soon(two.looking)
        if taken and not after:
            two.check_lost(shown, begun)
        elif taking:
            assert two.made[begun:] == [], "a tool was started by an owner that had lost the run"
            assert isinstance(result.error, RunLost)
        else:
            assert result.status == "completed" or isinstance(result.error, RunLost)
            if await two.other.keys():
                # Also if nothing was left to do but to write down that it has ended.
                await two.take_over()
            assert len({*two.made, *two.made_there}) == 2
        await two.close()

    run(main())


@pytest.mark.parametrize(
    "renewed", [False, True], ids=["it asks before its next step", "its timers come first"]
)
def test_g13_an_owner_that_is_alive_again_has_not_what_others_have_taken_meanwhile(
    run, store_of, store_recipe, renewed
):
    async def main():
        clock = Sleeps()
        two = Two("memory", store_of, store_recipe, clock=clock)
        gate = two.store.hold("append", "journal", skip=1, after=True)
        two.begin()
        await soon(gate.reached.wait())
        clock.suspend(LEASE_SECONDS + 1)
        await two.take_over()
        if renewed:
            clock.advance(0.001)
            await turns()
        gate.open()
        assert isinstance((await soon(two.looking)).error, RunLost)
        assert two.made == []
        await two.close()

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_g13_an_owner_that_is_revoked_loses_all_that_it_has_and_goes_on_as_another_one(
    run, store_of, store_recipe, new_gate, kind
):
    async def main():
        two, gate = Two(kind, store_of, store_recipe), new_gate()
        two.begin(gate)
        await gate.reached()
        await two.revoke()
        gate.open()
        result = await soon(two.looking)
        assert isinstance(result.error, RunLost)
        assert len(two.made) == 1
        await two.take_over()
        assert two.made_there[0] == two.made[0]
        after = await soon(
            Runner(
                paying([]), system=two.system, store=two.store, durability="step", keep="unfinished"
            ).query("go")
        )
        assert after.status == "completed"
        await two.close()

    run(main())
