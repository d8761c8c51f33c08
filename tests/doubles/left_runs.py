"""What the tests of recovering share: an agent that can be held in the middle of a run, and a run
that is left there.
"""

from offbook.actors import Agent
from offbook.runtime import ActorSystem, AgentEvent, Runner
from offbook.runtime.durability.leases import leases_of
from offbook.runtime.durability.store_access import StoreAccess
from tests.doubles.held_stores import soon


class Counts(Agent):
    """Puts a session value, waits at its gate if it has one, says what it was told, and puts
    another one.
    """

    def __init__(self, gate=None, *, key="n"):
        super().__init__(name="A")
        self.gate = gate
        self.key = key
        self.at_work = []  # the runs, each as often as it was begun or continued

    async def run(self, input, context):
        self.at_work.append(context.run_id)
        if not context.state:
            context.state["begun"] = True
            context.session[self.key] = 1
            yield AgentEvent.say("begun")
        if self.gate is not None:
            await self.gate.wait()
        context.session[f"{self.key} end"] = 1
        yield AgentEvent.say("end")


async def left_in_the_middle(store, agent, reached, session=None):
    """A run in a system that is left while it is at work: as if its process had died."""
    async with ActorSystem() as system:
        runner = Runner(agent, system=system, store=store, durability="step")
        play = runner.query("go") if session is None else runner.session(session).query("go")
        await soon(reached.wait())
    return play


async def lose_all(system, store):
    """The store takes the owner for dead, as if its process had been killed."""
    await store.revoke(leases_of(system)._by_store[StoreAccess(store)].name)
