"""Conversion of Responses API replies to messages, including the last event of a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..data.chat import Message, ToolCall, Usage
from ..errors import ModelError
from ..tracing import describe_reply
from .openai_chat_reply import WRONG_SHAPE, checked, pick, text_at, tokens_at, unreadable
from .openai_errors import event_error
from .tool_call_deltas import arguments_text, with_unique_ids

__all__ = ["response_message"]

_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


def response_message(
    response: object, taken: Iterable[str], who: object, shown: tuple[ToolCall, ...] = ()
) -> Message:
    """Convert a response to a message.

    Tool calls that a stream has already `shown` retain their ids.
    """
    try:
        return _response_message(response, taken, who, shown)
    except WRONG_SHAPE as problem:
        raise unreadable(problem, who) from problem


def _response_message(
    response: object, taken: Iterable[str], who: object, shown: tuple[ToolCall, ...]
) -> Message:
    if response is None or isinstance(response, str):
        msg = (
            f"{who}: the provider's answer is not a response, but {str(response)[:200]!r}. Check "
            "the base_url."
        )
        raise ModelError(msg, kind="malformed", retryable=True)
    if pick(response, "status") in {"failed", "cancelled"} or pick(response, "error") is not None:
        raise event_error(pick(response, "error"), who)
    text, refusal, reasoning = [], [], []
    calls: list[tuple[str, str, str]] = []
    for item in pick(response, "output") or ():
        kind = pick(item, "type")
        if kind == "message":
            for part in pick(item, "content") or ():
                text.append(text_at(part, "text"))
                refusal.append(text_at(part, "refusal"))
        elif kind == "reasoning":
            reasoning += [
                text_at(part, "text")
                for part in (*(pick(item, "summary") or ()), *(pick(item, "content") or ()))
            ]
        elif kind == "function_call":
            calls.append(
                (
                    text_at(item, "call_id"),
                    text_at(item, "name"),
                    arguments_text(pick(item, "arguments")),
                )
            )
    describe_reply(pick(response, "id"), pick(response, "model"))
    finish_reason = _finish_reason(response, has_calls=bool(calls))
    whole = with_unique_ids(calls, taken, finish_reason)
    if len(shown) == len(whole):
        whole = tuple(
            ToolCall(seen.id, call.name, call.arguments)
            for seen, call in zip(shown, whole, strict=True)
        )
    message = Message(
        "assistant",
        "".join(text),
        whole,
        reasoning="\n\n".join(filter(None, reasoning)) or None,
        usage=_usage(pick(response, "usage")),
        refusal="".join(refusal) or None,
        finish_reason=finish_reason,
    )
    return checked(message, who)


def _finish_reason(response: object, *, has_calls: bool) -> str | None:
    if pick(response, "status") == "incomplete":
        reason = text_at(pick(response, "incomplete_details"), "reason")
        return _REASONS.get(reason, reason or "incomplete")
    return "tool_calls" if has_calls else "stop"


def _usage(counted: object) -> Usage:
    if counted is None:
        return Usage(requests=1)
    cached = tokens_at(pick(counted, "input_tokens_details"), "cached_tokens")
    return Usage(tokens_at(counted, "input_tokens"), tokens_at(counted, "output_tokens"), cached, 1)
