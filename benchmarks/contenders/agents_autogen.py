"""autogen-agentchat: `await AssistantAgent(...).run(task=...)`. Its agents keep their conversation.

Runs one after the other share an agent, which is reset before each: that is quicker than a new one,
and without it every run would be slower than the one before. Runs that live at once have an agent
each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, ClassVar

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import FunctionTool

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["AutogenAgentChat"]

NOT_MEASURED = "not measured: a team, as W4"
RESET = "the time includes resetting the agent, because it keeps its conversation"
OWN_AGENT = "the time includes making an agent, because it keeps its conversation"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


TOOL = FunctionTool(add, description="Add two numbers.")


class Instant(ChatCompletionClient):
    async def create(self, messages: Sequence[Any], **kwargs: Any) -> CreateResult:  # type: ignore[override]
        del kwargs
        return await self.reply(messages)

    async def reply(self, messages: Sequence[Any]) -> CreateResult:
        del messages
        return CreateResult(
            finish_reason="stop", content=ANSWER, usage=RequestUsage(0, 0), cached=False
        )

    def create_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, *args: Any, **kwargs: Any) -> int:
        del args, kwargs
        return 0

    remaining_tokens = count_tokens

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
        )


class GivingWay(Instant):
    async def reply(self, messages: Sequence[Any]) -> CreateResult:
        await asyncio.sleep(0)
        return await super().reply(messages)


class CallsTool(Instant):
    async def reply(self, messages: Sequence[Any]) -> CreateResult:
        if isinstance(messages[-1], FunctionExecutionResultMessage):
            return await super().reply(messages)
        calls = [FunctionCall(id="call_1", name="add", arguments=ARGUMENTS)]
        return CreateResult(
            finish_reason="function_calls", content=calls, usage=RequestUsage(0, 0), cached=False
        )


class HandsOver(Instant):
    async def reply(self, messages: Sequence[Any]) -> CreateResult:
        del messages
        calls = [FunctionCall(id="call_1", name="transfer_to_b", arguments="{}")]
        return CreateResult(
            finish_reason="function_calls", content=calls, usage=RequestUsage(0, 0), cached=False
        )


class Sleeping(Instant):
    def __init__(self, seconds: float, on_call: Callable[[], object]) -> None:
        self.seconds = seconds
        self.on_call = on_call

    async def reply(self, messages: Sequence[Any]) -> CreateResult:
        self.on_call()
        await asyncio.sleep(self.seconds)
        return await super().reply(messages)


INSTANT = Instant()


class AutogenAgentChat(AgentContender):
    key = "autogen-agentchat"
    title = "autogen-agentchat"
    what = "AssistantAgent.run; the agent reset before each run or, of runs at once, new for each"
    distribution = "autogen-agentchat"
    cannot: ClassVar[dict[str, str]] = {
        "resumes_memory": "a tool cannot be made to wait",
        "resumes_sqlite": "a tool cannot be made to wait",
        **dict.fromkeys(
            ("transfers_10", "transfers_200", "handoff", "handoffs_10", "handoffs_200"),
            NOT_MEASURED,
        ),
        "tool_thread": "as the async one, in an executor; not measured",
    }
    differs: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("turn", "tool"), RESET),
        "transfer": "a team (Swarm), reset before each run, because it keeps its conversation",
        **dict.fromkeys(("turns_at_once", "turns_alive", "http_whole", "http_stream"), OWN_AGENT),
        "in_sequence": "ten runs, one after the other, without its teams",
        "in_parallel": "a hundred runs, gathered, without its teams",
    }

    def define(self, index: int, *, own_tool: bool) -> object:
        tool = (
            FunctionTool(add, description="Add two numbers.", name=f"add_{index}")
            if own_tool
            else TOOL
        )
        return AssistantAgent(f"agent_{index}", INSTANT, tools=[tool], system_message="Be brief.")

    def once(self, what: What) -> Once:
        model = {"turn": INSTANT, "giving_way": GivingWay()}.get(what) or CallsTool()
        tools: list[Any] = [TOOL] if what == "tool" else []
        return lambda: _run(model, tools)

    def once_alone(self, what: What) -> Once:
        if what == "transfer":
            return _team()
        agent = _agent(INSTANT if what == "turn" else CallsTool(), [TOOL] if what == "tool" else [])

        async def once() -> str:
            await agent.on_reset(CancellationToken())
            return await _answer(agent)

        return once

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        from autogen_ext.models.openai import OpenAIChatCompletionClient

        client = OpenAIChatCompletionClient(
            model=MODEL_NAME, base_url=base_url, api_key="none", max_retries=0
        )

        async def once() -> str:
            agent = AssistantAgent(
                "a", client, system_message="Be brief.", model_client_stream=streaming
            )
            if not streaming:
                return await _answer(agent)
            events = [event async for event in agent.run_stream(task=QUESTION)]
            return str(events[-1].messages[-1].content)  # type: ignore[union-attr]

        return once, client.close

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        model = Sleeping(seconds, on_call)
        return lambda _number: _run(model, [])


def _agent(model: ChatCompletionClient, tools: list[Any]) -> AssistantAgent:
    return (
        AssistantAgent("a", model, tools=tools, reflect_on_tool_use=True)
        if tools
        else AssistantAgent("a", model)
    )


def _team() -> Once:
    first = AssistantAgent("a", HandsOver(), handoffs=["b"])
    team = Swarm(
        [first, AssistantAgent("b", INSTANT)], termination_condition=TextMessageTermination("b")
    )

    async def once() -> str:
        await team.reset()
        result = await team.run(task=QUESTION)
        return str(result.messages[-1].content)  # type: ignore[union-attr]

    return once


async def _run(model: ChatCompletionClient, tools: list[Any]) -> str:
    return await _answer(_agent(model, tools))


async def _answer(agent: AssistantAgent) -> str:
    result = await agent.run(task=QUESTION)
    return str(result.messages[-1].content)  # type: ignore[union-attr]
