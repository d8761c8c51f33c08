"""Swarm, OpenAI's experiment (the distribution `openai-swarm`): `Swarm(client).run(agent,
messages)`, synchronous. A bare loop: a floor more than a peer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from swarm import Agent, Swarm

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    HTTP_LANES,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["SwarmLoop"]

SYNCHRONOUS = "it is synchronous: a run holds its thread while its model thinks"
NO_STORE = "it keeps nothing, and a tool cannot wait"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def new_tool(index: int) -> Callable[..., int]:
    def added(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    added.__name__ = f"add_{index}"
    return added


def completion(content: str | None, call: tuple[str, str] | None = None) -> ChatCompletion:
    calls: Any = None
    if call is not None:
        calls = [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": call[0], "arguments": call[1]},
            }
        ]
    message = ChatCompletionMessage(role="assistant", content=content, tool_calls=calls)
    choice = Choice(index=0, finish_reason="stop", message=message)
    return ChatCompletion(
        id="1", created=0, model=MODEL_NAME, object="chat.completion", choices=[choice]
    )


class Client:
    """As much of the `openai` client as Swarm uses: `client.chat.completions.create(...)`."""

    def __init__(self, reply: Callable[[str, list[Any]], ChatCompletion]) -> None:
        self.chat = self.completions = self
        self.reply = reply

    def create(self, *, model: str, messages: list[Any], **rest: Any) -> ChatCompletion:
        del rest
        return self.reply(model, messages)


def instant(model: str, messages: list[Any]) -> ChatCompletion:
    del model, messages
    return completion(ANSWER)


def calls_tool(model: str, messages: list[Any]) -> ChatCompletion:
    del model
    return (
        completion(ANSWER)
        if messages[-1]["role"] == "tool"
        else completion(None, ("add", ARGUMENTS))
    )


def hands_over(model: str, messages: list[Any]) -> ChatCompletion:
    del messages
    return completion(ANSWER) if model == "b" else completion(None, ("transfer_to_b", "{}"))


class SwarmLoop(AgentContender):
    key = "swarm"
    title = "Swarm"
    what = "Swarm(client).run(agent, messages), synchronous"
    distribution = "openai-swarm"
    cannot: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("turns_at_once", "turns_alive", "in_sequence", "in_parallel", "sessions"), SYNCHRONOUS
        ),
        **dict.fromkeys(("resumes_memory", "resumes_sqlite"), NO_STORE),
        **dict.fromkeys(
            ("transfers_10", "transfers_200", "handoff", "handoffs_10", "handoffs_200"),
            "not measured: the same as W4",
        ),
        "tool_thread": "it has no threads of its own",
    }
    differs: ClassVar[dict[str, str]] = dict.fromkeys(
        ("http_whole", "http_stream"), "in as many threads as turns at once: it is synchronous"
    )

    def define(self, index: int, *, own_tool: bool) -> object:
        return Agent(
            name=f"agent {index}",
            instructions="Be brief.",
            functions=[new_tool(index) if own_tool else add],
        )

    def once(self, what: What) -> Once:
        reply = {"turn": instant, "giving_way": instant, "transfer": hands_over}.get(
            what, calls_tool
        )
        swarm = Swarm(client=Client(reply))
        agent = Agent(
            name="a", model="a", functions=[add] if what in ("tool", "tool_thread") else []
        )
        if what == "transfer":
            other = Agent(name="b", model="b")

            def transfer_to_b() -> Agent:
                """Hand over to b."""
                return other

            agent.functions = [transfer_to_b]

        async def once() -> str:
            response = swarm.run(agent=agent, messages=[{"role": "user", "content": QUESTION}])
            return str(response.messages[-1]["content"])

        return once

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        client = OpenAI(base_url=base_url, api_key="none", max_retries=0)
        swarm = Swarm(client=client)
        agent = Agent(name="a", model=MODEL_NAME, instructions="Be brief.")
        threads = ThreadPoolExecutor(HTTP_LANES)

        def run() -> str:
            response = swarm.run(
                agent=agent, messages=[{"role": "user", "content": QUESTION}], stream=streaming
            )
            if not streaming:
                return str(response.messages[-1]["content"])
            return "".join(part["content"] or "" for part in response if "content" in part)

        async def once() -> str:
            return await asyncio.get_running_loop().run_in_executor(threads, run)

        async def close() -> None:
            threads.shutdown()
            client.close()

        return once, close
