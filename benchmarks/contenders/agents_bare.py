"""A bare loop: the model's function and the tool's are called by hand.

No events, no history policy, no validation, no cancelling, no supervision.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    MODEL_NAME,
    QUESTION,
    AgentContender,
    Once,
    What,
)

__all__ = ["BareLoop"]

NO_DEFINITION = "there is nothing to define"


async def add(a: int, b: int) -> int:
    return a + b


def add_blocking(a: int, b: int) -> int:
    return a + b


async def instant(messages: list[dict[str, Any]]) -> dict[str, Any]:
    del messages
    return {"role": "assistant", "content": ANSWER}


async def giving_way(messages: list[dict[str, Any]]) -> dict[str, Any]:
    del messages
    await asyncio.sleep(0)
    return {"role": "assistant", "content": ANSWER}


async def calls_tool(messages: list[dict[str, Any]]) -> dict[str, Any]:
    if messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": ANSWER}
    return {
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "name": "add", "arguments": ARGUMENTS}],
    }


async def hands_over(messages: list[dict[str, Any]]) -> dict[str, Any]:
    del messages
    return {
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "name": "transfer", "arguments": '{"agent_name": "b"}'}],
    }


async def loop(models: dict[str, Any], tools: dict[str, Any], *, threads: bool = False) -> str:
    """Ask the model, make its calls, ask again, until it answers."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model = models["a"]
    while True:
        reply = await model(messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return str(reply["content"])
        for call in reply["tool_calls"]:
            arguments = json.loads(call["arguments"])
            if call["name"] == "transfer":
                model, result = models[arguments["agent_name"]], "transferred"
            elif threads:
                result = await asyncio.to_thread(tools[call["name"]], **arguments)
            else:
                result = await tools[call["name"]](**arguments)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(result)})


class BareLoop(AgentContender):
    key = "bare"
    title = "bare loop"
    what = "the functions of the model and of the tool, called in a while loop: a floor, not a peer"
    distribution = ""
    cannot: ClassVar[dict[str, str]] = {
        "define_shared": NO_DEFINITION,
        "define_own": NO_DEFINITION,
        "resumes_memory": "it cannot wait",
        "resumes_sqlite": "it cannot wait",
        "imports": "there is nothing to import",
    }
    differs: ClassVar[dict[str, str]] = dict.fromkeys(
        ("http_whole", "http_stream"), "the openai client alone"
    )

    @classmethod
    def version(cls) -> str:
        return platform.python_version()

    def once(self, what: What) -> Once:
        models: dict[str, Any] = {
            "turn": {"a": instant},
            "giving_way": {"a": giving_way},
            "transfer": {"a": hands_over, "b": instant},
            "handoff": {"a": hands_over, "b": instant},
        }.get(what, {"a": calls_tool})
        threads = what == "tool_thread"
        tools = {"add": add_blocking if threads else add}

        async def once() -> str:
            return await loop(models, tools, threads=threads)

        return once

    def handing_off(self, times: int) -> Once:
        return self.relay(times)

    def relay(self, transfers: int) -> Once:
        left = transfers

        def model(to: str) -> Any:
            arguments = f'{{"agent_name": "{to}"}}'

            async def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
                nonlocal left
                if not left:
                    left = transfers
                    return await instant(messages)
                left -= 1
                return {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": f"call_{left}", "name": "transfer", "arguments": arguments}
                    ],
                }

            return reply

        models = {"a": model("b"), "b": model("a")}

        async def once() -> str:
            return await loop(models, {})

        return once

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        from openai import AsyncOpenAI

        client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
        messages: Any = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": QUESTION},
        ]

        async def whole() -> str:
            return str(
                (await client.chat.completions.create(model=MODEL_NAME, messages=messages))
                .choices[0]
                .message.content
            )

        async def streamed() -> str:
            pieces = await client.chat.completions.create(
                model=MODEL_NAME, messages=messages, stream=True
            )
            return "".join(
                [piece.choices[0].delta.content or "" async for piece in pieces if piece.choices]
            )

        return (streamed if streaming else whole), client.close

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        async def asleep(messages: list[dict[str, Any]]) -> dict[str, Any]:
            on_call()
            await asyncio.sleep(seconds)
            return await instant(messages)

        models = {"a": asleep}

        async def once(number: int) -> str:
            del number
            return await loop(models, {})

        return once
