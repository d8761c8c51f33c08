"""Ids, and other arguments of runs that are kept: what cannot be kept, with all that is derived
from it, is said before anything happens.
"""

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, MemoryStore, Runner, ScriptedModel, ToolCalls, UsageError
from tests.doubles.held_stores import Echo, HeldStore, echoing, soon

KINDS = ("memory", "sqlite", "redis", "postgres")


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("size", [1501, 2001, 2047, 2048, 5000])
def test_an_id_that_is_too_long_for_what_is_derived_from_it_is_said_before_the_run_begins(
    run, durability, size
):
    async def main():
        store, model = HeldStore(), Echo()
        runner = Runner(echoing(model), store=store, durability=durability)
        with pytest.raises(UsageError, match="bytes"):
            await soon(runner.query("x", checkpoint_id="x" * size))
        assert store.calls == []
        assert not model.asked.is_set()

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_id_is_kept_found_and_continued_as_any_other(run, store_of, kind, durability):
    async def main():
        name = "é" * 750

        @tool(needs_approval=True)
        async def pay() -> str:
            return "paid"

        agent = ChatModelAgent(
            name="A",
            model=ScriptedModel([ToolCalls("pay"), ToolCalls("pay"), "done", "done"]),
            tools=[pay],
        )
        runner = Runner(agent, store=store_of(kind), durability=durability)
        (waits,) = (await soon(runner.query("x", checkpoint_id=name))).interrupts
        (next_one,) = (await soon(runner.approve(waits.id))).interrupts
        branch = runner.resume(f"{name}@1", data=True)
        assert (await soon(branch)).status in ("interrupted", "completed")
        assert (await soon(runner.approve(next_one.id))).status == "completed"

    run(main())


def test_the_id_of_a_session_that_is_too_long_is_said_before_its_first_turn(run):
    async def main():
        with pytest.raises(UsageError):
            await soon(Runner(echoing(), store=MemoryStore()).session("s" * 2048).query("x"))

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("size", [200, 201, 1500])
def test_a_run_with_a_long_id_of_its_own_is_resumed_and_asked_for_again(run, durability, size):
    @tool(needs_approval=True)
    async def pay() -> str:
        return "paid"

    async def main():
        agent = ChatModelAgent(
            name="A", model=ScriptedModel([ToolCalls("pay"), "done"]), tools=[pay]
        )
        runner = Runner(agent, store=MemoryStore(), durability=durability)
        name = "r" * size
        (waits,) = (await soon(runner.query("x", run_id=name))).interrupts
        assert (await soon(runner.approve(waits.id))).final_output == "done"
        assert (await soon(runner.query("x", run_id=name))).final_output == "done"
        assert (await soon(runner.attach(name))).final_output == "done"

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize(("agent", "size"), [("a" * 600, 1500), ("ä" * 600, 1000)])
@pytest.mark.parametrize("call", ["query", "attach", "retry"])
def test_an_id_that_is_too_long_beside_the_name_of_its_agent_is_said_at_once(
    run, durability, agent, size, call
):
    async def main():
        store = HeldStore()
        runner = Runner(
            ChatModelAgent(name=agent, model=Echo()), store=store, durability=durability
        )
        with pytest.raises(UsageError, match="bytes longer than the limit"):
            await soon(
                runner.query("x", run_id="r" * size)
                if call == "query"
                else getattr(runner, call)("r" * size)
            )
        assert store.calls == []

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_the_name_of_an_agent_whose_runs_cannot_be_kept_is_said_when_the_runner_is_made(durability):
    with pytest.raises(UsageError, match="bytes longer than the limit"):
        Runner(
            ChatModelAgent(name="a" * 3000, model=Echo()),
            store=MemoryStore(),
            durability=durability,
        )


@pytest.mark.parametrize(
    "keep", [float("inf"), float("nan"), 1e11, 10**400, -1, True, "for ever", ()]
)
def test_a_time_for_which_no_store_can_keep_an_outcome_is_said_when_the_runner_is_made(keep):
    with pytest.raises(UsageError, match="keep must be"):
        Runner(echoing(), store=MemoryStore(), durability="step", keep=keep)


@pytest.mark.parametrize(
    "seconds", [1, 1.99, -5, 0, 3601, float("inf"), float("nan"), 10**400, True, "30", None]
)
def test_a_lease_that_is_no_time_or_too_short_is_said_when_the_system_is_made(seconds):
    with pytest.raises(UsageError, match="lease_seconds must be from 2 to 3600"):
        ActorSystem(lease_seconds=seconds)


@pytest.mark.parametrize(
    "ask",
    [
        *(
            lambda runner, name=name, number=number: runner.recover(**{name: number})
            for name in ("limit", "max_attempts", "concurrency")
            for number in (0, True, 1.5, "1")
        ),
        lambda runner: runner.recover(where="all"),
        *(
            lambda runner, after=after: runner.attach("r", after=after)
            for after in (-1, True, 1.5, "1", None)
        ),
        *(
            lambda runner, seconds=seconds: runner.recover_every(seconds)
            for seconds in (0, -1, float("nan"), float("inf"), "3", True, 10**400)
        ),
        lambda runner: runner.retry(5),
        lambda runner: runner.retry(""),
    ],
)
def test_what_cannot_be_looked_for_is_said(run, ask):
    async def main():
        async with ActorSystem() as system:
            made = ask(Runner(echoing(), system=system, store=MemoryStore(), durability="step"))
            await soon(made)

    with pytest.raises(UsageError):
        run(main())


def test_any_number_of_runs_may_be_recovered_at_once(run):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(echoing(), system=system, store=MemoryStore(), durability="step")
            assert (
                await soon(runner.recover(max_attempts=10**400, limit=10**400, concurrency=10**400))
                == []
            )

    run(main())
