"""Makes the files of a checkpoint format, which every later version has to read:
tests/programs/make_checkpoints.py

One is made for each kind of what lies in stores, as `format-N-KIND.bin` in
tests/fixtures/checkpoints: a msgpack of what was in the store, and of what came of going on from
there. Files that are there already are left alone: once a format is released, they are not made
anew, and the agents here are not changed.
"""

import asyncio
import decimal
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgpack

from offbook.actors import Agent, ChatModelAgent, Loop, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    ImagePart,
    MemoryStore,
    Message,
    ModelOptions,
    Options,
    Runner,
    ToolCall,
    ToolOptions,
    Usage,
    register_type,
)
from offbook.runtime.durability.compatibility import FORMAT
from offbook.runtime.durability.rows_as_values import as_values, read_value

FOLDER = Path(__file__).parents[1] / "fixtures" / "checkpoints"


@register_type(name="fixture.Cart")
@dataclass(frozen=True)
class Cart:
    items: tuple[str, ...]
    price: decimal.Decimal


VALUES = {
    "text": "größer",
    "numbers": [1, 2.5, None, True, 2**70],
    "tuple": (1, (2, 3)),
    "set": {"a"},
    "bytes": b"\x00\xff",
    "when": datetime(2025, 3, 4, 5, 6, 7, 8, UTC),
    "cart": Cart(("apple", "pear"), decimal.Decimal("1.50")),
    "usage": Usage(1, 2, 3, 4),
    "said": Message.user([ImagePart(data=b"png", media_type="image/png"), "what is this?"]),
}
OPTIONS = [
    Options(colour="red"),
    ToolOptions(agents=("I2",), limit=3),
    ModelOptions(temperature=0.5),
]


class Player:
    """Says its lines in their order; each says how much it was given."""

    def __init__(self, name, *lines):
        self.name, self.lines = name, lines

    async def generate(self, request):
        turn = sum(message.role == "assistant" for message in request.messages)
        line = self.lines[turn]
        usage = Usage(10, 5, 2, 1)
        if isinstance(line, str):
            return Message.assistant(
                f"{line} after {len(request.messages)}", usage=usage, reasoning="because"
            )
        calls = [
            ToolCall(f"{self.name}-{turn}-{name}", name, json.dumps(arguments))
            for name, arguments in line.items()
        ]
        return Message.assistant("", calls, usage=usage)


def player(name, *lines, **options):
    return ChatModelAgent(
        name=name, description=f"plays {name}", model=Player(name, *lines), **options
    )


@tool
async def ask(context: ToolContext, what: str) -> str:
    first = context.interrupt({"question": what}, state=("asked", 1))
    return (
        f"{what}: {first}, having noted {context.interrupt_state}, as "
        f"{context.options.get('limit')}"
    )


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    return f"paid {amount}"


@tool
async def look(text: str) -> str:
    return f"saw {text}"


@tool(return_directly=True)
async def direct() -> str:
    return "directly"


class Custom(Agent):
    """Notes in its state how far it has come, and asks in between."""

    async def run(self, asked, context):
        async def make():
            return {"made": [len(asked.messages)]}

        made = await context.step("made", make)
        if not context.state.get("said"):
            context.state["said"] = True
            yield AgentEvent.of(
                Message.assistant(f"{self.name} made {made['made']}"), custom_output=("shown", 1)
            )
        if context.resume is None or not context.resume.is_target:
            yield context.interrupt(Cart((self.name,), decimal.Decimal(1)), state={"waits": (1, 2)})
            return
        yield AgentEvent.say(
            f"{self.name} heard {context.resume.data}, having noted {context.resume.state}"
        )


def nested():
    """Workflows in workflows, an agent that is called as a tool, one that was handed over to, and
    several who wait at once.
    """
    inner = Sequential(
        name="Inner",
        sub_agents=[
            player("I1", "one"),
            player(
                "I2", {"look": {"text": "x"}, "ask": {"what": "deep"}}, "two", tools=[look, ask]
            ),
        ],
    )
    outer = player(
        "Outer",
        {"look": {"text": "y"}, "Inner": {"request": "dig"}, "pay": {"amount": 5}, "direct": {}},
        tools=[look, inner.as_tool(emit_events=True), pay, direct],
        output_key="outer",
    )
    router = player(
        "Router",
        {"transfer_to_agent": {"agent_name": "Sub"}},
        sub_agents=[player("Sub", {"ask": {"what": "sub"}}, "sub done", tools=[ask])],
    )
    loop = Loop(
        name="L",
        max_iterations=2,
        sub_agents=[
            Sequential(
                name="S", sub_agents=[player("Turn", "turn", "turn again"), Custom(name="C")]
            )
        ],
    )
    both = Parallel(name="P", sub_agents=[outer, router, loop])
    return Sequential(
        name="Root",
        sub_agents=[
            player("First", {"look": {"text": "z"}}, "first", tools=[look]),
            both,
            player("Last", "last"),
        ],
    )


