"""G5: what a run was made of is freed when its last reference goes, without the garbage collector.

Each kind of run is made many times with the collector off, and the number of objects that the
collector would look at stays the same.
"""

import asyncio
import gc
from collections import Counter
from contextlib import suppress

import pytest

from offbook.actors import (
    Agent,
    ChatModelAgent,
    GuardrailFunctionOutput,
    Loop,
    Parallel,
    Sequential,
    input_guardrail,
    output_guardrail,
    tool,
)
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Backoff,
    FailoverModel,
    MemoryStore,
    Message,
    ModelError,
    OpenAIChatModel,
    RetryModel,
    Runner,
    ToolCall,
)
from offbook.runtime.log import loggers

WARM_UP, FEW = 30, 100


class Answers:
    """A model that gives way once, and calls the first tool that has not been called."""

    def __init__(self, error=None):
        self.error = error

    async def generate(self, request):
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error("no")
        if not request.tools or self.calls(request):
            return Message.assistant("done")
        name = request.tools[0].name
        arguments = '{"agent_name": "b"}' if name == "transfer_to_agent" else "{}"
        return Message.assistant("", (ToolCall("c", name, arguments),))

    def calls(self, request):
        return any(message.role == "tool" for message in request.messages)

    async def stream(self, request):
        yield await self.generate(request)


def an_agent(name="a", *tools, error=None, **options):
    return ChatModelAgent(name=name, model=Answers(error), tools=tools, **options)


@tool
async def look_up() -> str:
    """Look it up."""
    return "found"


@tool
def look_up_in_a_thread() -> str:
    """Look it up."""
    return "found"


@tool
async def breaks() -> str:
    """Break."""
    raise ValueError("no")


@tool(timeout=0.0001)
async def is_late_itself() -> str:
    """Wait for ever."""
    return await asyncio.get_running_loop().create_future()


@tool(needs_approval=True)
async def asks_first() -> str:
    """Ask first."""
    return "done"


class Waits(Agent):
    async def run(self, input, context):
        yield AgentEvent.say("waiting")
        await asyncio.get_running_loop().create_future()


class Fails(Agent):
    async def run(self, input, context):
        yield AgentEvent.say("failing")
        raise ValueError("no")


@input_guardrail
async def refuses(context, agent, messages):
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@output_guardrail
async def refuses_the_answer(context, agent, output):
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


def retried():
    model = RetryModel(Answers(ModelError), max_retries=1, backoff=Backoff(initial=0))
    return ChatModelAgent(name="a", model=model)


def fails_over():
    models = [Answers(ModelError), Answers(ModelError)]
    return ChatModelAgent(name="a", model=FailoverModel(models))


def asks_for_a_number():
    return ChatModelAgent(name="a", model=Answers(), output_type=int)


def without_a_provider():
    model = OpenAIChatModel("m", base_url="http://127.0.0.1:9", api_key="none")
    return ChatModelAgent(name="a", model=model)


# Each agent is asked once in a run.
AGENTS = {
    "one turn": an_agent,
    "tool": lambda: an_agent("a", look_up),
    "tool in a thread": lambda: an_agent("a", look_up_in_a_thread),
    "tool that fails": lambda: an_agent("a", breaks),
    "tool that fails the run": lambda: an_agent("a", breaks, on_tool_error="raise"),
    "model that fails": lambda: an_agent(error=ModelError),
    "model with a bug": lambda: an_agent(error=ZeroDivisionError),
    "agent that fails": lambda: Fails(name="f"),
    "tool that is late": lambda: an_agent("a", is_late_itself),
    "model that is tried again": retried,
    "models that fail over": fails_over,
    "provider that is not there": without_a_provider,
    "wrong answer": asks_for_a_number,
    "output guardrail": lambda: an_agent(output_guardrails=[refuses_the_answer]),
    "guardrail": lambda: an_agent(input_guardrails=[refuses]),
    "sequence": lambda: Sequential(name="s", sub_agents=[an_agent("a"), an_agent("b")]),
    "sequence that fails": lambda: Sequential(
        name="s", sub_agents=[an_agent("a"), Fails(name="f")]
    ),
    "loop": lambda: Loop(name="l", sub_agents=[an_agent()], max_iterations=3),
    "branches": lambda: Parallel(name="p", sub_agents=[an_agent("a"), an_agent("b")]),
    "branches that fail": lambda: Parallel(
        name="p", sub_agents=[Fails(name="f"), Waits(name="w")], on_error="cancel"
    ),
    "transfer": lambda: an_agent("a", sub_agents=[an_agent("b")]),
    "handoff": lambda: an_agent("a", handoffs=[an_agent("b")]),
    "agent as a tool": lambda: an_agent("a", an_agent("b", description="Does b.").as_tool()),
}


