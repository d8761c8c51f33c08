"""A play with everything in it that a run may have to go on from: workflows in workflows, tools at
once, a transfer, an agent tool.

What its models say follows from what they are asked, so that it is the same in every process. Each
call of a model or a tool is told to `note` when it begins and when it ends: "begin model Worker 0",
"begin tool Worker-0-a KEY".
"""

import asyncio
import json

from offbook.actors import Agent, ChatModelAgent, Loop, Parallel, Sequential, ToolContext, tool
from offbook.runtime import AgentEvent, Message, ToolCall, Usage


class Player:
    """A model whose n-th reply in a conversation is the n-th of its lines: a text, or the tools
    that it calls, with their arguments.
    """

    def __init__(self, name, note, *lines):
        self.name, self.note, self.lines = name, note, lines

    async def generate(self, request):
        turn = sum(message.role == "assistant" for message in request.messages)
        self.note(f"begin model {self.name}-{turn}")
        line = self.lines[turn]
        await asyncio.sleep(0)
        self.note(f"end model {self.name}-{turn}")
        usage = Usage(1, 1, 0, 1)
        if isinstance(line, str):
            return Message.assistant(line, usage=usage)
        calls = tuple(
            ToolCall(f"{self.name}-{turn}-{call}", call, json.dumps(arguments))
            for call, arguments in line.items()
        )
        return Message.assistant(f"{self.name}-{turn}", calls, usage=usage)


def make_tool(name, note, turns, **options):
    """A tool that takes some turns of the loop."""

    @tool(name=name, **options)
    async def work(context: ToolContext, text: str = "") -> str:
        note(f"begin tool {context.call_id} {context.idempotency_key}")
        for _ in range(turns):
            await asyncio.sleep(0)
        context.session[f"{context.call_id}"] = [turns, text]
        note(f"end tool {context.call_id} {context.idempotency_key}")
        return f"{name} {text}"

    return work


class Counter(Agent):
    """A custom agent: says how far it has come, which is in its state, and does one thing once."""

    def __init__(self, name, note, says=2):
        super().__init__(name=name)
        self.note = note
        self.says = says

    async def run(self, asked, context):
        async def make():
            self.note(f"begin step {self.name}")
            return [self.name, 1]

        made = await context.step("made", make)
        while context.state.get("said", 0) < self.says:
            context.state["said"] = context.state.get("said", 0) + 1
            yield AgentEvent.say(f"{made[0]} {context.state['said']}")


def make_play(note, *, ask=None):
    """The root agent. `ask`: a tool of the worker's, if it is to have one more."""

    def player(name, *lines, tools=(), **options):
        return ChatModelAgent(
            name=name,
            description=f"plays {name}",
            model=Player(name, note, *lines),
            tools=tools,
            **options,
        )

    rounds = Loop(
        name="Rounds",
        max_iterations=2,
        sub_agents=[
            player("Drafter", "draft one", "draft two"),
            Sequential(
                name="Review",
                sub_agents=[
                    player(
                        "Critic",
                        {"look": {"text": "x"}},
                        "fine",
                        {"look": {"text": "y"}},
                        "good",
                        tools=[make_tool("look", note, 1)],
                    )
                ],
            ),
        ],
    )
    helper = player(
        "Helper", {"dig": {"text": "deep"}}, "helped", tools=[make_tool("dig", note, 2)]
    )
    digger = player("Digger", {"dig": {"text": "deeper"}}, "hid", tools=[make_tool("dig", note, 0)])
    hidden = Sequential(name="Hidden", sub_agents=[digger, Counter("Quiet", note, says=0)])
    works = {
        "a": {"text": "1"},
        "b": {"text": "2"},
        "c": {"text": "3"},
        "Helper": {"request": "help"},
        "Hidden": {"request": "hide"},
    }
    last = {"say": {"text": "directly"}, "a": {"text": "4"}}
    if ask is not None:
        works["ask"] = {}
    worker = player(
        "Worker",
        works,
        last,
        tools=[
            *(make_tool(name, note, turns) for name, turns in (("a", 0), ("b", 3), ("c", 6))),
            make_tool("say", note, 1, return_directly=True),
            helper.as_tool(emit_events=True),
            hidden.as_tool(),
            *(() if ask is None else (ask,)),
        ],
        output_key="worked",
    )
    both = Parallel(
        name="Both",
        sub_agents=[
            Sequential(name="Left", sub_agents=[player("L1", "l one"), Counter("L2", note)]),
            player("Right", {"look": {"text": "r"}}, "right", tools=[make_tool("look", note, 2)]),
            Parallel(name="Inner", sub_agents=[Counter("I1", note), player("I2", "i two")]),
        ],
    )
    closer = player("Closer", "closed")
    router = player("Router", {"transfer_to_agent": {"agent_name": "Closer"}}, sub_agents=[closer])
    return Sequential(name="Play", sub_agents=[rounds, worker, both, router])
