"""G6: the events of a run have one order: what the consumer sees is what the result holds, and is
what is in the history that agents are given.
"""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.actors import Agent, Loop, Parallel, Sequential
from offbook.runtime import AgentEvent, Message, Runner


class Speaker(Agent):
    """Says its lines, waiting some turns before each."""

    def __init__(self, name, turns):
        super().__init__(name=name)
        self.turns = turns

    async def run(self, asked, context):
        for number, turns in enumerate(self.turns):
            for _ in range(turns):
                await asyncio.sleep(0)
            yield AgentEvent.say(f"{self.name}:{number}")


class Listener(Agent):
    """Keeps what it is given, entry by entry; it comes last."""

    def __init__(self):
        self.heard = []
        super().__init__(name="Listener", history=self.listen)

    def listen(self, entries):
        self.heard = [entry.message.text for entry in entries if not entry.is_user_input]
        return [Message.user("?")]

    async def run(self, asked, context):
        yield AgentEvent.say("heard")


@st.composite
def trees(draw, depth=2, path="A"):
    kind = (
        draw(st.sampled_from(("speaker", "sequential", "loop", "parallel"))) if depth else "speaker"
    )
    if kind == "speaker":
        return Speaker(path, draw(st.lists(st.integers(0, 3), max_size=3)))
    children = [
        draw(trees(depth - 1, f"{path}{number}")) for number in range(draw(st.integers(1, 3)))
    ]
    if kind == "loop":
        return Loop(name=path, sub_agents=children, max_iterations=2)
    return (Sequential if kind == "sequential" else Parallel)(name=path, sub_agents=children)


def by_children(agent, said):
    """The messages that were shown, in the order of the history: child by child, because of what
    was said at once each child's comes as a whole.
    """
    if not agent.sub_agents:
        return said
    return [
        text
        for child in agent.sub_agents
        for text in by_children(child, [text for text in said if text.startswith(child.name)])
    ]


def has_loop(agent):
    """Then what is shown does not tell the rounds apart."""
    return isinstance(agent, Loop) or any(has_loop(child) for child in agent.sub_agents)


async def played(agent):
    listener = Listener()
    run = Runner(Sequential(name="All", sub_agents=[agent, listener])).query("go")
    shown = [event async for event in run]
    return shown, await run, listener.heard


@settings(max_examples=40, deadline=None)
@given(tree=trees())
def test_g06_what_is_shown_is_what_is_kept_and_what_is_in_the_history(tree):
    shown, result, heard = asyncio.run(played(tree))
    assert tuple(shown) == result.events
    assert [event.seq for event in shown] == list(range(1, len(shown) + 1))
    said = [event.message.text for event in shown][:-1]
    assert sorted(said) == sorted(heard)
    for name in {text.partition(":")[0] for text in said}:
        own = [text for text in said if text.startswith(f"{name}:")]
        assert own == [text for text in heard if text.startswith(f"{name}:")], (
            "each agent's own, in the order in which they were shown"
        )
    if not has_loop(tree):
        assert heard == by_children(tree, said)


def test_g06_a_run_that_is_awaited_keeps_the_same_events_as_one_that_is_iterated(run):
    def tree():
        return Parallel(
            name="P",
            sub_agents=[Speaker("A", (1, 0, 2)), Speaker("B", (0, 3)), Speaker("C", (2, 2, 2))],
        )

    async def main():
        iterated = [
            (event.agent_name, event.message.text) async for event in Runner(tree()).query("go")
        ]
        awaited = [
            (event.agent_name, event.message.text)
            for event in (await Runner(tree()).query("go")).events
        ]
        assert iterated == awaited

    run(main())
