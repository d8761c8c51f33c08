"""How much of a long session a model is given; and, by the same two functions, how much of a conversation an agent that takes over by a handoff.

Owns: the ready-made policies, and that none, nor one of the user's own, ever parts a tool call from its result. A policy changes what is given to the models,
and never what the session or the run holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast

from ..agent.history import complete_calls
from ..agent.run_context import RunContext
from ..data.chat import Message, Usage
from ..errors import ModelBehaviorError, UsageError
from ..maybe_await import maybe_await
from ..models import ChatModel, ModelRequest, answer_of

__all__ = ["Bounded", "KeepAll", "KeepLast", "SessionPolicy", "SessionPolicyLike", "Summarize", "as_policy", "keep_last", "summarize"]

_KEEP: Final = 20
_AFTER: Final = 40
_HANDOFF_PROMPT: Final = "Summarize the conversation so far for the agent that takes over. Leave out nothing that it may need."
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


class HandedOver(Protocol):
    """What an input filter of a handoff is given: `understudy.actors.HandoffInputData`."""

    @property
    def input_history(self) -> str | tuple[Any, ...]: ...
    @property
    def pre_handoff_items(self) -> tuple[Any, ...]: ...
    @property
    def run_context(self) -> RunContext | None: ...
    def clone(self, *, input_history: str | tuple[Any, ...] = ..., pre_handoff_items: tuple[Any, ...] = ..., new_items: tuple[Any, ...] = ...) -> Self: ...
    def messages(self) -> tuple[Message, ...]: ...


H = TypeVar("H", bound=HandedOver)

SessionPolicyLike: TypeAlias = "SessionPolicy | Callable[[Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message]]] | None"


def as_policy(given: SessionPolicyLike) -> SessionPolicy:
    """What was given as `policy=`, as a policy."""
    if given is None:
        return KeepAll()
    if hasattr(given, "bound"):
        return cast("SessionPolicy", given)
    if callable(given):
        return _Own(given)
    msg = f"session(policy={given!r}): give keep_last(n), summarize(model), or a function of the messages that returns those that are to be given."
    raise UsageError(msg)


def keep_last(count: int) -> KeepLast:
    """The last so many messages; fewer, where the cut would part a tool call from its result. A session's `policy=`, or a handoff's `input_filter=`.

    For a handoff, it is the last so many items before it, and what belongs to it.
    """
    if not isinstance(count, int) or count < 0:
        msg = f"keep_last({count!r}): give a number of messages, 0 or more."
        raise UsageError(msg)
    return KeepLast(count)


def summarize(model: ChatModel, prompt: str | None = None, *, keep: int | None = None, after: int | None = None) -> Summarize:
    """When there are more than `after` messages, all but the last `keep` of them are put into one message, which the model writes.

    As a session's `policy=`, `after` counts from the last summary, which is found again in the store; it is 40, and `keep` 20, if they are not given. As a
    handoff's `input_filter=`, both are 0: all that was said before the handoff is summarized.
    """
    if not hasattr(model, "generate"):
        msg = f"summarize({model!r}): give a chat model."
        raise UsageError(msg)
    policy = Summarize(model, prompt, keep, after)
    if not 0 <= policy.keep <= policy.after:
        msg = f"summarize(keep={policy.keep}, after={policy.after}): keep 0 messages or more, and not more than those after which a summary is made."
        raise UsageError(msg)
    return policy


def first_kept(messages: Sequence[Message], count: int) -> int:
    """Where the last `count` messages begin, and no tool call is parted from its result: further on, where it would be."""
    start = max(0, len(messages) - count)
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return start


class KeepAll:
    """All of it."""

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        return Bounded(messages)


class KeepLast:
    """What `keep_last` makes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __repr__(self) -> str:
        return f"keep_last({self.count})"

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        return Bounded(messages[first_kept(messages, self.count) :])

    def __call__(self, data: H) -> H:
        """As an input filter."""
        history = data.input_history
        before = (*((history,) if isinstance(history, str) else history), *data.pre_handoff_items)
        kept = before[max(0, len(before) - self.count) :]
        if kept and isinstance(kept[0], str):
            return data.clone(pre_handoff_items=kept[1:])
        return data.clone(input_history=(), pre_handoff_items=kept)


class Summarize:
    """What `summarize` makes."""

    def __init__(self, model: ChatModel, prompt: str | None, keep: int | None, after: int | None) -> None:
        self._model = model
        self._prompt = prompt
        self.keep = (_KEEP if after is None else min(_KEEP, after)) if keep is None else keep
        self.after = max(_AFTER, self.keep) if after is None else after
        self._kept_by_handoffs = keep or 0
        self._after_in_handoffs = self._kept_by_handoffs if after is None else after

    def __repr__(self) -> str:
        return f"summarize({self._model!r})"

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        covered, summary = 0, None
        if note is not None and isinstance(note.get("summary"), str) and type(note.get("covered")) is int and note["covered"] <= len(messages):
            covered, summary = note["covered"], note["summary"]
        rest = messages[covered:]
        if len(rest) <= self.after:
            return Bounded(rest if summary is None else (_told(summary), *rest))
        cut = first_kept(rest, self.keep)
        reply = await self._asked((*(() if summary is None else (_told(summary),)), *complete_calls(list(rest[:cut]))), _PROMPT, "a session")
        return Bounded((_told(reply.text), *rest[cut:]), {"summary": reply.text, "covered": covered + cut}, reply.usage)

    async def __call__(self, data: H) -> H:
        """As an input filter."""
        said = data.clone(new_items=()).messages()
        if len(said) <= self._after_in_handoffs:
            return data
        cut = first_kept(said, self._kept_by_handoffs)
        reply = await self._asked(said[:cut], _HANDOFF_PROMPT, "a conversation for a handoff")
        if reply.usage is not None and data.run_context is not None:
            data.run_context.usage += reply.usage
        summary = {"type": "message", "role": "user", "content": _told(reply.text).text}
        return data.clone(input_history=(summary, *said[cut:]), pre_handoff_items=())

    async def _asked(self, messages: Sequence[Message], prompt: str, what: str) -> Message:
        reply = await answer_of(self._model, ModelRequest((*messages, Message.user(self._prompt or prompt))))
        if not isinstance(reply, Message) or not reply.text:
            msg = f"the model {self._model!r}, which was to summarize {what}, returned {reply!r}: it has to return an assistant message with a text."
            raise ModelBehaviorError(msg)
        return reply


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
