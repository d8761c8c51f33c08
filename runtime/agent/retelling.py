"""What has been said in a lane, as one agent is told it: made once for each message, and not again for each turn of the agent.

Owns: the messages that were made so far, and whether every tool call in them has its result. It must never show anything that `history.retold` would not.
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
"""For how many agents a lane keeps what they are told: those that were told something last."""


class Retelling:
    """The beginning of one lane, for one agent."""

    __slots__ = ("count", "expected", "is_complete", "is_own", "messages")

    def __init__(self) -> None:
        self.count = 0  # how many entries of the lane are in it
        self.messages: list[Message] = []
        self.is_own = False  # whether something of it is the agent's own
        self.is_complete = True  # whether all calls have their results, but for those that are expected
        self.expected: list[str] = []  # the calls whose results have to come next, the first one last

    def go_on(self, lane: Lane, until: int, agent_name: str, *, skip_transfers: bool) -> None:
        """Put what was said since behind it."""
        start = len(self.messages)
        self.is_own |= tell(lane.entries, self.count, until, agent_name, self.messages, skip_transfers=skip_transfers)
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


def told(lane: Lane, until: int, agent_name: str, *, skip_transfers: bool) -> Sequence[Message] | None:
    """The first `until` entries of a lane that has no parent, for that agent. None if more was told before: that has to be made anew."""
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
