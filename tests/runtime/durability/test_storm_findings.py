"""What storms have found: a run that was set aside, the fence that a tool is given, connections
that end before their process does.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    Interrupted,
    MemoryStore,
    PostgresStore,
    Runner,
    ScriptedModel,
    ToolCalls,
)
from offbook.runtime.durability.lease import Lease
from offbook.runtime.durability.leases import leases_of
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.errors import RunLost
from tests.doubles.left_runs import lose_all
from tests.doubles.watched_stores import unfinished


def test_g08_a_run_that_was_set_aside_says_so_to_whoever_asks_for_it_by_its_id(run):
    begun = asyncio.Event()

    @tool
    async def hang() -> str:
        begun.set()
        return await asyncio.get_running_loop().create_future()

    agent = ChatModelAgent(name="A", model=ScriptedModel([ToolCalls("hang")]), tools=[hang])

    async def main():
        store = MemoryStore()
        async with ActorSystem() as system:
            Runner(agent, system=system, store=store, durability="step").query(
                "go", run_id="r", detached=True
            )
            await begun.wait()
            await lose_all(system, store)
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability="step")
            assert await runner.recover(max_attempts=1) == []
            assert [stuck.id for stuck in await runner.stuck()] == ["r"]
            assert (await runner.attach("r")).status == "stuck"
            assert (await runner.query("go", run_id="r")).status == "stuck"

    run(main())


def test_g13_a_tool_is_given_the_fence_under_which_it_is_called(run):
    seen = []

    @tool
    def look(context: ToolContext) -> str:
        seen.append(context.fence)
        return "seen"

    async def main():
        runner = Runner(
            ChatModelAgent(
                name="A", model=ScriptedModel([ToolCalls("look"), "done"]), tools=[look]
            ),
            store=MemoryStore(),
            durability="step",
        )
        assert (await runner.query("go")).status == "completed"
        assert seen[0] > 0

    run(main())


def test_g13_what_was_taken_because_a_connection_had_ended_is_noticed_before_anything_begins(
    run, postgres_server, store_recipe
):
    import psycopg

    _, args, options = store_recipe("postgres")
    lease = Lease("key", "run 1", lambda: None)

    async def main():
        async with (
            PostgresStore(*args, **options) as store,
            PostgresStore(*args, **options) as other,
            ActorSystem() as system,
        ):
            assert await leases_of(system).take(StoreAccess(store), lease)
            with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(%s, 5000)",
                    (store._worker()._backend._connection.info.backend_pid,),
                )
            await other.keep_alive("another", 60, first=True)
            async with asyncio.timeout(10):
                while await other.claim("key", "another") is None:
                    await asyncio.sleep(0.01)
                # What the store has just said is believed for a tenth of a second.
                while lease.is_fresh():
                    await asyncio.sleep(0.01)
            with pytest.raises(RunLost):
                await lease.make_sure()

    run(main())


def test_g07_an_interrupt_that_could_not_be_kept_because_the_run_was_lost_is_not_shown(run):
    store = MemoryStore()

    @tool
    async def ask(context: ToolContext) -> str:
        (key,) = await unfinished(store)
        await store.revoke(await store.holder(key))
        return context.interrupt("sure?")

    async def main():
        runner = Runner(
            ChatModelAgent(name="A", model=ScriptedModel([ToolCalls("ask")]), tools=[ask]),
            store=store,
            durability="step",
        )
        result = await runner.query("go")
        assert isinstance(result.error, RunLost)
        assert [event for event in result.events if isinstance(event.action, Interrupted)] == []
        assert result.status != "interrupted"

    run(main())
