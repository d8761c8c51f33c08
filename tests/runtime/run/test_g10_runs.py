"""G10, in runs: a slow consumer slows its run; one that goes away cancels it; nothing grows without
a bound.
"""

import asyncio

import pytest

from offbook.actors import Agent, Parallel
from offbook.runtime import ActorSystem, AgentEvent, Runner
from offbook.runtime.testing import ManualClock


class Endless(Agent):
    def __init__(self, name="endless"):
        super().__init__(name=name)
        self.said = 0

    async def run(self, input, context):
        while True:
            self.said += 1
            yield AgentEvent.say("more")


@pytest.mark.parametrize("buffer", [1, 2, 7])
@pytest.mark.parametrize("lanes", [1, 5])
def test_g10_a_slow_consumer_slows_its_run(run, buffer, lanes):
    async def main():
        agents = [Endless(f"e{number}") for number in range(lanes)]
        taken = 0
        a_run = Runner(Parallel(name="p", sub_agents=agents), event_buffer=buffer).query("go")
        async for _ in a_run:
            taken += 1
            for _ in range(20):
                await asyncio.sleep(0)  # every chance to run ahead
            # What was taken, what fits into the buffer, one that is being shown, and one that each
            # agent has in hand.
            assert sum(agent.said for agent in agents) <= taken + buffer + 1 + lanes
            if taken == 50:
                break
        assert (await a_run).status == "cancelled"

    run(main())


def test_g10_a_consumer_that_goes_away_cancels_its_run_also_when_the_buffer_is_full(run):
    async def main():
        async with ActorSystem() as system:
            agent = Endless()
            a_run = Runner(agent, system=system, event_buffer=2).query("go")
            async for _ in a_run:
                break
            result = await a_run
            assert result.status == "cancelled"
            assert system.stats().actors == 0
            assert agent.said < 10

    run(main())


def test_g10_a_run_that_waits_for_its_consumer_ends_at_its_timeout(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            a_run = Runner(Endless(), event_buffer=2, system=system).query("go", timeout=10)
            events = a_run.__aiter__()
            await anext(events)
            assert a_run.status == "running"
            clock.advance(11)  # while the consumer looks away
            seen = [event async for event in events]
            assert len(seen) < 10
            assert seen[-1].error is not None
            assert a_run.status == "cancelled"

    run(main())


def test_g10_others_have_their_turn_beside_an_agent_that_never_waits(run):
    async def main():
        a_run = Runner(Endless()).query("go", timeout=0.2)
        waiting = asyncio.ensure_future(a_run)
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 100

    run(main())
