"""agno: `await agent.arun(...)`, telemetry off, without a database."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.team import Team, TeamMode
from agno.tools import tool

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["Agno"]

NO_RELAY = "a Team delegates: no agent takes over, or hands back"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(name="add")
def add_blocking(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(name="add", requires_confirmation=True)
async def add_approved(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def new_tool(index: int) -> Any:
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return tool(name=f"add_{index}")(add)


class Instant(Model):
    def __init__(self) -> None:
        super().__init__(id="instant")

    async def ainvoke(self, messages: list[Any], *args: Any, **kwargs: Any) -> ModelResponse:
        del args, kwargs
        return await self.reply(messages)

    async def reply(self, messages: list[Any]) -> ModelResponse:
        del messages
        return ModelResponse(role="assistant", content=ANSWER)

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        raise NotImplementedError

    def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise NotImplementedError


class GivingWay(Instant):
    async def reply(self, messages: list[Any]) -> ModelResponse:
        await asyncio.sleep(0)
        return await super().reply(messages)


class CallsTool(Instant):
    async def reply(self, messages: list[Any]) -> ModelResponse:
        if messages[-1].role == "tool":
            return await super().reply(messages)
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "add", "arguments": ARGUMENTS},
        }
        return ModelResponse(role="assistant", tool_calls=[call])


class Routes(Instant):
    async def reply(self, messages: list[Any]) -> ModelResponse:
        del messages
        arguments = json.dumps({"member_id": "b", "task": QUESTION})
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "delegate_task_to_member", "arguments": arguments},
        }
        return ModelResponse(role="assistant", tool_calls=[call])


class Sleeping(Instant):
    def __init__(self, seconds: float, on_call: Callable[[], object]) -> None:
        super().__init__()
        self.seconds = seconds
        self.on_call = on_call

    async def reply(self, messages: list[Any]) -> ModelResponse:
        self.on_call()
        await asyncio.sleep(self.seconds)
        return await super().reply(messages)


INSTANT = Instant()


class Agno(AgentContender):
    key = "agno"
    title = "agno"
    what = "Agent.arun, telemetry off, no database"
    distribution = "agno"
    cannot: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transfers_10", "transfers_200", "handoff", "handoffs_10", "handoffs_200"), NO_RELAY
    )
    differs: ClassVar[dict[str, str]] = {
        "transfer": "a Team whose leader routes, and whose member's answer is its own",
        "in_sequence": "ten runs, one after the other, without its Workflow",
        "in_parallel": "a hundred runs, gathered, without its Workflow",
    }

    def define(self, index: int, *, own_tool: bool) -> object:
        return Agent(
            name=f"agent {index}",
            instructions="Be brief.",
            model=INSTANT,
            tools=[new_tool(index) if own_tool else add],
            telemetry=False,
        )

    def once(self, what: What) -> Once:
        if what == "turn":
            return _once(Agent(name="a", model=INSTANT, telemetry=False))
        if what == "transfer":
            member = Agent(name="b", id="b", model=INSTANT, telemetry=False)
            return _once(
                Team(
                    name="a", members=[member], model=Routes(), mode=TeamMode.route, telemetry=False
                )
            )
        if what == "giving_way":
            return _once(Agent(name="a", model=GivingWay(), telemetry=False))
        return _once(
            Agent(
                name="a",
                model=CallsTool(),
                tools=[add if what == "tool" else add_blocking],
                telemetry=False,
            )
        )

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        db = InMemoryDb() if file is None else SqliteDb(db_file=str(file))
        agent = Agent(name="a", model=CallsTool(), tools=[add_approved], telemetry=False, db=db)
        numbers = itertools.count()

        async def once() -> str:
            session = str(next(numbers))
            run = await agent.arun(QUESTION, session_id=session)
            for requirement in run.active_requirements:
                requirement.confirm()
            rest = await agent.acontinue_run(
                run_id=run.run_id, requirements=run.requirements, session_id=session
            )
            return str(rest.content)

        return once, getattr(db, "close", _nothing)

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        from agno.models.openai import OpenAIChat
        from openai import AsyncOpenAI

        # What it makes itself, but one that can be closed.
        client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
        agent = Agent(
            name="a",
            instructions="Be brief.",
            model=OpenAIChat(id=MODEL_NAME, async_client=client),
            telemetry=False,
        )

        async def streamed() -> str:
            return "".join(
                [
                    event.content
                    async for event in agent.arun(QUESTION, stream=True)
                    if event.event == "RunContent"
                ]
            )

        return (streamed if streaming else _once(agent)), client.close

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        agent = Agent(name="a", model=Sleeping(seconds, on_call), telemetry=False)

        async def once(number: int) -> str:
            return str((await agent.arun(QUESTION, session_id=str(number))).content)

        return once


def _once(agent: Agent | Team) -> Once:
    async def once() -> str:
        return str((await agent.arun(QUESTION)).content)

    return once


def _nothing() -> None:
    """Closes nothing: this database needs no closing."""
