"""Other frameworks over HTTP, as their documentation has it: tracing and telemetry off, no
database. Each is imported in its own process alone.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.of_http.contenders import (
    HISTORY,
    INSTRUCTION,
    MODEL,
    QUESTION,
    Client,
    Contender,
    Once,
    weather,
)

__all__ = ["PEERS"]


class Agno(Contender):
    """`await agent.arun(...)`."""

    def __init__(self, base_url: str) -> None:
        from agno.models.openai import OpenAIChat

        super().__init__(base_url)
        self.model = OpenAIChat(
            id=MODEL, base_url=base_url, api_key="none", max_retries=0, timeout=600
        )

    def agent(self, **more: Any) -> Any:
        from agno.agent import Agent

        return Agent(name="a", instructions=INSTRUCTION, model=self.model, telemetry=False, **more)

    def whole(self) -> Once:
        return self._whole(self.agent(), QUESTION)

    def stream(self) -> Once:
        return self._stream(self.agent(), QUESTION)

    def tool(self) -> Once:
        async def cold(city: str) -> str:
            """The weather in a city."""
            return weather(city)

        return self._whole(self.agent(tools=[cold]), QUESTION)

    def history(self) -> Once:
        return self._whole(self.agent(), self._messages())

    def history_stream(self) -> Once:
        return self._stream(self.agent(), self._messages())

    def _messages(self) -> Any:
        from agno.models.message import Message

        return [Message(role=role, content=text) for role, text in (*HISTORY, ("user", QUESTION))]

    def _whole(self, agent: Any, asked: Any) -> Once:
        async def once() -> str:
            return str((await agent.arun(asked)).content)

        return once

    def _stream(self, agent: Any, asked: Any) -> Once:
        async def once() -> str:
            return "".join(
                [
                    event.content
                    async for event in agent.arun(asked, stream=True)
                    if event.event == "RunContent"
                ]
            )

        return once


class OpenAIAgents(Client):
    """`await Runner.run(...)`."""

    def agent(self, **more: Any) -> Any:
        from agents import Agent, OpenAIChatCompletionsModel, set_tracing_disabled

        set_tracing_disabled(True)
        return Agent(
            name="a",
            instructions=INSTRUCTION,
            model=OpenAIChatCompletionsModel(MODEL, self.client),
            **more,
        )

    def whole(self, *_: Any) -> Once:
        return self._whole(self.agent(), QUESTION)

    def stream(self, *_: Any) -> Once:
        return self._stream(self.agent(), QUESTION)

    def tool(self) -> Once:
        from agents import function_tool

        @function_tool
        async def cold(city: str) -> str:
            """The weather in a city."""
            return weather(city)

        return self._whole(self.agent(tools=[cold]), QUESTION)

    def history(self) -> Once:
        return self._whole(self.agent(), self._messages())

    def history_stream(self) -> Once:
        return self._stream(self.agent(), self._messages())

    def _messages(self) -> Any:
        return [{"role": role, "content": text} for role, text in (*HISTORY, ("user", QUESTION))]

    def _whole(self, agent: Any, asked: Any) -> Once:
        from agents import Runner

        async def once() -> str:
            return str((await Runner.run(agent, asked)).final_output)

        return once

    def _stream(self, agent: Any, asked: Any) -> Once:
        from agents import Runner

        async def once() -> str:
            result = Runner.run_streamed(agent, asked)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)

        return once


class PydanticAI(Client):
    """`await agent.run(...)`."""

    def agent(self, **more: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return Agent(
            OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=self.client)),
            name="a",
            instructions=INSTRUCTION,
            **more,
        )

    def whole(self, *_: Any) -> Once:
        return self._whole(self.agent())

    def stream(self, *_: Any) -> Once:
        return self._stream(self.agent())

    def tool(self) -> Once:
        async def cold(city: str) -> str:
            """The weather in a city."""
            return weather(city)

        return self._whole(self.agent(tools=[cold]))

    def history(self) -> Once:
        return self._whole(self.agent(), message_history=self._messages())

    def history_stream(self) -> Once:
        return self._stream(self.agent(), message_history=self._messages())

    def _messages(self) -> Any:
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

        return [
            ModelRequest([UserPromptPart(text)])
            if role == "user"
            else ModelResponse([TextPart(text)])
            for role, text in HISTORY
        ]

    def _whole(self, agent: Any, **more: Any) -> Once:
        async def once() -> str:
            return str((await agent.run(QUESTION, **more)).output)

        return once

    def _stream(self, agent: Any, **more: Any) -> Once:
        async def once() -> str:
            async with agent.run_stream(QUESTION, **more) as result:
                return "".join([piece async for piece in result.stream_text(delta=True)])

        return once


class LangChain(Contender):
    """`create_agent`."""

    def agent(self, tools: Any = ()) -> Any:
        from langchain.agents import create_agent
        from langchain_openai import ChatOpenAI

        return create_agent(
            ChatOpenAI(
                model=MODEL, base_url=self.base_url, api_key="none", max_retries=0, timeout=600
            ),
            list(tools),
            system_prompt=INSTRUCTION,
            name="a",
        )

    def whole(self) -> Once:
        return self._whole(self.agent(), [("user", QUESTION)])

    def stream(self) -> Once:
        return self._stream(self.agent(), [("user", QUESTION)])

    def tool(self) -> Once:
        from langchain_core.tools import tool

        @tool
        async def cold(city: str) -> str:
            """The weather in a city."""
            return weather(city)

        return self._whole(self.agent([cold]), [("user", QUESTION)])

    def history(self) -> Once:
        return self._whole(self.agent(), [*HISTORY, ("user", QUESTION)])

    def history_stream(self) -> Once:
        return self._stream(self.agent(), [*HISTORY, ("user", QUESTION)])

    def _whole(self, agent: Any, messages: Any) -> Once:
        async def once() -> str:
            return str((await agent.ainvoke({"messages": messages}))["messages"][-1].content)

        return once

    def _stream(self, agent: Any, messages: Any) -> Once:
        async def once() -> str:
            return "".join(
                [
                    str(chunk.content)
                    async for chunk, _ in agent.astream(
                        {"messages": messages}, stream_mode="messages"
                    )
                ]
            )

        return once


PEERS: Final[dict[str, type[Contender]]] = {
    "agno": Agno,
    "openai-agents": OpenAIAgents,
    "pydantic-ai": PydanticAI,
    "langchain": LangChain,
}
