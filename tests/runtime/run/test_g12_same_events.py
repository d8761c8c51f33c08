"""G12: the same definitions, inputs and model replies give the same events in the same order,
parallel lanes included.
"""

import asyncio
import gc
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.actors import Agent, Loop, Parallel, Sequential
from offbook.runtime import ActorSystem, AgentEvent, BreakLoop, Exit, Runner


class Scripted(Agent):
    """Does what its script says: waits some turns, burns time, says something, ends."""

    def __init__(self, name, script):
        super().__init__(name=name)
        self.script = script

    async def run(self, input, context):
        for number, (turns, kind) in enumerate(self.script):
            for _ in range(turns):
                await asyncio.sleep(0)
            if kind == "burn":
                until = time.perf_counter() + 0.0003 * (1 + id(context) % 3)  # never the same twice
                while time.perf_counter() < until:
                    pass
            elif kind == "exit":
                yield AgentEvent.of(action=Exit())
            elif kind == "break":
                yield AgentEvent.of(action=BreakLoop())
            else:
                yield AgentEvent.say(f"{number} after {len(input.messages)}")


SCRIPTS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["say", "say", "say", "burn", "break", "exit"])),
    max_size=5,
)


def trees(depth):
    if depth == 0:
        return SCRIPTS.map(lambda script: ("leaf", script))
    kinds = st.sampled_from(["sequential", "parallel", "loop"])
    return st.one_of(trees(0), st.tuples(kinds, st.lists(trees(depth - 1), min_size=1, max_size=4)))


def build(tree, counter):
    kind, content = tree
    counter[0] += 1
    name = f"{kind[0]}{counter[0]}"
    if kind == "leaf":
        return Scripted(name, content)
    children = [build(child, counter) for child in content]
    if kind == "loop":
        return Loop(name=name, sub_agents=children, max_iterations=2)
    return (Sequential if kind == "sequential" else Parallel)(name=name, sub_agents=children)


async def play(agent, disturb):
    async with ActorSystem() as system:
        disturbing = asyncio.ensure_future(_disturb()) if disturb else None
        result = await Runner(agent, system=system).query("go")
        if disturbing is not None:
            disturbing.cancel()
    return [
        (
            event.seq,
            event.agent_name,
            event.run_path,
            event.message and event.message.text,
            event.action,
        )
        for event in result.events
    ], result.status


async def _disturb():
    while True:
        gc.collect(0)
        await asyncio.sleep(0)


@settings(max_examples=40, deadline=None)
@given(tree=trees(2))
def test_g12_any_tree_gives_the_same_events_twice(tree):
    agent = build(tree, [0])
    first = asyncio.run(play(agent, disturb=False))
    again = asyncio.run(play(agent, disturb=True))
    assert first == again


def test_g12_a_hundred_lanes_give_the_same_events_however_long_each_takes():
    agent = Parallel(
        name="p",
        sub_agents=[
            Scripted(f"a{number}", [(number % 3, "burn"), (1, "say"), (number % 2, "say")])
            for number in range(100)
        ],
    )
    assert asyncio.run(play(agent, disturb=False)) == asyncio.run(play(agent, disturb=True))
