"""pydantic-ai: `await agent.run(...)`, not instrumented.

A hand-over is an output function, as its page on multi-agent applications has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar

from openai import AsyncOpenAI
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    ModelMessagesTypeAdapter,
    ModelResponse,
    RunContext,
    TextPart,
    Tool,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["PydanticAI"]

NO_RELAY = (
    "an output function ends its agent, so two agents cannot hand over to each other for ever; "
    "not measured"
)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def add_blocking(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def new_tool(index: int) -> Tool[Any]:
    async def added(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return Tool(added, name=f"add_{index}")


async def instant(messages: list[Any], info: AgentInfo) -> ModelResponse:
    del messages, info
    return ModelResponse(parts=[TextPart(ANSWER)])


async def giving_way(messages: list[Any], info: AgentInfo) -> ModelResponse:
    await asyncio.sleep(0)
    return await instant(messages, info)


async def calls_tool(messages: list[Any], info: AgentInfo) -> ModelResponse:
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return await instant(messages, info)
    return ModelResponse(parts=[ToolCallPart("add", ARGUMENTS, "call_1")])


async def hands_over(messages: list[Any], info: AgentInfo) -> ModelResponse:
    del messages
    return ModelResponse(
        parts=[
            ToolCallPart(
                info.output_tools[0].name, '{"question": "What is one and two?"}', "call_1"
            )
        ]
    )


INSTANT = FunctionModel(instant)


def _agent(what: What) -> Agent[Any, Any]:
    if what == "turn":
        return Agent(INSTANT, name="a")
    if what == "giving_way":
        return Agent(FunctionModel(giving_way), name="a")
    if what in ("transfer", "handoff"):
        other = Agent(INSTANT, name="b")

        async def transfer_to_b(context: RunContext[Any], question: str) -> str:
            """Hand over to b."""
            return (await other.run(question, usage=context.usage)).output

        return Agent(FunctionModel(hands_over), name="a", output_type=transfer_to_b)
    return Agent(
        FunctionModel(calls_tool),
        name="a",
        tools=[Tool(add if what == "tool" else add_blocking, name="add")],
    )


class PydanticAI(AgentContender):
    key = "pydantic-ai"
    title = "pydantic-ai"
    what = "Agent.run, not instrumented"
    distribution = "pydantic-ai-slim"
    cannot: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("transfers_10", "transfers_200", "handoff", "handoffs_10", "handoffs_200"), NO_RELAY
        ),
        "resumes_sqlite": "it has no store for a run that waits: the user keeps its messages",
    }
    differs: ClassVar[dict[str, str]] = {
        "transfer": "an output function, which runs the other agent",
        "resumes_memory": "its messages as JSON in a dictionary",
        "in_sequence": "ten runs, one after the other: it has no workflows",
        "in_parallel": "a hundred runs, gathered: it has no workflows",
    }

    def define(self, index: int, *, own_tool: bool) -> object:
        return Agent(
            INSTANT,
            name=f"agent {index}",
            instructions="Be brief.",
            tools=[new_tool(index) if own_tool else add],
        )

    def once(self, what: What) -> Once:
        agent = _agent(what)

        async def once() -> str:
            return str((await agent.run(QUESTION)).output)

        return once

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        async def asleep(messages: list[Any], info: AgentInfo) -> ModelResponse:
            on_call()
            await asyncio.sleep(seconds)
            return await instant(messages, info)

        agent = Agent(FunctionModel(asleep), name="a")

        async def once(number: int) -> str:
            del number
            return str((await agent.run(QUESTION)).output)

        return once

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        del file
        tools = [Tool(add, name="add", requires_approval=True)]
        agent: Agent[Any, Any] = Agent(
            FunctionModel(calls_tool),
            name="a",
            tools=tools,
            output_type=[str, DeferredToolRequests],
        )
        kept: dict[str, bytes] = {}

        async def once() -> str:
            waiting = await agent.run(QUESTION)
            kept["run"] = waiting.all_messages_json()
            messages = ModelMessagesTypeAdapter.validate_json(kept["run"])
            approved = waiting.output.build_results(approve_all=True)
            return str(
                (await agent.run(message_history=messages, deferred_tool_results=approved)).output
            )

        return once, kept.clear

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
        agent = Agent(
            OpenAIChatModel(MODEL_NAME, provider=OpenAIProvider(openai_client=client)),
            name="a",
            instructions="Be brief.",
        )

        async def whole() -> str:
            return str((await agent.run(QUESTION)).output)

        async def streamed() -> str:
            async with agent.run_stream(QUESTION) as result:
                return "".join([piece async for piece in result.stream_text(delta=True)])

        return (streamed if streaming else whole), client.close
