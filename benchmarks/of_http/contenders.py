"""Who is asked: a run over HTTP by this project on both of its ways, by the `openai` client, and by
hand on aiohttp.

Each contender makes a function for a kind of run, which returns the text that came; over `paced`, a
function that is told of each piece as it comes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

__all__ = [
    "CONTENDERS",
    "HISTORY",
    "INSTRUCTION",
    "MODEL",
    "QUESTION",
    "Contender",
    "Once",
    "weather",
]

MODEL: Final = "gpt-4o"
INSTRUCTION: Final = "Be brief."
QUESTION: Final = "How much is one and two?"
HISTORY: Final = [
    (
        "user" if number % 2 == 0 else "assistant",
        f"message {number} of a conversation that has been going on for a while, as they do",
    )
    for number in range(100)
]

Once = Callable[[], Awaitable[str]]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is cold in {city}."


class Contender:
    """What can be asked over HTTP. A kind that it has no method for, it cannot do."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    async def close(self) -> None:
        """Let go of the connections."""


class ByHand(Contender):
    """aiohttp and json, by hand: how far away it is says what all the rest costs."""

    def __init__(self, base_url: str) -> None:
        import aiohttp

        super().__init__(base_url)
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_trusted())
        )
        self.url = f"{base_url}/chat/completions"

    def body(self, *earlier: tuple[str, str], **more: Any) -> dict[str, Any]:
        messages = [
            {"role": role, "content": text}
            for role, text in (("system", INSTRUCTION), *earlier, ("user", QUESTION))
        ]
        return {"model": MODEL, "messages": messages, **more}

    def whole(self, *earlier: tuple[str, str]) -> Once:
        async def once() -> str:
            async with self.session.post(self.url, json=self.body(*earlier)) as response:
                return str(json.loads(await response.read())["choices"][0]["message"]["content"])

        return once

    def stream(self, *earlier: tuple[str, str]) -> Once:
        async def once() -> str:
            pieces = []
            async with self.session.post(
                self.url,
                json=self.body(*earlier, stream=True, stream_options={"include_usage": True}),
            ) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        choices = json.loads(line[6:])["choices"]
                        if choices:
                            pieces.append(choices[0]["delta"].get("content") or "")
            return "".join(pieces)

        return once

    def history(self) -> Once:
        return self.whole(*HISTORY)

    def history_stream(self) -> Once:
        return self.stream(*HISTORY)

    async def close(self) -> None:
        await self.session.close()


class Client(Contender):
    """The `openai` client alone."""

    def __init__(self, base_url: str) -> None:
        from openai import AsyncOpenAI

        super().__init__(base_url)
        self.client = AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0, timeout=600)

    def messages(self, *earlier: tuple[str, str]) -> Any:
        return [
            {"role": role, "content": text}
            for role, text in (("system", INSTRUCTION), *earlier, ("user", QUESTION))
        ]

    def whole(self, *earlier: tuple[str, str]) -> Once:
        async def once() -> str:
            completion = await self.client.chat.completions.create(
                model=MODEL, messages=self.messages(*earlier)
            )
            return completion.choices[0].message.content or ""

        return once

    def stream(self, *earlier: tuple[str, str]) -> Once:
        async def once() -> str:
            options: Any = {"include_usage": True}
            stream = await self.client.chat.completions.create(
                model=MODEL, messages=self.messages(*earlier), stream=True, stream_options=options
            )
            return "".join(
                [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
            )

        return once

    def history(self) -> Once:
        return self.whole(*HISTORY)

    def history_stream(self) -> Once:
        return self.stream(*HISTORY)

    async def close(self) -> None:
        await self.client.close()


class Offbook(Contender):
    """A run by a `Runner`, over the wire."""

    def __init__(self, base_url: str) -> None:
        from offbook.runtime import OpenAIChatModel

        super().__init__(base_url)
        self.model = OpenAIChatModel(MODEL, api_key="none", base_url=base_url)

    def runner(self, **more: Any) -> Any:
        from offbook.actors import ChatModelAgent
        from offbook.runtime import Runner

        return Runner(ChatModelAgent(name="a", instruction=INSTRUCTION, model=self.model, **more))

    def whole(self) -> Once:
        return self._whole(self.runner(), QUESTION)

    def stream(self) -> Once:
        return self._stream(self.runner(), QUESTION)

    def tool(self) -> Once:
        from offbook.actors import tool

        async def cold(city: str) -> str:
            """The weather in a city."""
            return weather(city)

        return self._whole(self.runner(tools=[tool(cold)]), QUESTION)

    def history(self) -> Once:
        return self._whole(self.runner(), self._messages())

    def history_stream(self) -> Once:
        return self._stream(self.runner(), self._messages())

    def paced(self) -> Callable[[Callable[[str], object]], Awaitable[None]]:
        runner = self.runner()

        async def once(take: Callable[[str], object]) -> None:
            async for event in runner.query(QUESTION, streaming=True):
                if event.delta is not None:
                    take(event.delta.content)

        return once

    def _messages(self) -> Any:
        from offbook.runtime import Message

        return [
            Message.user(text) if role == "user" else Message.assistant(text)
            for role, text in (*HISTORY, ("user", QUESTION))
        ]

    def _whole(self, runner: Any, asked: Any) -> Once:
        async def once() -> str:
            return str((await runner.run(asked)).final_output)

        return once

    def _stream(self, runner: Any, asked: Any) -> Once:
        async def once() -> str:
            return "".join(
                [
                    event.delta.content
                    async for event in runner.run(asked, streaming=True)
                    if event.delta is not None
                ]
            )

        return once

    async def close(self) -> None:
        await self.model.aclose()


class OffbookByClient(Offbook):
    """The same with `client=`: through the `openai` client."""

    def __init__(self, base_url: str) -> None:
        from openai import AsyncOpenAI

        from offbook.runtime import OpenAIChatModel

        super().__init__(base_url)
        self.client = AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0, timeout=600)
        self.model = OpenAIChatModel(MODEL, client=self.client)

    async def close(self) -> None:
        await self.client.close()


def _trusted() -> Any:
    import ssl

    return ssl.create_default_context()  # which knows SSL_CERT_FILE


CONTENDERS: Final[dict[str, type[Contender]]] = {
    "offbook": Offbook,
    "offbook, client=": OffbookByClient,
    "openai client": Client,
    "aiohttp by hand": ByHand,
}
