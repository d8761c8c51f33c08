"""What the tests of cancelling share: models and tools that wait at a gate, agents that do, and a
run that is ended by hand and goes on in a fresh system.
"""

import asyncio

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    BreakLoop,
    Exit,
    Interrupted,
    MemoryStore,
    Runner,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
)

MODES = ("immediate", "after_model", "after_tools")
SAFE = ("after_model", "after_tools")

TO_B = [
    "A calls transfer_to_agent",
    "A transfer_to_agent: successfully transferred to agent [B] -> B",
]
BACK = [
    "B calls transfer_to_agent",
    "B transfer_to_agent: successfully transferred to agent [A] -> A",
]


def to(name):
    """What a model says in order to hand over."""
    return ToolCalls(transfer_to_agent={"agent_name": name})


class Door:
    """Where somebody waits until it is opened.

    `reached` counts who came, `cut` who was ended there.
    """

    def __init__(self):
        self.reached = 0
        self.cut = 0
        self.keys = []  # of the calls that came
        self._opened = asyncio.Event()
        self._came = asyncio.Event()

    async def wait(self):
        self.reached += 1
        self._came.set()
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            self.cut += 1
            raise

    async def somebody(self):
        """Return when somebody has come."""
        await asyncio.wait_for(self._came.wait(), 5)

    def open(self):
        self._opened.set()


def after(door, reply):
    """A line of a script that is said when the door is open."""

    async def line(_request):
        await door.wait()
        return reply

    return line


def waiting(door, name="slow", **options):
    """A tool that waits there."""

    @tool(name=name, **options)
    async def slow(context: ToolContext) -> str:
        door.keys.append(context.idempotency_key)
        await door.wait()
        return f"{name} done"

    return slow


@tool
async def quick() -> str:
    return "quick done"


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel(script), **options
    )


class Player(Agent):
    """Says its lines; where a line is a door, it waits there.

    What it has said already it does not say again.
    """

    def __init__(self, name, *plan, **options):
        super().__init__(name=name, description=f"plays {name}", **options)
        self.plan = plan

    async def run(self, input, context):
        state = context.state
        while (place := state.get("next", 0)) < len(self.plan):
            line = self.plan[place]
            if isinstance(line, Door):
                await line.wait()
                state["next"] = place + 1
            elif line == "ask":
                if context.resume is None or not context.resume.is_target:
                    yield context.interrupt(f"{self.name}?")
                    return
                state["next"] = place + 1
                yield AgentEvent.say(f"heard {context.resume.data}")
            else:
                state["next"] = place + 1
                yield AgentEvent.say(line) if isinstance(line, str) else AgentEvent.of(action=line)


async def turns(count):
    """Let others have theirs."""
    for _ in range(count):
        await asyncio.sleep(0)


def line_of(event):
    """An event as a line."""
    parts = [event.agent_name]
    if event.delta is not None:
        parts.append(f"...{event.delta.content}")
    if event.message is not None:
        message = event.message
        parts.append(
            f"{message.tool_name}: {message.text}" if message.role == "tool" else message.text
        )
        parts += [f"calls {call.name}" for call in message.tool_calls]
    match event.action:
        case TransferToAgent(name):
            parts.append(f"-> {name}")
        case BreakLoop():
            parts.append("breaks")
        case Exit():
            parts.append("exits")
        case Interrupted(contexts):
            parts.append(f"waits for {', '.join(str(context.info) for context in contexts)}")
    if event.error is not None:
        parts.append(type(event.error).__name__)
    return " ".join(part for part in parts if part)


class CancelledRun:
    """A run in a system, with a store.

    `play()` starts it, `go_on()` resumes it from the store in another system.
    """

    def __init__(self, agent, *, store=True, clock=None, **options):
        self.agent = agent
        self.store = MemoryStore() if store else None
        self.options = options
        self.clock = clock
        self.seen = []  # of the run that is under way
        self.run = None
        self._system = None
        self._looking = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_exception):
        await self._leave()

    async def _leave(self):
        if self._system is not None:
            await self._system.__aexit__(None, None, None)
            self._system = None

    async def _begin(self, start):
        await self._leave()
        self._system = await ActorSystem(clock=self.clock).__aenter__()
        runner = Runner(self.agent, system=self._system, store=self.store, **self.options)
        self.seen = []
        self.run = start(runner)
        self._looking = asyncio.create_task(self._look(self.run, self.seen))
        return self.run

    async def play(self, **options):
        return await self._begin(lambda runner: runner.query("q", **options))

    async def go_on(self, *, key=None, **options):
        """What it shows when it goes on, as lines."""
        key = key or self.run.checkpoint_id
        await self._begin(lambda runner: runner.resume(key, **options))
        return await self.end()

    async def _look(self, run, seen):
        async for event in run:
            seen.append(line_of(event))

    async def shown(self, count):
        """Return when so much was shown."""
        while len(self.seen) < count:
            await asyncio.sleep(0)

    async def end(self):
        """All that it has shown, as lines, when it has ended."""
        await asyncio.wait_for(self._looking, 5)
        return self.seen

    async def cancel(self, mode, **options):
        """Cancel it, and let that be heard."""
        handle = self.run.cancel(mode, **options)
        await turns(5)
        return handle
