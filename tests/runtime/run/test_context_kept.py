"""The caller's own `context=` of a run: stored with it where that is possible, and restored in
whichever process continues it.
"""

import asyncio

import pytest

from offbook.actors import Agent
from offbook.runtime import ActorSystem, AgentEvent, MemoryStore, Runner
from tests.doubles.held_stores import beside


class Tenants(Agent):
    """Notes the context that each of its steps sees, and waits for an answer or at a gate in
    between.
    """

    def __init__(self, *, asks):
        super().__init__(name="A")
        self.asks, self.seen, self.gate, self.reached = asks, [], asyncio.Event(), asyncio.Event()

    async def run(self, input, context):
        self.seen.append(context.run.context)
        if not context.state.get("first"):
            context.state["first"] = True
            yield AgentEvent.say("one")
            if self.asks:
                yield context.interrupt("?")
                return
        self.reached.set()
        await self.gate.wait()
        yield AgentEvent.say("two")


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("given", [None, {"tenant": "other"}])
def test_a_run_that_is_resumed_has_its_context_or_a_new_one(run, durability, given):
    async def main():
        agent, store = Tenants(asks=True), MemoryStore()
        agent.gate.set()
        first = await Runner(agent, system=beside(), store=store, durability=durability).query(
            "q", run_id="r", context={"tenant": "ada"}
        )
        assert first.interrupts
        await Runner(agent, system=beside(), store=store, durability=durability).resume(
            "r", context=given
        )
        assert agent.seen == [{"tenant": "ada"}, given or {"tenant": "ada"}]

    run(main())


@pytest.mark.parametrize("answered_with", [None, {"tenant": "other"}])
def test_a_run_that_is_recovered_has_the_last_context_that_it_was_given(run, answered_with):
    async def main():
        agent, store = Tenants(asks=answered_with is not None), MemoryStore()
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability="step")
            if answered_with is None:
                runner.query("q", run_id="r", context={"tenant": "ada"}, detached=True)
            else:
                await runner.query("q", run_id="r", context={"tenant": "ada"})
                runner.resume("r", context=answered_with)
            await agent.reached.wait()
        agent.gate.set()
        async with ActorSystem() as system:
            (again,) = await Runner(agent, system=system, store=store, durability="step").recover()
            await again
        assert agent.seen[-1] == (answered_with or {"tenant": "ada"})

    run(main())


def test_a_context_that_cannot_be_stored_is_there_as_long_as_the_run_is_in_its_process(run):
    async def main():
        agent, store, own = Tenants(asks=True), MemoryStore(), object()
        agent.gate.set()
        runner = Runner(agent, system=beside(), store=store, durability="step")
        await runner.query("q", run_id="r", context=own)
        await runner.resume("r")
        assert agent.seen == [own, None]

    run(main())
