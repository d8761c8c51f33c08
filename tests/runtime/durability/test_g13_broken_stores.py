"""Whatever a store raises, and whenever it is closed, a run that is kept in it ends, says why, and
everybody who waits for it is told.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Runner, ScriptedModel, StoreError, ToolCalls, UsageError
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import Echo, HeldStore, beside, echoing, soon

KINDS = ("memory", "sqlite", "redis", "postgres")


class OwnError(Exception):
    """As a client of a database has them."""


# --- a store that is closed ---


@pytest.mark.parametrize("session", [False, True], ids=["alone", "in a session"])
@pytest.mark.parametrize("how", ["goes on", "cancel", "after_tools", "timeout"])
@pytest.mark.parametrize("kind", KINDS)
def test_g13_a_run_whose_store_is_closed_in_the_middle_ends(run, store_of, kind, how, session):
    async def main():
        store, model, clock = store_of(kind), Echo(), ManualClock()
        system = beside(clock)
        runner = Runner(echoing(model), system=system, store=store, durability="step")
        play = (runner.session("s") if session else runner).query("wait", timeout=5)
        await soon(model.asked.wait())
        waiting = [asyncio.create_task(soon(play)) for _ in range(2)]
        await store.aclose()
        if how == "goes on":
            model.gate.set()
        elif how == "timeout":
            clock.advance(6)
        else:
            play.cancel("immediate" if how == "cancel" else how)
            if how == "after_tools":
                model.gate.set()  # the others end it while its model still thinks
        results = await asyncio.gather(*waiting)
        assert {result.status for result in results} <= (
            {"failed"} if how == "goes on" else {"failed", "cancelled"}
        )
        if how == "goes on":
            assert isinstance(results[0].error, StoreError)
        await soon(system.stop())

    run(main())


@pytest.mark.parametrize("when", ["before it begins", "with its last step", "at its end"])
def test_g13_a_store_that_is_closed_at_either_end_of_a_run_leaves_nobody_waiting(run, when):
    async def main():
        store, model = HeldStore(), Echo()
        gate = (
            store.hold("claim") if when == "before it begins" else store.hold("remove", "journal")
        )
        # Which is put there between the last step and the end.
        agent = echoing(model, output_key="said") if when == "at its end" else echoing(model)
        play = Runner(agent, store=store, durability="step", keep="unfinished").query("x")
        play.start()
        await soon(gate.reached.wait())
        store.close()
        gate.open()
        if when == "before it begins":
            with pytest.raises(StoreError, match="closed"):
                await soon(play)
        elif when == "with its last step":
            result = await soon(play)
            assert (result.status, result.final_message) == ("failed", None), (
                "what is recorded nowhere is not shown"
            )
            assert isinstance(result.error, StoreError)
        else:
            assert (await soon(play)).status == "completed"

    run(main())


# --- a store that raises what it likes ---


@pytest.mark.parametrize(
    "error", [UsageError, TypeError, OwnError, KeyError, AssertionError, RecursionError]
)
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it"])
def test_g13_whatever_a_store_raises_ends_the_run_with_an_error_that_says_it(
    run, error, number, after
):
    @tool
    async def pay() -> str:
        return "paid"

    def reply(request):
        return (
            ToolCalls("pay")
            if sum(message.role == "tool" for message in request.messages) < 2
            else "done"
        )

    async def main():
        store = HeldStore()
        works = store.fail("append", "journal", error=error, after=after, skip=number)
        play = Runner(
            ChatModelAgent(name="A", model=ScriptedModel([reply] * 9), tools=[pay]),
            store=store,
            durability="step",
        ).query("go")
        if number == 0:
            with pytest.raises(StoreError, match="it is broken") as caught:
                await soon(play)
            raised = caught.value
        else:
            result = await soon(play)
            assert result.status == "failed"
            raised = result.error
            assert isinstance(raised, StoreError)
        assert isinstance(raised.__cause__, error) or isinstance(raised, error)
        works()
        if number == 0:
            assert store.open_keys() == [], "its caller was told that it has not begun"

    run(main())


@pytest.mark.parametrize("error", [UsageError, TypeError, OwnError])
@pytest.mark.parametrize("word", ["claim", "read", "append"])
def test_g13_whatever_a_store_raises_ends_a_turn_and_the_next_one_has_its_own(run, error, word):
    async def main():
        store = HeldStore()
        session = Runner(echoing(), store=store).session("s")
        store.fail(word, "session:", error=error, once=True)
        first, second = session.query("a"), session.query("b")
        try:
            assert isinstance((await soon(first)).error, StoreError)
        except StoreError as raised:
            assert "it is broken" in str(raised)
        assert (await soon(second)).final_output == "1 b"

    run(main())
