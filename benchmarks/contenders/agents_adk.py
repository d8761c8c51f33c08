"""google-adk: an `LlmAgent` in an `InMemoryRunner`, a new session for each run, telemetry not
configured.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar

from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

from benchmarks.contenders.agents_base import (
    ANSWER,
    MODEL_NAME,
    MODEL_SECONDS,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["GoogleADK"]

APP = "benchmark"
USER = "user"
# The name of the call that asks for it, by its documentation.
CONFIRMATION = "adk_request_confirmation"
NOT_MEASURED = "not measured: as W4"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def add_blocking(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


add_blocking.__name__ = "add"


def new_tool(index: int) -> Callable[..., Any]:
    async def added(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    added.__name__ = f"add_{index}"
    return added


# It logs a warning for each reply that has none.
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=12, candidates_token_count=4, total_token_count=16
)


def _text(text: str) -> LlmResponse:
    return LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text=text)]), usage_metadata=USAGE
    )


def _call(name: str, arguments: dict[str, Any]) -> LlmResponse:
    part = types.Part(function_call=types.FunctionCall(name=name, args=arguments))
    return LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=USAGE)


class Instant(BaseLlm):
    model: str = "instant"

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 -- as there
    ) -> AsyncGenerator[LlmResponse, None]:
        del stream
        yield await self.reply(llm_request)

    async def reply(self, request: LlmRequest) -> LlmResponse:
        del request
        return _text(ANSWER)


class GivingWay(Instant):
    async def reply(self, request: LlmRequest) -> LlmResponse:
        await asyncio.sleep(0)
        return await super().reply(request)


class CallsTool(Instant):
    async def reply(self, request: LlmRequest) -> LlmResponse:
        if any(part.function_response for part in request.contents[-1].parts or ()):
            return await super().reply(request)
        return _call("add", {"a": 1, "b": 2})


class HandsOver(Instant):
    async def reply(self, request: LlmRequest) -> LlmResponse:
        del request
        return _call("transfer_to_agent", {"agent_name": "b"})


class Sleeping(Instant):
    seconds: float
    on_call: Callable[[], object]

    async def reply(self, request: LlmRequest) -> LlmResponse:
        self.on_call()
        await asyncio.sleep(self.seconds)
        return await super().reply(request)


INSTANT = Instant()
ASKED = types.Content(role="user", parts=[types.Part(text=QUESTION)])


def _agent(what: What) -> LlmAgent:
    if what == "turn":
        return LlmAgent(name="a", model=INSTANT)
    if what == "giving_way":
        return LlmAgent(name="a", model=GivingWay())
    if what in ("transfer", "handoff"):
        return LlmAgent(
            name="a",
            model=HandsOver(),
            sub_agents=[LlmAgent(name="b", description="adds", model=INSTANT)],
        )
    return LlmAgent(name="a", model=CallsTool(), tools=[add if what == "tool" else add_blocking])


def _once(agent: Any) -> Once:
    runner = InMemoryRunner(agent=agent, app_name=APP)

    async def once() -> str:
        session = await runner.session_service.create_session(app_name=APP, user_id=USER)
        return await _answer(runner, session.id, ASKED)

    return once


async def _answer(
    runner: Runner, session: str, message: types.Content, run_config: RunConfig | None = None
) -> str:
    answer = ""
    async for event in runner.run_async(
        user_id=USER, session_id=session, new_message=message, run_config=run_config
    ):
        if (
            event.is_final_response()
            and event.content
            and event.content.parts
            and event.content.parts[0].text
        ):
            answer = event.content.parts[0].text
    return answer


class GoogleADK(AgentContender):
    key = "google-adk"
    title = "google-adk"
    what = "LlmAgent in an InMemoryRunner, a new session for each run"
    distribution = "google-adk"
    cannot: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transfers_10", "transfers_200", "handoff", "handoffs_10", "handoffs_200"), NOT_MEASURED
    )
    differs: ClassVar[dict[str, str]] = {
        "resumes_memory": "kept as the events of its session",
        "resumes_sqlite": "kept as the events of its session",
        "http_whole": "by LiteLlm, its way to servers that speak OpenAI's format",
        "http_stream": "by LiteLlm, its way to servers that speak OpenAI's format",
    }

    def define(self, index: int, *, own_tool: bool) -> object:
        return LlmAgent(
            name=f"agent_{index}",
            model=INSTANT,
            instruction="Be brief.",
            tools=[new_tool(index) if own_tool else add],
        )

    def once(self, what: What) -> Once:
        return _once(_agent(what))

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        once = _once(LlmAgent(name="a", model=Sleeping(seconds=seconds, on_call=on_call)))
        return lambda _number: once()

    def sequence(self, agents: int) -> Once:
        return _once(SequentialAgent(name="all", sub_agents=_sleepers(agents)))

    def parallel(self, agents: int) -> Once:
        return _once(ParallelAgent(name="all", sub_agents=_sleepers(agents)))

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        service: Any = InMemorySessionService()
        if file is not None:
            from google.adk.sessions.sqlite_session_service import SqliteSessionService

            service = SqliteSessionService(str(file))
        agent = LlmAgent(
            name="a", model=CallsTool(), tools=[FunctionTool(add, require_confirmation=True)]
        )
        runner = Runner(agent=agent, app_name=APP, session_service=service)
        numbers = itertools.count()

        async def once() -> str:
            session = await service.create_session(
                app_name=APP, user_id=USER, session_id=f"s{next(numbers)}"
            )
            asked = ""
            async for event in runner.run_async(
                user_id=USER, session_id=session.id, new_message=ASKED
            ):
                asked = next(
                    (
                        str(call.id)
                        for call in event.get_function_calls()
                        if call.name == CONFIRMATION
                    ),
                    asked,
                )
            confirmed = types.FunctionResponse(
                id=asked, name=CONFIRMATION, response={"confirmed": True}
            )
            return await _answer(
                runner,
                session.id,
                types.Content(role="user", parts=[types.Part(function_response=confirmed)]),
            )

        return once, lambda: None

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        # It asks a server for the prices of models, otherwise.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        from google.adk.models.lite_llm import LiteLlm

        model = LiteLlm(model=f"openai/{MODEL_NAME}", api_base=base_url, api_key="none")
        runner = InMemoryRunner(
            agent=LlmAgent(name="a", model=model, instruction="Be brief."), app_name=APP
        )
        config = RunConfig(streaming_mode=StreamingMode.SSE if streaming else StreamingMode.NONE)

        async def once() -> str:
            session = await runner.session_service.create_session(app_name=APP, user_id=USER)
            return await _answer(runner, session.id, ASKED, config)

        async def close() -> None:
            await runner.close()

        return once, close


def _sleepers(agents: int) -> list[Any]:
    model = Sleeping(seconds=MODEL_SECONDS, on_call=lambda: None)
    return [LlmAgent(name=f"agent_{number}", model=model) for number in range(agents)]
