"""What one invocation of an agent is given of the conversation.

Owns: `InputWindow`, a frozen value that says which part of the conversation that is, and how the messages are read out of the lanes by it. It must never
change what was recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..data.agent_input import AgentInput
from ..data.chat import Message
from ..errors import UsageError
from ..maybe_await import maybe_await
from ..quick_init import quick
from .history import HistoryEntry, Lane, complete_calls, retold, select, without_transfers
from .retelling import told

if TYPE_CHECKING:
    from .history import HistoryRewriter
    from .invocation import Invocation
    from .run_context import RunContext
    from .tree import Definition

__all__ = ["InputWindow", "open_window", "read_window"]


@quick
@dataclass(frozen=True, slots=True)
class InputWindow:
    """Which part of the conversation an invocation is given."""

    since: int = 0
    """How many entries its lane held when it began: its input is made of those before."""
    input: AgentInput | None = None
    """What it was given outright; None if its input is made of the conversation."""
    verbatim_from: int | None = None
    """The first entry of its lane that it is given as it was said, behind `input`; None if there is none."""
    retold_from: int | None = None
    """The first entry that it is given retold, behind all that: it took over from an agent that a handoff had reached."""
    verbatim_cache: tuple[tuple[Message, ...], int] | None = None
    """The messages of `input` and of the entries up to that one, if the agent that handed over has put them together. It need not be stored."""

    asked: int | None = None
    """How many messages of `input` are what the run was asked, as the filter of a handoff has left it; None if no filter has made it."""

    @property
    def verbatim_until(self) -> int:
        """The entry before which what is given as it was said ends."""
        return self.since if self.retold_from is None else self.retold_from


_FIRST: Final = InputWindow()


def open_window(
    lane: Lane,
    input: AgentInput | None = None,  # noqa: A002 -- the contract's word
    verbatim_from: int | None = None,
    retold_from: int | None = None,
    verbatim_cache: tuple[tuple[Message, ...], int] | None = None,
    asked: int | None = None,
) -> InputWindow:
    """The window of an invocation that begins now in that lane."""
    since = len(lane.entries)
    if input is None and not since:
        return _FIRST
    return InputWindow(since, input, verbatim_from, retold_from, verbatim_cache, asked)


def read_window(invocation: Invocation, agent: Definition, run: RunContext, streaming: bool) -> AgentInput | Awaitable[AgentInput]:  # noqa: FBT001
    """What an agent is given, by its history policy."""
    window, lane = invocation.window, invocation.lane
    if window is _FIRST and invocation.assignment.parent is None and lane.parent is None and agent.history is None and run.history is None:
        return invocation.assignment.dialogue.input  # of nearly all agents that begin a run
    if window.input is not None and window.retold_from is None:
        return _verbatim(invocation, streaming=streaming)
    opening, skipped = _opening_of(invocation, streaming=streaming)
    policy = agent.history or run.history or "lane"
    if callable(policy):
        return _rewritten(policy, opening.messages, skipped, invocation, agent.name, run, streaming=streaming)
    if not window.since and lane.parent is None:
        return opening  # nothing has been said yet
    if policy == "lane" and lane.parent is None and not skipped:
        messages = told(lane, window.since, invocation.node.name, skip_transfers=run.skip_transfers)
        if messages is not None:
            return AgentInput((*opening.messages, *messages), streaming)
    entries = select(lane, window.since, policy, invocation.node.name, invocation.run_path, skipped)
    return AgentInput((*opening.messages, *retold(entries, invocation.node.name, skip_transfers=run.skip_transfers)), streaming)


def _opening_of(invocation: Invocation, *, streaming: bool) -> tuple[AgentInput, int]:
    """The conversation's opening messages, and how many earlier entries to skip.

    It is the input of the dialogue; or, if this agent or one around it took over from an agent that a handoff had reached, what that one was given.
    """
    at: Invocation | None = invocation
    while at is not None:
        if at.window.input is not None and len(at.names) > 1:
            return _verbatim(at, streaming=streaming), len(at.lane.visible()) - len(at.lane.entries) + at.window.verbatim_until
        above = at.assignment.parent
        at = above if above is not None and above.assignment.dialogue is at.assignment.dialogue else None
    return invocation.assignment.dialogue.input, 0


def _verbatim(invocation: Invocation, *, streaming: bool) -> AgentInput:
    """What it was given outright, and what was said after that, as it was said."""
    window = invocation.window
    assert window.input is not None
    if window.verbatim_from is None:
        return window.input
    before, start = window.verbatim_cache or (window.input.messages, window.verbatim_from)
    if window.verbatim_cache is not None:
        invocation.window = replace(window, verbatim_cache=None)  # it was needed once
    said = [entry.message for entry in invocation.lane.entries[start : window.verbatim_until]]
    return AgentInput((*before, *complete_calls(said)), streaming)


async def _rewritten(
    rewriter: HistoryRewriter, opening: Sequence[Message], skipped: int, invocation: Invocation, agent_name: str, run: RunContext, *, streaming: bool
) -> AgentInput:
    entries = [HistoryEntry(is_user_input=True, agent_name=None, message=message) for message in opening]
    for entry in select(invocation.lane, invocation.window.since, "lane", invocation.node.name, invocation.run_path, skipped):
        message = without_transfers(entry.message) if run.skip_transfers else entry.message
        if message is not None:
            entries.append(HistoryEntry(is_user_input=False, agent_name=entry.agent_name, message=message))
    messages = tuple(await maybe_await(rewriter(entries)))
    for message in messages:
        if not hasattr(message, "role"):
            msg = f"the history rewriter of {agent_name!r} returned {message!r} among the messages: return a sequence of Message."
            raise UsageError(msg, agent=agent_name)
    return AgentInput(messages, streaming)
