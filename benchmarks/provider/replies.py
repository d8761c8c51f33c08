"""Which reply a request gets, and its bytes.

The request says it: `[c=17 t=2 do=tool]` in what the user said last. It is searched, not parsed.

    do=talk        an answer
    do=tool        a call of the tool `lookup`, and an answer to its result
    do=transfer    the model `front` hands over to the agent `back`, whose model answers

Without a mark, the answer has 60 words. An answer to a mark names the conversation and the turn, so
that conversations which are mixed up are found out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["SIXTY_WORDS", "Reply", "answer_of", "chunks_of", "reply_to", "text_of", "whole_of"]

SIXTY_WORDS = " ".join(f"word{number:02}" for number in range(60))

_MARK = re.compile(rb"\[c=(\d+) t=(\d+) do=(\w+)\]")
_FRONT = re.compile(rb'"model": ?"front"')
_STREAMED = re.compile(rb'"stream": ?true')
_USAGE_WANTED = re.compile(rb'"include_usage": ?true')
_TOOL_RESULT = re.compile(rb'"role": ?"tool"')


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says: a text, or a call."""

    turn: tuple[int, int] | None  # the conversation and its turn
    text: str
    call: tuple[str, str] | None  # the name of a tool and its arguments
    streamed: bool
    usage: bool  # whether the last of its chunks has the usage, which a request has to ask for


def text_of(conversation: int, turn: int, do: str) -> str:
    """What a user says to get that reply."""
    return f"[c={conversation} t={turn} do={do}] Where is my order?"


def answer_of(conversation: int, turn: int) -> str:
    return f"Order {conversation} is at stop {turn}."


def reply_to(body: bytes) -> Reply:
    streamed = _STREAMED.search(body) is not None
    usage = streamed and _USAGE_WANTED.search(body) is not None
    at = body.rfind(b"[c=")
    mark = _MARK.match(body, at) if at >= 0 else None
    if mark is None:
        return Reply(None, SIXTY_WORDS, None, streamed, usage)
    conversation, turn, do = int(mark[1]), int(mark[2]), mark[3]
    call = None
    if do == b"tool" and _TOOL_RESULT.search(body, at) is None:
        call = ("lookup", f'{{"order": {conversation}}}')
    elif do == b"transfer" and _FRONT.search(body) is not None:
        call = ("transfer_to_agent", '{"agent_name": "back"}')
    return Reply(
        (conversation, turn), "" if call else answer_of(conversation, turn), call, streamed, usage
    )


def _head(kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": 1_700_000_000,
        "model": "gpt-4o-2024-08-06",
    }


_USAGE = {"prompt_tokens": 12, "completion_tokens": 60, "total_tokens": 72}


def whole_of(reply: Reply) -> bytes:
    """The body of a whole reply."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.call is not None:
        message["tool_calls"] = [_call_of(reply.call)]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if reply.call else "stop",
    }
    return json.dumps({**_head("chat.completion"), "choices": [choice], "usage": _USAGE}).encode()


def chunks_of(reply: Reply) -> list[bytes]:
    """The events of a streamed reply: one for each word."""
    if reply.call is not None:
        deltas: list[dict[str, Any]] = [{"tool_calls": [{"index": 0, **_call_of(reply.call)}]}]
    else:
        words = reply.text.split(" ")
        deltas = [
            {"content": word if last else word + " "}
            for word, last in zip(words, [False] * (len(words) - 1) + [True], strict=True)
        ]
    deltas[0]["role"] = "assistant"
    head = _head("chat.completion.chunk")
    events = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    events.append(
        {
            **head,
            "choices": [
                {"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.call else "stop"}
            ],
        }
    )
    if reply.usage:
        events.append({**head, "choices": [], "usage": _USAGE})
    return [
        *(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events),
        b"data: [DONE]\n\n",
    ]


def _call_of(call: tuple[str, str]) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": call[0], "arguments": call[1]}}
