"""The messages of a run, in lanes, and the part of them that an agent sees.

The module contains the log of recorded messages, and the rules that turn it into an agent's input:
its own messages keep their role, and messages of other agents become a user message "For context:
...". In an agent's history every tool call has a result, and every result a call.

A lane is the history that one line of agents sees. Each child of a Parallel has its own, which
starts with the content of its parent lane. A parent lane does not change while it has children.
When all of them have ended, `join` appends their content in the order of the children.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from ..data.chat import Message, Part, TextPart, ToolCall
from ..data.run_path import Path, begins_with
from ..errors import UsageError

if TYPE_CHECKING:
    from .retelling import Retelling

__all__ = [
    "TRANSFER_TOOL",
    "Entry",
    "HistoryEntry",
    "HistoryPolicy",
    "HistoryRewriter",
    "Lane",
    "OpenCalls",
    "check_history",
    "complete_calls",
    "retold",
    "select",
    "tell",
    "without_transfers",
]

TRANSFER_TOOL: Final = "transfer_to_agent"
"""The name of the tool that transfers to another agent."""

_NOT_COMPLETED: Final = "The call was not completed."

_NO_CALLS: Final[Mapping[str, str]] = MappingProxyType({})

HistoryPolicy: TypeAlias = Literal["lane", "run_path", "isolated", "input_only"]
_POLICIES: Final = frozenset(("lane", "run_path", "isolated", "input_only"))


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message for a rewriter: an input of the run, or a message of an agent."""

    is_user_input: bool
    agent_name: str | None
    message: Message


HistoryRewriter: TypeAlias = Callable[
    [Sequence[HistoryEntry]], Sequence[Message] | Awaitable[Sequence[Message]]
]


def check_history(history: object, where: str, agent_name: str | None = None) -> None:
    """Raise unless `history` is a valid value for `history=`."""
    if history is not None and not callable(history) and history not in _POLICIES:
        msg = (
            f"{where}: history must be 'lane', 'run_path', 'isolated', 'input_only', or a "
            f"function of the entries, got {history!r}."
        )
        raise UsageError(msg, agent=agent_name)


class Entry(msgspec.Struct, gc=False, eq=False):
    """One recorded message, with its agent and its place."""

    agent_name: str
    """Empty if it is a user's post that an agent has heard."""
    run_path: Path
    invocation_id: str
    message: Message
    retold: Message | None = None
    """The message as other agents see it; built on first use."""


class Lane:
    """The messages of one line of agents, after those of its parent lane."""

    __slots__ = ("entries", "fork", "id", "parent", "retellings")

    def __init__(self, parent: Lane | None = None, lane_id: str = "") -> None:
        self.id = lane_id  # its name within the run
        self.parent = parent
        # Number of the parent's own entries that are visible here.
        self.fork = 0 if parent is None else len(parent.entries)
        self.entries: list[Entry] = []
        # The history as each agent sees it, the most recently used last.
        self.retellings: dict[tuple[str, bool], Retelling] | None = None

    def visible(self) -> list[Entry]:
        """Return all entries visible from here, oldest first."""
        if self.parent is None:
            return self.entries.copy()
        seen = self.parent.visible()
        del seen[len(seen) - len(self.parent.entries) + self.fork :]
        seen += self.entries
        return seen

    def join(self, children: Iterable[Lane]) -> None:
        """Append the entries of ended children, one child after the other."""
        for child in children:
            self.entries += child.entries


def select(
    lane: Lane, until: int, policy: HistoryPolicy, agent_name: str, run_path: Path, since: int = 0
) -> list[Entry]:
    """Return the entries visible to an agent that starts after `until` entries of its own lane.

    The first `since` of all entries are left out.
    """
    if policy == "input_only":
        return []
    entries = lane.visible()
    if until < len(lane.entries):
        del entries[len(entries) - len(lane.entries) + until :]
    if since:
        del entries[:since]
    if policy == "run_path":
        return [entry for entry in entries if begins_with(run_path, entry.run_path)]
    if policy == "isolated":
        return [entry for entry in entries if entry.agent_name in ("", agent_name)]
    return entries


def retold(entries: Iterable[Entry], agent_name: str, *, skip_transfers: bool) -> list[Message]:
    """Return the entries as messages for an agent: its own unchanged, the others retold."""
    messages: list[Message] = []
    own = tell([*entries], 0, None, agent_name, messages, skip_transfers=skip_transfers)
    return complete_calls(messages) if own else messages