def long():
    """So much is said before somebody waits that it is kept in pieces."""
    lines = [{"look": {"text": str(number)}} for number in range(40)]
    return player(
        "Long",
        *lines,
        {"ask": {"what": "now"}},
        *lines[:5],
        {"ask": {"what": "again"}},
        "end",
        tools=[look, ask],
        max_iterations=60,
    )


def told(events):
    """Events as plain data, those of each agent by themselves: what they say of messages, actions
    and errors.
    """
    found = {}
    for event in events:
        message = event.message
        said = (
            None
            if message is None
            else [
                message.role,
                message.text,
                [[call.id, call.name, call.arguments] for call in message.tool_calls],
            ]
        )
        found.setdefault("/".join(event.run_path), []).append(
            [
                event.agent_name,
                said,
                type(event.action).__name__,
                None if event.error is None else str(event.error),
            ]
        )
    for lines in found.values():
        lines.sort(key=lambda line: (line[1] is not None and line[1][0] == "tool", str(line)))
    return found


def waiting(result):
    """For what it waits: the id of each interrupt, and the answer to it."""
    return {
        context.id: True if context.address[-1].name == "pay" else "yes"
        for context in result.interrupts
    }


async def to_the_end(runner, targets):
    """What comes of giving these answers, until nobody waits any more."""
    parts = []
    while targets:
        running = runner.resume("c", targets)
        events = [event async for event in running]
        result = await running
        parts.append(told(events))
        targets = waiting(result)
    assert {key: value for key, value in result.session_values.items() if key != "outer"} == VALUES
    usage = result.usage
    counted = [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests]
    return {
        "parts": parts,
        "status": result.status.value,
        "usage": counted,
        "seq": result.events[-1].seq,
    }


AGENTS = {"image": nested, "journal": nested, "lost": nested, "long": long, "session": long}


def content_of(store):
    """What is in it; the rows of unfinished runs as the values that stand for them in a store that
    has no rows.
    """
    content = {key: [entry.value, list(entry.records)] for key, entry in store._entries.items()}
    for row, *_ in store._runs._entries.values():
        if row.claim:
            content[row.claim] = [as_values([row])[0].value, []]
    return content


async def fill(content):
    store = MemoryStore()
    for key, (value, records) in content.items():
        if key.startswith("offbook:open:"):
            await store.commit(None, [read_value(key, value)])
        elif value is not None:
            await store.set(key, value)
        if records:
            await store.append(key, records)
    return store


async def go_on(kind, content, targets):
    """What comes of what is in a store. `targets`: the answers to what waits there."""
    runner = Runner(
        AGENTS[kind](),
        store=await fill(content),
        durability="step" if kind in ("journal", "lost") else "interrupt",
    )
    if kind == "session":
        session = runner.session("s")
        said = [[message.role, message.text] for message in await session.history()]
        assert await session.values() == {"text": "and now?", "tuple": (1, 2)}
        return {"history": said}
    if kind == "lost":
        (recovered,) = await runner.recover()
        events = [event async for event in recovered]
        return {"recovered": told(events), **await to_the_end(runner, waiting(await recovered))}
    return await to_the_end(runner, targets)


async def make(kind):
    """What is in a store, of that kind, and the answers to what waits there."""
    store = MemoryStore()
    if kind == "session":
        session = Runner(player("A", "one", "two"), store=store).session("s")
        for text in ("hello", "and now?"):
            await session.query(text, session_values={"text": text, "tuple": (1, 2)})
        return content_of(store), {}
    runner = Runner(
        AGENTS[kind](),
        store=store,
        durability="step" if kind in ("journal", "lost") else "interrupt",
    )
    running = runner.run(
        [Message.system("be brief"), VALUES["said"]],
        checkpoint_id="c",
        session_values=VALUES,
        options=OPTIONS,
    )
    result = await running
    assert result.status == "interrupted", result
    if kind == "long":
        result = await runner.resume("c", data="yes")
    content = content_of(store)
    if kind == "lost":
        journal = f"offbook:journal:{running.id}"
        content = {
            journal: [None, content[journal][1][:-6]],
            f"offbook:open:4:Root:{running.id}": [await unfinished_row(running.id), []],
        }
    return content, waiting(result)


async def unfinished_row(run_id):
    """The row of a run that is not finished: taken from one that is not."""
    store, rows = MemoryStore(), []

    class Looks(Agent):
        async def run(self, asked, context):
            rows.append(await store.run_entry(context.run_id))
            yield AgentEvent.say("looked")

    await Runner(Looks(name="Root"), store=store, durability="step").query(
        "go", checkpoint_id="c", run_id=run_id
    )
    return as_values(rows)[0].value


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind in AGENTS:
        path = FOLDER / f"format-{FORMAT}-{kind}.bin"
        if path.exists():
            print(f"{path.name} is there already", file=sys.stderr)
            continue
        content, targets = asyncio.run(make(kind))
        path.write_bytes(
            msgpack.packb(
                {
                    "content": content,
                    "targets": targets,
                    "then": asyncio.run(go_on(kind, content, targets)),
                }
            )
        )


if __name__ == "__main__":
    main()
