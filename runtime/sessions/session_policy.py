"""How much of a long session a model is given.

Owns: the ready-made policies, and that none, nor one of the user's own, ever parts a tool call from its result. A policy changes what is given to the models,
and never what the session holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

from ..agent.history import complete_calls
from ..data.chat import Message, Usage
from ..errors import ModelBehaviorError, UsageError
from ..maybe_await import maybe_await
from ..models import ChatModel, ModelRequest, answer_of

__all__ = ["Bounded", "SessionPolicy", "SessionPolicyLike", "as_policy", "keep_last", "summarize"]

_PROMPT: Final = (
    "Summarize the conversation so far for whoever continues it: facts, decisions, open questions, names, numbers, and what the user wants. "
    "Be brief, leave out nothing that may be needed, and write nothing but the summary."
)


class Bounded(NamedTuple):
    """What a model is to be given of a session."""

    messages: Sequence[Message]
    note: Mapping[str, Any] | None = None  # what is to be found again the next time
    usage: Usage | None = None  # what it has cost to find out


class SessionPolicy(Protocol):
    """How much is given."""

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        """What is to be given of all these messages. `note` is what the policy has returned as such before."""
        ...


SessionPolicyLike: TypeAlias = "SessionPolicy | Callable[[Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message]]] | None"


def as_policy(given: SessionPolicyLike) -> SessionPolicy:
    """What was given as `policy=`, as a policy."""
    if given is None:
        return _All()
    if hasattr(given, "bound"):
        return cast("SessionPolicy", given)
    if callable(given):
        return _Own(given)
    msg = f"session(policy={given!r}): give keep_last(n), summarize(model), or a function of the messages that returns those that are to be given."
    raise UsageError(msg)


def keep_last(count: int) -> SessionPolicy:
    """The last so many messages; fewer, where the cut would part a tool call from its result."""
    if count < 0:
        msg = f"keep_last({count}): give a number of messages, 0 or more."
        raise UsageError(msg)
    return _Last(count)


def summarize(model: ChatModel, *, keep: int = 20, after: int = 40, prompt: str = _PROMPT) -> SessionPolicy:
    """When more than `after` messages stand since the last summary, all but the last `keep` of them are put into one message, which the model writes.

    It is written once, and found again in the store.
    """
    if not hasattr(model, "generate"):
        msg = f"summarize({model!r}): give a chat model."
        raise UsageError(msg)
    if not 0 <= keep <= after:
        msg = f"summarize(keep={keep}, after={after}): keep 0 messages or more, and not more than those after which a summary is made."
        raise UsageError(msg)
    return _Summary(model, keep, after, prompt)


def first_kept(messages: Sequence[Message], count: int) -> int:
    """Where the last `count` messages begin, and no tool call is parted from its result: further on, where it would be."""
    start = max(0, len(messages) - count)
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return start


class _All:
    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        return Bounded(messages)


class _Last:
    def __init__(self, count: int) -> None:
        self._count = count

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        return Bounded(messages[first_kept(messages, self._count) :])


class _Summary:
    def __init__(self, model: ChatModel, keep: int, after: int, prompt: str) -> None:
        self._model = model
        self._keep = keep
        self._after = after
        self._prompt = prompt

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        covered, summary = 0, None
        if note is not None and isinstance(note.get("summary"), str) and type(note.get("covered")) is int and note["covered"] <= len(messages):
            covered, summary = note["covered"], note["summary"]
        rest = messages[covered:]
        if len(rest) <= self._after:
            return Bounded(rest if summary is None else (_told(summary), *rest))
        cut = first_kept(rest, self._keep)
        asked = (*(() if summary is None else (_told(summary),)), *complete_calls(list(rest[:cut])), Message.user(self._prompt))
        reply = await answer_of(self._model, ModelRequest(asked))
        if not isinstance(reply, Message) or not reply.text:
            msg = f"the model {self._model!r}, which was to summarize a session, returned {reply!r}: it has to return an assistant message with a text."
            raise ModelBehaviorError(msg)
        return Bounded((_told(reply.text), *rest[cut:]), {"summary": reply.text, "covered": covered + cut}, reply.usage)


def _told(summary: str) -> Message:
    return Message.user(f"Summary of the conversation so far:\n{summary}")


class _Own:
    """A function of the user's."""

    def __init__(self, function: Callable[[Sequence[Message]], Any]) -> None:
        self._function = function

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        chosen = tuple(await maybe_await(self._function(tuple(messages))))
        for message in chosen:
            if not isinstance(message, Message):
                msg = f"the policy {self._function!r} of the session returned {message!r} among the messages: return a sequence of Message."
                raise UsageError(msg)
        return Bounded(_unparted(chosen, messages))


def _unparted(chosen: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """The messages that were chosen; where a call is among them, so are its results, and no result without its call."""
    whole: list[Message] = []
    for position, message in enumerate(chosen):
        if message.role == "tool":
            continue
        whole.append(message)
        if message.tool_calls:
            results = {**_results_behind(message, messages), **_results_in(chosen[position + 1 :])}
            whole += [results[call.id] for call in message.tool_calls if call.id in results]
    return whole


def _results_behind(message: Message, messages: Sequence[Message]) -> dict[str | None, Message]:
    """The results that stand behind a message, by the ids of their calls."""
    position = next((index for index, one in enumerate(messages) if one.id == message.id), None)
    return {} if position is None else _results_in(messages[position + 1 :])


def _results_in(messages: Sequence[Message]) -> dict[str | None, Message]:
    """The results at the beginning of these messages."""
    return {one.tool_call_id: one for one in takewhile(lambda one: one.role == "tool", messages)}
