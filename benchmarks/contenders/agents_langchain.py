"""langchain's `create_agent`: `await agent.ainvoke(...)`, not traced.

A hand-over is a `Command` to the graph of both agents, as its pages have it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from benchmarks.contenders.agents_base import (
    ANSWER,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["LangChain"]

NOT_MEASURED = "not measured: a graph of two agents, as W4"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool("add")
def add_blocking(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def new_tool(index: int) -> Any:
    async def added(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return tool(f"add_{index}")(added)


@tool
async def transfer_to_b() -> Any:
    """Hand over to b."""
    return Command(
        goto="b",
        graph=Command.PARENT,
        update={"messages": [ToolMessage("Transferred.", tool_call_id="call_1")]},
    )


class Instant(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        del tools, kwargs
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        del args, kwargs
        return ChatResult(generations=[ChatGeneration(message=await self.reply(messages))])

    async def reply(self, messages: list[BaseMessage]) -> AIMessage:
        del messages
        return AIMessage(ANSWER)


class GivingWay(Instant):
    async def reply(self, messages: list[BaseMessage]) -> AIMessage:
        await asyncio.sleep(0)
        return await super().reply(messages)


class CallsTool(Instant):
    async def reply(self, messages: list[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return await super().reply(messages)
        return AIMessage("", tool_calls=[{"id": "call_1", "name": "add", "args": {"a": 1, "b": 2}}])


class HandsOver(Instant):
    async def reply(self, messages: list[BaseMessage]) -> AIMessage:
        del messages
        return AIMessage("", tool_calls=[{"id": "call_1", "name": "transfer_to_b", "args": {}}])


class Sleeping(Instant):
    seconds: float
    on_call: Callable[[], object]

    async def reply(self, messages: list[BaseMessage]) -> AIMessage:
        self.on_call()
        await asyncio.sleep(self.seconds)
        return await super().reply(messages)


INSTANT = Instant()


def _given() -> Any:
    return {"messages": [{"role": "user", "content": QUESTION}]}


def _agent(what: What) -> Any:
    if what == "turn":
        return create_agent(INSTANT, name="a")
    if what == "giving_way":
        return create_agent(GivingWay(), name="a")
    if what in ("transfer", "handoff"):
        graph = StateGraph(MessagesState)
        graph.add_node("a", create_agent(HandsOver(), [transfer_to_b], name="a"))
        graph.add_node("b", create_agent(INSTANT, name="b"))
        graph.add_edge(START, "a")
        return graph.compile()
    return create_agent(CallsTool(), [add if what == "tool" else add_blocking], name="a")


class LangChain(AgentContender):
    key = "langchain"
    title = "langchain create_agent"
    what = "create_agent, ainvoke, not traced"
    distribution = "langchain"
    cannot: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transfers_10", "transfers_200", "handoff", "handoffs_10", "handoffs_200"), NOT_MEASURED
    )
    differs: ClassVar[dict[str, str]] = {
        "transfer": "a Command to the graph of which both agents are nodes",
        "in_sequence": "ten runs, one after the other, without a graph of their own",
        "in_parallel": "a hundred runs, gathered, without a graph of their own",
    }

    def define(self, index: int, *, own_tool: bool) -> object:
        return create_agent(
            INSTANT,
            [new_tool(index) if own_tool else add],
            system_prompt="Be brief.",
            name=f"agent_{index}",
        )

    def once(self, what: What) -> Once:
        agent = _agent(what)

        async def once() -> str:
            return str((await agent.ainvoke(_given()))["messages"][-1].content)

        return once

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        agent: Any = create_agent(Sleeping(seconds=seconds, on_call=on_call), name="a")

        async def once(number: int) -> str:
            del number
            return str((await agent.ainvoke(_given()))["messages"][-1].content)

        return once

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        stack, agents, numbers = AsyncExitStack(), [], itertools.count()

        async def agent_on_this_loop() -> Any:
            if not agents:
                saver: Any = InMemorySaver()
                if file is not None:
                    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

                    saver = await stack.enter_async_context(
                        AsyncSqliteSaver.from_conn_string(str(file))
                    )
                agents.append(
                    create_agent(
                        CallsTool(),
                        [add],
                        middleware=[HumanInTheLoopMiddleware({"add": True})],
                        checkpointer=saver,
                        name="a",
                    )
                )
            return agents[0]

        async def once() -> str:
            agent = await agent_on_this_loop()
            config: Any = {"configurable": {"thread_id": str(next(numbers))}}
            await agent.ainvoke(_given(), config)
            rest = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
            return str(rest["messages"][-1].content)

        return once, stack.aclose

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        from langchain_openai import ChatOpenAI

        agent: Any = create_agent(
            ChatOpenAI(model=MODEL_NAME, base_url=base_url, api_key="none", max_retries=0),
            system_prompt="Be brief.",
            name="a",
        )  # type: ignore[arg-type]

        async def whole() -> str:
            return str((await agent.ainvoke(_given()))["messages"][-1].content)

        async def streamed() -> str:
            return "".join(
                [
                    str(chunk.content)
                    async for chunk, _ in agent.astream(_given(), stream_mode="messages")
                ]
            )

        async def close() -> None:
            """Its clients are shared by all of its models, and closed with the process."""

        return (streamed if streaming else whole), close
