"""openai-agents: `await Runner.run(agent, ...)`, tracing off."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    RunState,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["OpenAIAgents"]

RUN_CONFIG = RunConfig(tracing_disabled=True)


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool(name_override="add")
def add_blocking(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool(name_override="add", needs_approval=True)
async def add_approved(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def new_tool(index: int) -> FunctionTool:
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return function_tool(add, name_override=f"add_{index}")


def answer() -> ModelResponse:
    text = ResponseOutputText(annotations=[], text=ANSWER, type="output_text")
    message = ResponseOutputMessage(
        id="msg_1", content=[text], role="assistant", status="completed", type="message"
    )
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


def call(name: str, arguments: str, call_id: str = "call_1") -> ModelResponse:
    item = ResponseFunctionToolCall(
        arguments=arguments, call_id=call_id, name=name, type="function_call"
    )
    return ModelResponse(output=[item], usage=Usage(), response_id=None)


class Instant(Model):
    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self.reply(kwargs["input"] if "input" in kwargs else args[1])

    async def reply(self, given: Any) -> ModelResponse:
        del given
        return answer()

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


class GivingWay(Instant):
    async def reply(self, given: Any) -> ModelResponse:
        await asyncio.sleep(0)
        return await super().reply(given)


class CallsTool(Instant):
    async def reply(self, given: Any) -> ModelResponse:
        if isinstance(given, list) and given[-1].get("type") == "function_call_output":
            return answer()
        return call("add", ARGUMENTS)


class HandsOver(Instant):
    async def reply(self, given: Any) -> ModelResponse:
        del given
        return call("transfer_to_b", "{}")


class RelayModel(Instant):
    def __init__(self, numbers: Any, transfers: int, to: str) -> None:
        self.numbers = numbers
        self.transfers = transfers
        self.to = to

    async def reply(self, given: Any) -> ModelResponse:
        del given
        number = next(self.numbers) % (self.transfers + 1)
        return (
            answer()
            if number == self.transfers
            else call(f"transfer_to_{self.to}", "{}", f"call_{number}")
        )


class Sleeping(Instant):
    def __init__(self, seconds: float, on_call: Callable[[], object]) -> None:
        self.seconds = seconds
        self.on_call = on_call

    async def reply(self, given: Any) -> ModelResponse:
        self.on_call()
        await asyncio.sleep(self.seconds)
        return await super().reply(given)


INSTANT = Instant()


def _agent(what: What) -> Agent[Any]:
    if what == "turn":
        return Agent(name="a", model=INSTANT)
    if what == "giving_way":
        return Agent(name="a", model=GivingWay())
    if what in ("transfer", "handoff"):  # its transfers are handoffs
        return Agent(name="a", model=HandsOver(), handoffs=[Agent(name="b", model=INSTANT)])
    return Agent(name="a", model=CallsTool(), tools=[add if what == "tool" else add_blocking])


class OpenAIAgents(AgentContender):
    key = "openai-agents"
    title = "openai-agents"
    what = "Runner.run, tracing off"
    distribution = "openai-agents"
    cannot: ClassVar[dict[str, str]] = {
        "resumes_sqlite": "it has no store: a state is a text, and where it is kept is the user's"
    }
    differs: ClassVar[dict[str, str]] = {
        "resumes_memory": "its state as JSON in a dictionary",
        "in_sequence": "ten runs, one after the other: it has no workflows",
        "in_parallel": "a hundred runs, gathered: it has no workflows",
    }

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        super().__init__(loop_factory)
        set_tracing_disabled(True)

    def define(self, index: int, *, own_tool: bool) -> object:
        return Agent(
            name=f"agent {index}",
            instructions="Be brief.",
            model=INSTANT,
            tools=[new_tool(index) if own_tool else add],
        )

    def once(self, what: What) -> Once:
        return _once(_agent(what), 10)

    def relay(self, transfers: int) -> Once:
        numbers = itertools.count()
        there: Agent[Any] = Agent(name="a", model=RelayModel(numbers, transfers, "b"))
        back: Agent[Any] = Agent(
            name="b", model=RelayModel(numbers, transfers, "a"), handoffs=[there]
        )
        there.handoffs = [back]
        return _once(there, transfers + 1)

    def handing_off(self, times: int) -> Once:
        return self.relay(times)

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        del file
        agent: Agent[Any] = Agent(name="a", model=CallsTool(), tools=[add_approved])
        kept: dict[str, str] = {}

        async def once() -> str:
            result = await Runner.run(agent, QUESTION, run_config=RUN_CONFIG)
            kept["run"] = result.to_state().to_string()
            state = await RunState.from_string(agent, kept["run"])
            for item in state.get_interruptions():
                state.approve(item)
            return str((await Runner.run(agent, state, run_config=RUN_CONFIG)).final_output)

        return once, kept.clear

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
        agent: Agent[Any] = Agent(
            name="a", instructions="Be brief.", model=OpenAIChatCompletionsModel(MODEL_NAME, client)
        )

        async def streamed() -> str:
            result = Runner.run_streamed(agent, QUESTION, run_config=RUN_CONFIG)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)

        return (streamed if streaming else _once(agent, 10)), client.close

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        once = _once(Agent(name="a", model=Sleeping(seconds, on_call)), 10)
        return lambda _number: once()


def _once(agent: Agent[Any], max_turns: int) -> Once:
    async def once() -> str:
        result = await Runner.run(agent, QUESTION, run_config=RUN_CONFIG, max_turns=max_turns)
        return str(result.final_output)

    return once
