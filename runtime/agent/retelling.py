"""A cache of a lane as one agent sees it, so that each message is converted only once.

Its result is the same as that of `history.retold`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..data.chat import Message
from .history import complete_calls, tell

if TYPE_CHECKING:
    from .history import Lane

__all__ = ["told"]

_MOST_AGENTS: Final = 8
"""The number of agents whose view a lane caches; the least recently used is dropped."""


class Retelling:
    """The start of one lane, as one agent sees it."""

    __slots__ = ("count", "expected", "is_complete", "is_own", "messages")

    def __init__(self) -> None:
        self.count = 0  # number of the lane's entries included
        self.messages: list[Message] = []
        self.is_own = False  # True if a message is the agent's own
        self.is_complete = True  # True if all calls have results, except the expected ones
        self.expected: list[str] = []  # the calls whose results must come next, the first one last

    def go_on(self, lane: Lane, until: int, agent_name: str, *, skip_transfers: bool) -> None:
        """Append the entries added since."""
        start = len(self.messages)
        self.is_own |= tell(
            lane.entries,
            self.count,
            until,
            agent_name,
            self.messages,
            skip_transfers=skip_transfers,
        )
        self.count = until
        for index in range(start, len(self.messages)):
            self._check(self.messages[index])

    def _check(self, message: Message) -> None:
        if message.role == "tool":
            if not self.expected or message.tool_call_id != self.expected.pop():
                self.is_complete = False
        elif self.expected:
            self.is_complete = False
            self.expected = []
        elif message.tool_calls:
            self.expected = [call.id for call in reversed(message.tool_calls)]


def told(
    lane: Lane, until: int, agent_name: str, *, skip_transfers: bool
) -> Sequence[Message] | None:
    """Return the first `until` entries of a lane without a parent, as that agent sees them.

    None if the cache already includes later entries: then the view must be rebuilt.
    """
    known = lane.retellings
    if known is None:
        known = lane.retellings = {}
    key = (agent_name, skip_transfers)
    retelling = known.pop(key, None) or Retelling()
    if retelling.count > until:
        known[key] = retelling
        return None
    if len(known) >= _MOST_AGENTS:
        del known[next(iter(known))]
    known[key] = retelling
    retelling.go_on(lane, until, agent_name, skip_transfers=skip_transfers)
    if retelling.is_own and not (retelling.is_complete and not retelling.expected):
        return complete_calls(retelling.messages.copy())
    return retelling.messages