async def asks(runner):
    await runner.query("?")


async def iterates(runner):
    async for _ in runner.query("?"):
        pass


async def leaves(runner):
    async for _ in runner.query("?"):
        break


async def cancels(runner):
    run = runner.query("?")
    async for _ in run:
        run.cancel()
    await run


async def cancels_the_task(runner):
    task = asyncio.create_task(runner.query("?").wait())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def is_late(runner):
    await runner.query("?", timeout=0.0001)


async def approves(runner):
    run = runner.query("?")
    result = await run
    for interrupt in result.interrupts:
        await runner.approve(interrupt)


async def denies(runner):
    result = await runner.query("?")
    for interrupt in result.interrupts:
        await runner.deny(interrupt, "no")


async def speaks(runner):
    session = runner.session("s")
    await session.query("?")
    await session.clear()
    await session.close()


KINDS = {
    **{name: (agent, asks, {}) for name, agent in AGENTS.items()},
    **{
        f"{name}, without a store": (agent, asks, {"store": None}) for name, agent in AGENTS.items()
    },
    **{
        f"{name}, step by step": (agent, asks, {"durability": "step", "keep": "unfinished"})
        for name, agent in AGENTS.items()
    },
    "streaming": (AGENTS["tool"], iterates, {"streaming": True}),
    "left": (AGENTS["tool"], leaves, {}),
    "cancelled": (lambda: Waits(name="w"), cancels, {}),
    "cancelled in branches": (
        lambda: Parallel(name="p", sub_agents=[Waits(name="w"), an_agent("b")]),
        cancels,
        {},
    ),
    "cancelled with its task": (lambda: Waits(name="w"), cancels_the_task, {}),
    "late": (lambda: Waits(name="w"), is_late, {}),
    "interrupted and resumed": (lambda: an_agent("a", asks_first), approves, {}),
    "interrupted and resumed, step by step": (
        lambda: an_agent("a", asks_first),
        approves,
        {"durability": "step", "keep": "unfinished"},
    ),
    "denied": (lambda: an_agent("a", asks_first), denies, {}),
    "streaming that fails": (AGENTS["model with a bug"], iterates, {"streaming": True}),
    "streaming with a guardrail": (AGENTS["guardrail"], iterates, {"streaming": True}),
    "interrupted in branches": (
        lambda: Parallel(name="p", sub_agents=[an_agent("a", asks_first), an_agent("b")]),
        approves,
        {},
    ),
    "turn of a session": (AGENTS["tool"], speaks, {}),
    "turn that fails": (AGENTS["agent that fails"], speaks, {}),
}


@pytest.fixture(autouse=True)
def no_log(monkeypatch):
    """A log of pytest's keeps errors, and with them the frames that they went through."""
    for logger in loggers:
        monkeypatch.setattr(logger, "disabled", True)


async def left_by(kind, count):
    """The number of objects that only the collector finds after so many runs, and the types of
    those that a few runs leave.
    """
    agent, once, options = KINDS[kind]
    async with ActorSystem() as system:
        runner = Runner(agent(), system=system, **{"store": MemoryStore(), **options})

        async def runs(number):
            for _ in range(number):
                await once(runner)
            for _ in range(5):
                await asyncio.sleep(0)

        await runs(WARM_UP)
        gc.collect()
        gc.disable()
        try:
            await runs(count)
            left = gc.collect()
            gc.set_debug(gc.DEBUG_SAVEALL)
            await runs(WARM_UP)
            gc.collect()
            types = Counter(type(each).__qualname__ for each in gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        return left, types.most_common()


@pytest.mark.parametrize("kind", KINDS)
def test_g05_runs_leave_nothing_to_the_garbage_collector(run, kind):
    left, types = run(left_by(kind, FEW))
    assert left < FEW / 2, types


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_g05_very_many_runs_leave_nothing_to_the_garbage_collector(run, kind, request):
    """A hundred thousand of each, `--runs-of-each 100000`, take two hours."""
    count = request.config.getoption("--runs-of-each")
    left, types = run(left_by(kind, count))
    assert left < FEW, types
