"""The parts that both bridges share: the model of a call, and both of its directions.

With a key, the model is OpenAI's; without one, a local server with scripted lines.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from offbook.actors.realtime import OpenAIRealtimeModel, RealtimeSession
from offbook.actors.realtime.local import Call, LocalRealtimeServer, Reply, Say, silence, speech

SPOKEN = ("Hello", "I was charged twice, invoice 7", "Yes please, pay it back")
BEHIND = {
    "transfer_to_billing": Reply(Call("find_invoice", '{"number": "7"}')),
    "find_invoice": Reply(
        Say(
            "I see it: you were charged twice. I can pay 40 euros back, unless you would "
            "rather have them on your next bill.",
            ms=6_000,
        )
    ),
    "refund": Reply(Say("It is done: 40 euros are on their way.", ms=1_500)),
}
TURNS = (
    Reply(Say("Hello. Is it about a bill, or about your line?", ms=1_500)),
    Reply(Call("transfer_to_billing")),
    Reply(Call("refund", '{"number": "7", "euros": 40}')),
)


def what_is_said(session: Any, _options: dict[str, Any]) -> Reply:
    """Return the next line: that of the last tool, or the one for the number of the caller's
    messages.
    """
    last = session.items[-1]
    if last["type"] == "function_call_output":
        name = next(
            item["name"]
            for item in session.items
            if item["type"] == "function_call" and item["call_id"] == last["call_id"]
        )
        return BEHIND[name]
    turns = sum(item.get("role") == "user" for item in session.items)
    return TURNS[turns - 1] if turns <= len(TURNS) else Reply(Say("Anything else?", ms=500))


class Ear:
    """Detects speech by loudness, because the local server cannot hear: it sends the caller's line
    as text.
    """

    def __init__(self, loudness: Callable[[bytes], float], sample_bytes: int) -> None:
        self._loudness = loudness
        self._sample_bytes = sample_bytes
        self._speaks = False
        self._run = 0  # chunks with the opposite loudness
        self._turns = 0

    def hear(self, chunk: bytes) -> bytes:
        """Return the message that replaces 20 ms of sound."""
        self._run = self._run + 1 if (self._loudness(chunk) > 0.02) != self._speaks else 0
        if self._run < (25 if self._speaks else 3):
            return b""
        self._speaks, self._run = not self._speaks, 0
        if not self._speaks:
            return silence(20, sample_bytes=self._sample_bytes)
        text = SPOKEN[self._turns] if self._turns < len(SPOKEN) else "That was all"
        self._turns += 1
        return speech(text, 20, sample_bytes=self._sample_bytes)


@asynccontextmanager
async def line(
    loudness: Callable[[bytes], float], sample_bytes: int
) -> AsyncIterator[tuple[OpenAIRealtimeModel, Callable[[bytes], bytes]]]:
    """Return the model, and a function that prepares each chunk for it."""
    if os.environ.get("OPENAI_API_KEY"):
        yield OpenAIRealtimeModel(), bytes
        return
    async with LocalRealtimeServer(otherwise=what_is_said) as server:
        yield (
            OpenAIRealtimeModel(base_url=server.base_url, api_key="none"),
            Ear(loudness, sample_bytes).hear,
        )


async def until_one_ends(*sides: Coroutine[Any, Any, None]) -> None:
    """Run both directions of a call.

    When one has ended, the other ends; raises what the first one raised.
    """
    tasks = [asyncio.create_task(side) for side in sides]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def answer_approval(session: RealtimeSession, call_id: str, *, approved: bool) -> None:
    """Answer a call that waits, unless it was answered before."""
    if any(one.call_id == call_id for one in session.pending_approvals):
        await (
            session.approve_tool_call(call_id) if approved else session.reject_tool_call(call_id)
        )
