"""Conversion of chat completion replies, whole and streamed, to messages.

Providers differ in many ways: missing parts count as empty. A reply without any content is an
error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..data.chat import Message, MessageDelta, ToolCallDelta, Usage
from ..errors import ModelError
from ..tracing import describe_reply
from .openai_errors import error_in, event_error
from .tool_call_deltas import ToolCallMerger, arguments_text, with_unique_ids

__all__ = [
    "WRONG_SHAPE",
    "ReplyInPieces",
    "checked",
    "pick",
    "text_at",
    "tokens_at",
    "unreadable",
    "whole_reply",
]

WRONG_SHAPE: Final = (TypeError, KeyError, AttributeError)
"""Errors of the conversion if a provider sends, for example, a number instead of a string."""


_PLAIN: Final = (str, int, float, list, tuple, type(None))
_MOST_TOKENS: Final = 1 << 53


def pick(thing: object, name: str) -> Any:
    """Return the value under that name in an object or a mapping, or None."""
    if type(thing) is dict or isinstance(thing, Mapping):
        return thing.get(name)
    return None if isinstance(thing, _PLAIN) else getattr(thing, name, None)


def text_at(thing: object, name: str) -> str:
    """Return the string under that name; an empty one if it is missing.

    Raises `TypeError` if it is something else.
    """
    value = pick(thing, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        msg = f"{name} must be a string, got {value!r:.80}"
        raise TypeError(msg)
    return value


def tokens_at(thing: object, name: str) -> int:
    """Return the number of tokens under that name; 0 if it is missing or invalid.

    The reply is still useful without it.
    """
    value = pick(thing, name)
    return int(value) if isinstance(value, int | float) and 0 <= value < _MOST_TOKENS else 0


def whole_reply(completion: object, taken: Iterable[str], who: object) -> Message:
    """Convert a completion to a message. `taken` are the ids of the tool calls that came before."""
    try:
        return _whole_reply(completion, taken, who)
    except WRONG_SHAPE as problem:
        raise unreadable(problem, who) from problem


def unreadable(problem: Exception, who: object) -> ModelError:
    """Return the error for a reply that is JSON, but not in the form of the API."""
    msg = (
        f"{who}: the provider's answer is not in the form of this API: {type(problem).__name__}: "
        f"{problem}. Check the base_url."
    )
    return ModelError(msg, kind="malformed", retryable=True)


def _whole_reply(completion: object, taken: Iterable[str], who: object) -> Message:
    if completion is None or isinstance(completion, str):
        msg = (
            f"{who}: the provider's answer is not a chat completion, but "
            f"{str(completion)[:200]!r}. Check the base_url."
        )
        raise ModelError(msg, kind="malformed", retryable=True)
    usage = _usage(pick(completion, "usage"), Usage(requests=1))
    describe_reply(pick(completion, "id"), pick(completion, "model"))
    choices = _choices(completion)
    error = error_in(completion) or pick(completion, "error")
    # Gateways report errors of their provider like this, with status 200.
    if not choices and isinstance(error, Mapping | str) and error:
        raise event_error(error, who)
    choice = min(choices, key=_index, default=None)
    said = pick(choice, "message")
    calls = [call for call in pick(said, "tool_calls") or () if pick(call, "function") is not None]
    finish_reason = text_at(choice, "finish_reason") or None
    message = Message(
        "assistant",
        _text(pick(said, "content")),
        with_unique_ids(
            [(text_at(call, "id"), *_function(call)) for call in calls], taken, finish_reason
        ),
        reasoning=_reasoning(said) or None,
        usage=usage,
        refusal=_text(pick(said, "refusal")) or None,
        finish_reason=finish_reason,
    )
    return checked(message, who)


class ReplyInPieces:
    """Assembles the chunks of a streamed completion."""

    def __init__(self, taken: Iterable[str], who: object) -> None:
        self._who = who
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls = ToolCallMerger(taken)
        self._usage: Usage | None = None
        self._first: int | None = None  # the index of the choice that is read
        self._finish_reason: str | None = None
        self._named: tuple[object, object] = (None, None)
        self.is_done = False
        """Whether the provider has marked the end of the stream."""

    def add(self, chunk: object) -> MessageDelta | None:
        """Add a chunk, and return the delta to show, if any."""
        text = _only_text(chunk) if not self._first else None
        if text:
            self._first = 0
            self._content.append(text)
            return MessageDelta(text)
        try:
            return self._add(chunk)
        except WRONG_SHAPE as problem:
            raise unreadable(problem, self._who) from problem

    def _add(self, chunk: object) -> MessageDelta | None:
        self._usage = _usage(pick(chunk, "usage"), self._usage)
        self._named = (pick(chunk, "id"), pick(chunk, "model"))
        choices = _choices(chunk)
        if not choices:
            return None
        # If several choices were requested, such as `n=2`, the chunks of the others are ignored.
        first = self._first = _index(choices[0]) if self._first is None else self._first
        choice = next((one for one in choices if _index(one) == first), None)
        if choice is None:
            return None
        self._finish_reason = text_at(choice, "finish_reason") or self._finish_reason
        delta = pick(choice, "delta")
        content, reasoning = _text(pick(delta, "content")), _reasoning(delta)
        self._content.append(content)
        self._reasoning.append(reasoning)
        self._refusal.append(_text(pick(delta, "refusal")))
        pieces = tuple(self._piece(call) for call in pick(delta, "tool_calls") or ())
        return MessageDelta(content, reasoning, pieces) if content or reasoning or pieces else None

    def message(self) -> Message:
        """Return the whole message, when the stream has ended."""
        if self._finish_reason is None and not self.is_done:
            msg = (
                f"{self._who}: the provider's stream ended before the reply was complete. Try "
                "again."
            )
            raise ModelError(msg, kind="connection", retryable=True)
        describe_reply(*self._named)
        message = Message(
            "assistant",
            "".join(self._content),
            self._calls.calls(self._finish_reason),
            reasoning="".join(self._reasoning) or None,
            usage=self._usage or Usage(requests=1),
            refusal="".join(self._refusal) or None,
            finish_reason=self._finish_reason,
        )
        return checked(message, self._who)

    def _piece(self, call: object) -> ToolCallDelta:
        name, arguments = _function(call)
        index = pick(call, "index")
        return self._calls.add(
            index if isinstance(index, int) else None, text_at(call, "id"), name, arguments
        )


def _only_text(chunk: object) -> str | None:
    """Return the text of a chunk that contains nothing else, as most do; None for any other."""
    if type(chunk) is not dict or chunk.get("usage") is not None:
        return None
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
        return None
    if choices[0].get("finish_reason") is not None or choices[0].get("index"):
        return None
    delta = choices[0].get("delta")
    if type(delta) is not dict:
        return None
    text = delta.get("content")
    # `role` comes with the first chunk, with some providers in each.
    return text if type(text) is str and len(delta) == 1 + ("role" in delta) else None


def checked(message: Message, who: object) -> Message:
    """Return the message, or raise ModelError if it is empty."""
    if message.content or message.tool_calls or message.refusal:
        return message
    if message.finish_reason == "length":
        msg = (
            f"{who}: the reply is empty, because the tokens were used up before it started. "
            "Raise max_tokens."
        )
        raise ModelError(msg, kind="length", message=message)
    if message.finish_reason == "content_filter":
        msg = f"{who}: the content filter of the provider blocked the reply. Change the messages."
        raise ModelError(msg, kind="content_filter", message=message)
    msg = (
        f"{who}: the reply is empty: it has no text, tool call or refusal "
        f"(finish_reason={message.finish_reason!r}). Try again, or use another model."
    )
    raise ModelError(msg, kind="empty", retryable=True, message=message)


def _choices(thing: object) -> Sequence[object]:
    choices = pick(thing, "choices")
    if not choices:
        return []
    if not isinstance(choices, list | tuple):
        msg = f"the choices must be a list, got {choices!r:.80}"
        raise TypeError(msg)
    return choices


def _index(choice: object) -> int:
    index = pick(choice, "index")
    return index if isinstance(index, int) else 0


def _function(call: object) -> tuple[str, str]:
    function = pick(call, "function")
    return text_at(function, "name"), arguments_text(pick(function, "arguments"))


def _text(content: str | Iterable[object] | None) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        msg = f"the content must be a string, got {content!r:.80}"
        raise TypeError(msg)
    return "".join(text_at(part, "text") for part in content or ())


def _reasoning(said: object) -> str:
    for name in ("reasoning_content", "reasoning"):
        text = pick(said, name)
        if isinstance(text, str) and text:
            return text
    return ""


def _usage(counted: object, otherwise: Usage | None = None) -> Usage | None:
    if counted is None:
        return otherwise
    cached = tokens_at(pick(counted, "prompt_tokens_details"), "cached_tokens") or tokens_at(
        counted, "prompt_cache_hit_tokens"
    )
    return Usage(
        tokens_at(counted, "prompt_tokens"), tokens_at(counted, "completion_tokens"), cached, 1
    )
