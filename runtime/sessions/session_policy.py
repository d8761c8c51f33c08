"""Policies that limit the part of a long session that a model sees.

`keep_last` and `summarize` also limit the conversation that a handoff passes on. No policy, not
even a custom one, separates a tool call from its result. A policy changes what models see, never
what the session or the run stores.
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

__all__ = [
    "Bounded",
    "KeepAll",
    "KeepLast",
    "SessionPolicy",
    "SessionPolicyLike",
    "Summarize",
    "as_policy",
    "keep_last",
    "summarize",
]

_KEEP: Final = 20
_AFTER: Final = 40
_HANDOFF_PROMPT: Final = (
    "Summarize the conversation so far for the agent that takes over. Leave out nothing that it "
    "may need."
)
_PROMPT: Final = (
    "Summarize the conversation so far for whoever continues it: facts, decisions, open "
    "questions, names, numbers, and what the user wants. "
    "Be brief, leave out nothing that may be needed, and write nothing but the summary."
)


class Bounded(NamedTuple):
    """The part of a session that a model sees."""

    messages: Sequence[Message]
    note: Mapping[str, Any] | None = None  # note for the next turn
    usage: Usage | None = None  # cost of computing it


class SessionPolicy(Protocol):
    """A policy for the visible part of a session."""

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        """Return the visible part of all these messages.

        `note` is the policy's latest note.
        """
        ...


class HandedOver(Protocol):
    """The argument of a handoff's input filter: `offbook.actors.HandoffInputData`."""

    @property
    def input_history(self) -> str | tuple[Any, ...]: ...
    @property
    def pre_handoff_items(self) -> tuple[Any, ...]: ...
    @property
    def run_context(self) -> RunContext | None: ...
    def clone(
        self,
        *,
        input_history: str | tuple[Any, ...] = ...,
        pre_handoff_items: tuple[Any, ...] = ...,
        new_items: tuple[Any, ...] = ...,
    ) -> Self: ...
    def messages(self) -> tuple[Message, ...]: ...


H = TypeVar("H", bound=HandedOver)

SessionPolicyLike: TypeAlias = (
    "SessionPolicy | Callable[[Sequence[Message]], Sequence[Message] | "
    "Awaitable[Sequence[Message]]] | None"
)


def as_policy(given: SessionPolicyLike) -> SessionPolicy:
    """Return the value of `policy=` as a policy."""
    if given is None:
        return _KEEP_ALL
    if hasattr(given, "bound"):
        return cast("SessionPolicy", given)
    if callable(given):
        return _Own(given)
    msg = (
        f"session(): policy must be keep_last(n), summarize(model) or a function, got {given!r}. A "
        "function takes the messages and returns those that the model sees."
    )
    raise UsageError(msg)


def keep_last(count: int) -> KeepLast:
    """Keep the last `count` messages, or fewer, so that no tool call is separated from its result.

    Use it as a session's `policy=`, or as a handoff's `input_filter=`. For a handoff, it keeps the
    last `count` items before the handoff, and the handoff's own items.
    """
    if not isinstance(count, int) or count < 0:
        msg = f"keep_last(): count must be a number of messages, 0 or more, got {count!r}."
        raise UsageError(msg)
    return KeepLast(count)


def summarize(
    model: ChatModel,
    prompt: str | None = None,
    *,
    keep: int | None = None,
    after: int | None = None,
) -> Summarize:
    """Replace all but the last `keep` messages with a summary once there are more than `after`.

    The model writes the summary as one message. As a session's `policy=`, `after` counts from the
    last summary, which is stored; the defaults are 40 for `after` and 20 for `keep`. As a handoff's
    `input_filter=`, both default to 0: everything before the handoff is summarized.
    """
    if not hasattr(model, "generate"):
        msg = f"summarize(): model must be a chat model, got {model!r}."
        raise UsageError(msg)
    policy = Summarize(model, prompt, keep, after)
    if not 0 <= policy.keep <= policy.after:
        msg = (
            "summarize(): keep must be a number of messages from 0 to after, "
            f"got keep={policy.keep} and after={policy.after}."
        )
        raise UsageError(msg)
    return policy


