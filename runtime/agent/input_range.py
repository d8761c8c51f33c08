"""The part of the conversation that an invocation receives as its input.

`InputRange` is a frozen value that describes this part. The module reads the messages from the
lanes, and never changes what was recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final

from ..data.agent_input import AgentInput
from ..data.chat import Message
from ..data.value import Value
from ..errors import UsageError
from ..maybe_await import maybe_await
from .history import HistoryEntry, Lane, complete_calls, retold, select, without_transfers
from .retelling import told

if TYPE_CHECKING:
    from .history import HistoryRewriter
    from .invocation import Invocation
    from .run_context import RunContext
    from .tree import Definition

__all__ = ["InputRange", "open_range", "read_input"]


class InputRange(Value, frozen=True, gc=False):
    """The part of the conversation that an invocation receives."""

    since: int = 0
    """The length of its lane at the start: its input is built from the earlier entries."""
    input: AgentInput | None = None
    """An explicit input; None if the input is built from the conversation."""
    verbatim_from: int | None = None
    """The first entry of its lane that follows `input` verbatim; None if there is none."""
    retold_from: int | None = None
    """The first retold entry, for an agent that took over from one that received a handoff."""
    verbatim_cache: tuple[tuple[Message, ...], int] | None = None
    """The messages of `input` and of the entries up to that index, as built before.

    A cache, which need not be stored.
    """

    asked: int | None = None
    """The number of messages in `input` that are the run's input, after a handoff's filter.

    None if no filter built `input`.
    """

    @property
    def verbatim_until(self) -> int:
        """The index where the verbatim entries end."""
        return self.since if self.retold_from is None else self.retold_from


_FIRST: Final = InputRange()


def open_range(
    lane: Lane,
    input: AgentInput | None = None,  # noqa: A002 -- the contract's word
    verbatim_from: int | None = None,
    retold_from: int | None = None,
    verbatim_cache: tuple[tuple[Message, ...], int] | None = None,
    asked: int | None = None,
) -> InputRange:
    """Return the input range of an invocation that starts now in `lane`."""
    since = len(lane.entries)
    if input is None and not since:
        return _FIRST
    return InputRange(since, input, verbatim_from, retold_from, verbatim_cache, asked)


def read_input(
    invocation: Invocation,
    agent: Definition,
    run: RunContext,
    streaming: bool,  # noqa: FBT001
) -> AgentInput | Awaitable[AgentInput]:
    """Return an agent's input, according to its history policy."""
    input_range, lane = invocation.input_range, invocation.lane
    if (
        input_range is _FIRST
        and invocation.agent_call.parent is None
        and lane.parent is None
        and agent.history is None
        and run.history is None
    ):
        # the case of nearly all agents that start a run
        return invocation.agent_call.conversation.input
    if input_range.input is not None and input_range.retold_from is None:
        return _verbatim(invocation, streaming=streaming)
    opening, skipped = _opening_of(invocation, streaming=streaming)
    policy = agent.history or run.history or "lane"
    skips = run.skip_transfers or agent.skips_transfers
    if callable(policy):
        return _rewritten(
            policy, opening.messages, skipped, invocation, agent.name, skips, streaming=streaming
        )
    if not input_range.since and lane.parent is None:
        return opening  # nothing has been said yet
    if policy == "lane" and lane.parent is None and not skipped:
        messages = told(lane, input_range.since, invocation.node.name, skip_transfers=skips)
        if messages is not None:
            return AgentInput((*opening.messages, *messages), streaming)
    entries = select(
        lane, input_range.since, policy, invocation.node.name, invocation.run_path, skipped
    )
    return AgentInput(
        (*opening.messages, *retold(entries, invocation.node.name, skip_transfers=skips)), streaming
    )


def _opening_of(invocation: Invocation, *, streaming: bool) -> tuple[AgentInput, int]:
    """Return the conversation's opening messages, and the number of earlier entries to skip.

    The opening is the input of the conversation. If this agent, or one around it, took over from an
    agent that received a handoff, it is that agent's input.
    """
    at: Invocation | None = invocation
    while at is not None:
        if at.input_range.input is not None and len(at.names) > 1:
            return _verbatim(at, streaming=streaming), len(at.lane.visible()) - len(
                at.lane.entries
            ) + at.input_range.verbatim_until
        above = at.agent_call.parent
        at = (
            above
            if above is not None and above.agent_call.conversation is at.agent_call.conversation
            else None
        )
    return invocation.agent_call.conversation.input, 0


def _verbatim(invocation: Invocation, *, streaming: bool) -> AgentInput:
    """Return the explicit input and everything said after it, verbatim."""
    input_range = invocation.input_range
    assert input_range.input is not None
    if input_range.verbatim_from is None:
        return input_range.input
    before, start = input_range.verbatim_cache or (
        input_range.input.messages,
        input_range.verbatim_from,
    )
    if input_range.verbatim_cache is not None:
        invocation.input_range = input_range.replace(verbatim_cache=None)  # needed only once
    said = [entry.message for entry in invocation.lane.entries[start : input_range.verbatim_until]]
    return AgentInput((*before, *complete_calls(said)), streaming)


async def _rewritten(
    rewriter: HistoryRewriter,
    opening: Sequence[Message],
    skipped: int,
    invocation: Invocation,
    agent_name: str,
    skips: bool,  # noqa: FBT001 -- passed by position, like the others
    *,
    streaming: bool,
) -> AgentInput:
    entries = [
        HistoryEntry(is_user_input=True, agent_name=None, message=message) for message in opening
    ]
    for entry in select(
        invocation.lane,
        invocation.input_range.since,
        "lane",
        invocation.node.name,
        invocation.run_path,
        skipped,
    ):
        message = without_transfers(entry.message) if skips else entry.message
        if message is not None:
            entries.append(
                HistoryEntry(
                    is_user_input=not entry.agent_name,
                    agent_name=entry.agent_name or None,
                    message=message,
                )
            )
    messages = tuple(await maybe_await(rewriter(entries)))
    for message in messages:
        if not hasattr(message, "role"):
            msg = (
                f"the history rewriter of {agent_name!r} must return a sequence of Message, got "
                f"{message!r} in it."
            )
            raise UsageError(msg, agent=agent_name)
    return AgentInput(messages, streaming)