def tell(
    entries: Sequence[Entry],
    start: int,
    until: int | None,
    agent_name: str,
    messages: list[Message],
    *,
    skip_transfers: bool,
) -> bool:
    """Append the entries to `messages`. Returns True if one of them is the agent's own."""
    own = False
    for entry in entries[start:until]:
        message = entry.message
        if skip_transfers and (message.tool_calls or message.role == "tool"):
            without = without_transfers(message)
            if without is None:
                continue
            if without is not message:
                own = own or entry.agent_name == agent_name
                messages.append(
                    without
                    if entry.agent_name == agent_name
                    else _retell(without, entry.agent_name)
                )
                continue
        if entry.agent_name == agent_name:
            own = True
            messages.append(message)
        elif not entry.agent_name:
            messages.append(message)
        else:
            if entry.retold is None:
                entry.retold = _retell(message, entry.agent_name)
            messages.append(entry.retold)
    return own


def without_transfers(message: Message) -> Message | None:
    """Return the message without transfer calls.

    None if nothing is left, or if the message is the result of a transfer call.
    """
    if message.role == "tool":
        return None if message.tool_name == TRANSFER_TOOL else message
    calls = tuple(call for call in message.tool_calls if call.name != TRANSFER_TOOL)
    if len(calls) == len(message.tool_calls):
        return message
    if not calls and not message.content:
        return None
    return message.replace(tool_calls=calls)


def _retell(message: Message, agent_name: str) -> Message:
    """Rewrite another agent's message as the user's, so a model does not mistake it for its own."""
    told = ["For context:"]
    text = message.text
    if message.role == "tool":
        told.append(f" [{agent_name}] `{message.tool_name}` tool returned result: {text}.")
    elif message.role == "assistant":
        if text:
            told.append(f" [{agent_name}] said: {text}.")
        told += [
            f" [{agent_name}] called tool: `{call.name}` with arguments: {call.arguments}."
            for call in message.tool_calls
        ]
    else:
        told.append(f" [{agent_name}] said: {text}.")
    content = message.content
    others: tuple[Part, ...] = (
        ()
        if isinstance(content, str)
        else tuple(part for part in content if not isinstance(part, TextPart))
    )
    told_text = "".join(told)
    return Message("user", (TextPart(told_text), *others) if others else told_text)


def complete_calls(
    messages: list[Message], waiting: Mapping[str, str] = _NO_CALLS
) -> list[Message]:
    """Return the messages with each call's result directly after it, and no result without a call.

    A call may have lost its result because a run was cancelled, crashed or failed; the model is
    then informed that the call was not completed. `waiting` has the text for calls that wait for
    something, by call id.
    """
    if _is_complete(messages):
        return messages
    complete: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.role == "tool":
            continue  # its call is not before it
        complete.append(message)
        if message.tool_calls:
            results = _results_of(message.tool_calls, messages, position)
            for call, result in zip(message.tool_calls, results, strict=True):
                complete.append(
                    result or Message.tool(waiting.get(call.id, _NOT_COMPLETED), call.id, call.name)
                )
    return complete


def _is_complete(messages: list[Message]) -> bool:
    """Return True if the messages are complete: most conversations are, and need no second pass."""
    calls = OpenCalls()
    calls.follow(messages)
    return calls.are_none


class OpenCalls:
    """Follows a conversation and checks that each call has its result directly after it.

    It also checks that each result has a call.
    """

    __slots__ = ("_expected", "_in_order")

    def __init__(self) -> None:
        self._expected: list[str] = []  # the calls whose results must come next, the first one last
        self._in_order = True

    @property
    def are_none(self) -> bool:
        """True if the conversation is in order, and no call is open."""
        return self._in_order and not self._expected

    def follow(self, messages: Iterable[Message]) -> None:
        """Check the next messages."""
        expected = self._expected
        for message in messages if self._in_order else ():
            if message.role == "tool":
                if not expected or message.tool_call_id != expected.pop():
                    self._in_order = False
                    return
            elif expected:
                self._in_order = False
                return
            elif message.tool_calls:
                expected = self._expected = [call.id for call in reversed(message.tool_calls)]


def _results_of(
    calls: tuple[ToolCall, ...], messages: list[Message], start: int
) -> list[Message | None]:
    """Return the result of each call, in the order of the calls.

    The search stops at the next message that has calls.
    """
    found: list[Message | None] = [None] * len(calls)
    for position in range(start, len(messages)):
        message = messages[position]
        if message.tool_calls:
            break
        if message.role == "tool":
            for index, call in enumerate(calls):
                if found[index] is None and call.id == message.tool_call_id:
                    found[index] = message
                    break
    return found