def first_kept(messages: Sequence[Message], count: int) -> int:
    """Return the index of the last `count` messages, moved forward past results without a call."""
    start = max(0, len(messages) - count)
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return start


class KeepAll:
    """The policy that keeps everything."""

    __slots__ = ()

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        return Bounded(messages)


_KEEP_ALL: Final = KeepAll()


class KeepLast:
    """The policy of `keep_last`."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __repr__(self) -> str:
        return f"keep_last({self.count})"

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        return Bounded(messages[first_kept(messages, self.count) :])

    def __call__(self, data: H) -> H:
        """Apply the policy as an input filter, or as an agent's `history=`."""
        if isinstance(data, Sequence):
            messages = [entry if isinstance(entry, Message) else entry.message for entry in data]
            return messages[first_kept(messages, self.count) :]
        if not hasattr(data, "input_history") or not hasattr(data, "clone"):
            msg = (
                f"{self!r} must be called with HandoffInputData or a sequence of messages, got "
                f"{type(data).__qualname__}. Pass it as a session's policy=, a handoff's "
                "input_filter= or an agent's history=."
            )
            raise UsageError(msg)
        history = data.input_history
        before = (*((history,) if isinstance(history, str) else history), *data.pre_handoff_items)
        kept = before[max(0, len(before) - self.count) :]
        if kept and isinstance(kept[0], str):
            return data.clone(pre_handoff_items=kept[1:])
        return data.clone(input_history=(), pre_handoff_items=kept)


class Summarize:
    """The policy of `summarize`."""

    def __init__(
        self, model: ChatModel, prompt: str | None, keep: int | None, after: int | None
    ) -> None:
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
        if (
            note is not None
            and isinstance(note.get("summary"), str)
            and type(note.get("covered")) is int
            and note["covered"] <= len(messages)
        ):
            covered, summary = note["covered"], note["summary"]
        rest = messages[covered:]
        if len(rest) <= self.after:
            return Bounded(rest if summary is None else (_told(summary), *rest))
        cut = first_kept(rest, self.keep)
        reply = await self._asked(
            (*(() if summary is None else (_told(summary),)), *complete_calls(list(rest[:cut]))),
            _PROMPT,
            "a session",
        )
        return Bounded(
            (_told(reply.text), *rest[cut:]),
            {"summary": reply.text, "covered": covered + cut},
            reply.usage,
        )

    async def __call__(self, data: H) -> H:
        """Apply the policy as an input filter."""
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
        reply = await answer_of(
            self._model, ModelRequest((*messages, Message.user(self._prompt or prompt)))
        )
        if not isinstance(reply, Message) or not reply.text:
            msg = (
                f"the model {self._model!r} must summarize {what} as an assistant message with "
                f"text, got {reply!r}."
            )
            raise ModelBehaviorError(msg)
        return reply


def _told(summary: str) -> Message:
    return Message.user(f"Summary of the conversation so far:\n{summary}")


class _Own:
    """A policy that is a user's function."""

    def __init__(self, function: Callable[[Sequence[Message]], Any]) -> None:
        self._function = function

    async def bound(self, messages: Sequence[Message], note: Mapping[str, Any] | None) -> Bounded:
        del note
        chosen = tuple(await maybe_await(self._function(tuple(messages))))
        for message in chosen:
            if not isinstance(message, Message):
                msg = (
                    f"the policy {self._function!r} of the session must return a sequence of "
                    f"Message, got {message!r} in it."
                )
                raise UsageError(msg)
        return Bounded(_unparted(chosen, messages))


def _unparted(chosen: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Return the chosen messages, with the results of all their calls, and no other results."""
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
    """Return the results that follow a message, by call id."""
    position = next((index for index, one in enumerate(messages) if one.id == message.id), None)
    return {} if position is None else _results_in(messages[position + 1 :])


def _results_in(messages: Sequence[Message]) -> dict[str | None, Message]:
    """Return the results at the start of these messages."""
    return {one.tool_call_id: one for one in takewhile(lambda one: one.role == "tool", messages)}
