"""Replies of chat completions, whole and in pieces, as messages.

Owns: the reading of what providers send, which differs in many ways: whatever is missing is taken as empty. A reply that says nothing at all is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..data.chat import Message, MessageDelta, ToolCallDelta, Usage
from ..errors import ModelError
from .openai_errors import event_error
from .tool_call_deltas import ToolCallMerger, arguments_text, with_unique_ids

__all__ = ["WRONG_SHAPE", "ReplyInPieces", "checked", "pick", "unreadable", "whole_reply"]

WRONG_SHAPE: Final = (TypeError, KeyError, AttributeError)
"""What the reading raises where a provider sends a number for a text, or an object for a list."""


def pick(thing: object, name: str) -> Any:
    """What the thing, an object or a mapping, has under that name, or None."""
    if type(thing) is dict:
        return thing.get(name)
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def whole_reply(completion: object, taken: Iterable[str], who: object) -> Message:
    """The message of a completion. `taken` are the ids of the tool calls that came before."""
    try:
        return _whole_reply(completion, taken, who)
    except WRONG_SHAPE as problem:
        raise unreadable(problem, who) from problem


def unreadable(problem: Exception, who: object) -> ModelError:
    """The error of a reply that is JSON, but not in the form that the API has."""
    msg = f"{who}: the provider's answer is not in the form of this API: {type(problem).__name__}: {problem}. Check the base_url."
    return ModelError(msg, kind="malformed", retryable=True)


def _whole_reply(completion: object, taken: Iterable[str], who: object) -> Message:
    if completion is None or isinstance(completion, str):
        msg = f"{who}: the provider's answer is not a chat completion, but {str(completion)[:200]!r}. Check the base_url."
        raise ModelError(msg, kind="malformed", retryable=True)
    usage = _usage(pick(completion, "usage"), Usage(requests=1))
    choices = pick(completion, "choices") or ()
    error = pick(completion, "error")
    if error and not choices and isinstance(error, Mapping | str):  # with status 200: gateways send so what their provider has failed with
        raise event_error(error, who)
    choice = choices[0] if choices else None
    said = pick(choice, "message")
    calls = [call for call in pick(said, "tool_calls") or () if pick(call, "function") is not None]
    message = Message(
        "assistant",
        _text(pick(said, "content")),
        with_unique_ids([(pick(call, "id") or "", *_function(call)) for call in calls], taken),
        reasoning=_reasoning(said) or None,
        usage=usage,
        refusal=_text(pick(said, "refusal")) or None,
        finish_reason=pick(choice, "finish_reason"),
    )
    return checked(message, who)


class ReplyInPieces:
    """Puts the chunks of a streamed completion together."""

    def __init__(self, taken: Iterable[str], who: object) -> None:
        self._who = who
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls = ToolCallMerger(taken)
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self.is_done = False
        """Whether the provider has said that this was all."""

    def add(self, chunk: object) -> MessageDelta | None:
        """What the chunk adds to the message, if it adds anything to show."""
        text = _only_text(chunk)
        if text:
            self._content.append(text)
            return MessageDelta(text)
        try:
            return self._add(chunk)
        except WRONG_SHAPE as problem:
            raise unreadable(problem, self._who) from problem

    def _add(self, chunk: object) -> MessageDelta | None:
        self._usage = _usage(pick(chunk, "usage"), self._usage)
        choices = pick(chunk, "choices") or ()
        if not choices:
            return None
        choice = choices[0]
        self._finish_reason = pick(choice, "finish_reason") or self._finish_reason
        delta = pick(choice, "delta")
        content, reasoning = _text(pick(delta, "content")), _reasoning(delta)
        self._content.append(content)
        self._reasoning.append(reasoning)
        self._refusal.append(_text(pick(delta, "refusal")))
        pieces = tuple(self._piece(call) for call in pick(delta, "tool_calls") or ())
        return MessageDelta(content, reasoning, pieces) if content or reasoning or pieces else None

    def message(self) -> Message:
        """The whole message, when the stream has ended."""
        if self._finish_reason is None and not self.is_done:
            msg = f"{self._who}: the stream was cut off before the reply was complete."
            raise ModelError(msg, kind="connection", retryable=True)
        message = Message(
            "assistant",
            "".join(self._content),
            self._calls.calls(),
            reasoning="".join(self._reasoning) or None,
            usage=self._usage or Usage(requests=1),
            refusal="".join(self._refusal) or None,
            finish_reason=self._finish_reason,
        )
        return checked(message, self._who)

    def _piece(self, call: object) -> ToolCallDelta:
        name, arguments = _function(call)
        index = pick(call, "index")
        return self._calls.add(index if isinstance(index, int) else None, pick(call, "id") or "", name, arguments)


def _only_text(chunk: object) -> str | None:
    """The text in a chunk that has nothing else in it, as nearly all of them are; None for any other."""
    if type(chunk) is not dict or chunk.get("usage") is not None:
        return None
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict or choices[0].get("finish_reason") is not None:
        return None
    delta = choices[0].get("delta")
    if type(delta) is not dict:
        return None
    text = delta.get("content")
    # `role` comes with the first piece, with some providers in each.
    return text if type(text) is str and len(delta) == 1 + ("role" in delta) else None


def checked(message: Message, who: object) -> Message:
    """The message, if it says anything."""
    if message.content or message.tool_calls or message.refusal:
        return message
    if message.finish_reason == "length":
        msg = f"{who}: the tokens were used up before the reply began; raise max_tokens."
        raise ModelError(msg, kind="length", message=message)
    if message.finish_reason == "content_filter":
        msg = f"{who}: the provider's filter has withheld the reply."
        raise ModelError(msg, kind="content_filter", message=message)
    msg = f"{who}: the reply is empty: no text, no tool call, no refusal (finish_reason={message.finish_reason!r})."
    raise ModelError(msg, kind="empty", retryable=True, message=message)


def _function(call: object) -> tuple[str, str]:
    function = pick(call, "function")
    return pick(function, "name") or "", arguments_text(pick(function, "arguments"))


def _text(content: str | Iterable[object] | None) -> str:
    if isinstance(content, str):
        return content
    return "".join(pick(part, "text") or "" for part in content or ())


def _reasoning(said: object) -> str:
    for name in ("reasoning_content", "reasoning"):
        text = pick(said, name)
        if isinstance(text, str) and text:
            return text
    return ""


def _usage(counted: object, otherwise: Usage | None = None) -> Usage | None:
    if counted is None:
        return otherwise
    cached = pick(pick(counted, "prompt_tokens_details"), "cached_tokens")
    if cached is None:
        cached = pick(counted, "prompt_cache_hit_tokens")
    return Usage(pick(counted, "prompt_tokens") or 0, pick(counted, "completion_tokens") or 0, cached or 0, 1)
