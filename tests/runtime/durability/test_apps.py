"""Programs that share a store and the name of an agent: each recovers its own runs."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, MemoryStore, Message, Runner, ToolCall, UsageError
from tests.doubles.held_stores import soon


class Desk:
    """Calls the tool that it is made for. While it has a gate, it waits there."""

    def __init__(self, tool_name, gate=None):
        self.tool_name, self.gate, self.reached = tool_name, gate, asyncio.Event()

    async def generate(self, request):
        if self.gate is not None:
            self.reached.set()
            await self.gate.wait()
        if request.messages[-1].role == "tool":
            return Message.assistant(f"told: {request.messages[-1].text}")
        return Message.assistant("", (ToolCall("c1", self.tool_name, "{}"),))


def agent_of(tool_name, gate=None, name="desk"):
    async def work() -> str:
        """Work."""
        return f"{tool_name} done"

    model = Desk(tool_name, gate)
    return ChatModelAgent(name=name, model=model, tools=[tool(name=tool_name)(work)]), model


async def leave(store, run_id, tool_name, **options):
    """A run of a program with that tool, whose process is lost."""
    agent, model = agent_of(tool_name, asyncio.Event())
    async with ActorSystem() as system:
        begun = Runner(agent, store=store, durability="step", system=system, **options).query(
            "go", run_id=run_id
        )
        await soon(model.reached.wait())
    return begun


def program(store, tool_name, **options):
    return Runner(agent_of(tool_name)[0], store=store, durability="step", **options)


async def recovered(runner):
    return {run.id: (await run).text for run in await runner.recover()}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_a_run_is_recovered_by_its_app_alone(run, store_of, kind):
    async def main():
        store = store_of(kind)
        await leave(store, "of-shop", "ship", app="shop")
        await leave(store, "of-blog", "ship", app="blog")
        assert await recovered(program(store, "ship", app="other")) == {}
        assert await recovered(program(store, "ship")) == {}
        assert await recovered(program(store, "ship", app="shop")) == {"of-shop": "told: ship done"}
        found = []
        for one in await program(store, "ship", app="blog").recover(
            where=lambda one: not found.append(one)
        ):
            await one
        assert [(one.id, one.app) for one in found] == [("of-blog", "blog")]

    run(main())


def test_without_an_app_a_run_whose_tools_or_agents_are_missing_is_left_alone_with_a_warning(
    run, caplog
):
    async def main():
        store = MemoryStore()
        await leave(store, "ships", "ship")
        posts = program(store, "post")
        for _ in range(3):
            assert await recovered(posts) == {}
        (told,) = [
            record.getMessage()
            for record in caplog.records
            if "is left to the program" in record.getMessage()
        ]
        assert (
            "Run ships of desk is left to the program that started it: the program that "
            "started it has tool ship, which this one lacks" in told
        )
        assert (await posts.info("ships")).attempts == 0
        assert await recovered(program(store, "ship")) == {"ships": "told: ship done"}

    run(main())


def test_a_program_with_more_tools_than_before_recovers_its_runs(run):
    async def main():
        store = MemoryStore()
        await leave(store, "ships", "ship")
        agent, _ = agent_of("ship")
        more = ChatModelAgent(
            name="desk", model=agent.model, tools=[*agent.tools, *agent_of("post")[0].tools]
        )
        assert await recovered(Runner(more, store=store, durability="step")) == {
            "ships": "told: ship done"
        }

    run(main())


def test_a_program_that_is_given_an_app_recovers_its_runs_of_before_and_they_are_its_own_from_then_on(
    run,
):
    async def main():
        store = MemoryStore()
        await leave(store, "ships", "ship")
        agent, model = agent_of("ship", asyncio.Event())
        async with ActorSystem() as system:
            await Runner(agent, store=store, durability="step", system=system, app="shop").recover()
            await soon(model.reached.wait())
        assert await recovered(program(store, "ship")) == {}
        assert await recovered(program(store, "ship", app="shop")) == {"ships": "told: ship done"}

    run(main())


def test_who_asks_for_a_run_of_another_app_by_its_id_follows_it(run):
    async def main():
        store = MemoryStore()
        await leave(store, "r", "ship", app="shop")
        async with ActorSystem() as system:
            asked = program(store, "ship", app="blog", system=system).query("go", run_id="r")
            assert await recovered(program(store, "ship", app="shop", system=system)) == {
                "r": "told: ship done"
            }
            assert (await soon(asked)).text == "told: ship done"

    run(main())


@pytest.mark.parametrize("app", ["", 7, "x" * 201])
def test_an_app_is_a_name(app):
    with pytest.raises(UsageError, match=r"Runner: app must be the name of the program, .* got"):
        Runner(agent_of("ship")[0], store=MemoryStore(), app=app)
