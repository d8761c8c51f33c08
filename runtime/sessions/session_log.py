"""What a session holds, turn by turn: the records in its journal, and what they add up to.

A record is one part of a turn: the messages that came in it and those that were said, and the values that it has changed. A turn that was interrupted
and goes on later has several. Each says how much of its run stood before it, so that nothing is there twice, whatever was written when.

Owns: the making and the reading of these records. It must never write to a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..codec.packing import pack, unpack
from ..data.chat import Message
from ..durability.image import checked_message
from ..durability.journal import kept_value
from ..errors import CheckpointError

__all__ = ["SessionLog", "note_record", "turn_record"]

_FORMAT: Final = 1
_MISSING: Final = object()


class SessionLog:
    """A session, as the store has it."""

    __slots__ = ("_told", "last_agent", "messages", "note", "values")

    def __init__(self, session_id: str, records: Iterable[bytes]) -> None:
        self.messages: list[Message] = []  # all that was said, oldest first
        self.values: dict[str, Any] = {}
        self.note: dict[str, Any] | None = None  # what the policy has noted last
        self.last_agent: str | None = None  # with whom the last turn ended; None if no record says so
        self._told: dict[str, int] = {}  # how much of each run is in it
        for position, record in enumerate(records):
            try:
                self._add(unpack(record))
            except CheckpointError as error:
                msg = f"session {session_id!r}, record {position}: {error}"
                raise CheckpointError(msg) from error
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                msg = f"session {session_id!r} is damaged at record {position}: {type(error).__name__}: {error}"
                raise CheckpointError(msg) from error

    def _add(self, record: Any) -> None:
        if record["session"] > _FORMAT:
            msg = f"it was written by a newer version of understudy: its format is {record['session']}, and this one reads up to {_FORMAT}. Update."
            raise CheckpointError(msg)
        if "note" in record:
            self.note = dict(record["note"])
            return
        run, start, messages = record["run"], record["from"], record["messages"]
        for message in messages:
            checked_message(message)
        told = self._told.get(run, 0)
        self.messages.extend(messages[max(0, told - start) :])
        self._told[run] = max(told, start + len(messages))
        self.values.update(record["values"])
        for key in record["gone"]:
            self.values.pop(key, None)
        agent = record.get("agent")  # records that were written before there was one have none
        if not isinstance(agent, str | None):
            msg = f"an agent is no {type(agent).__name__}"
            raise TypeError(msg)
        self.last_agent = agent or self.last_agent

    def told_of(self, run_id: str) -> int:
        """How much of what was said in that run is here."""
        return self._told.get(run_id, 0)


def turn_record(
    run_id: str, start: int, messages: Iterable[Message], before: Mapping[str, Any], values: Mapping[str, Any], agent: str | None = None
) -> bytes | None:
    """A part of a turn as a record; None if nothing came of it. `before` has the values as they were, each as `kept_value` gives it.

    `agent` is the one with whom it ended.
    """
    changed = {}
    for key, value in values.items():
        kept, known = kept_value(value), before.get(key, _MISSING)
        if type(known) is not type(kept) or known != kept:
            changed[key] = value
    gone = [key for key in before if key not in values]
    said = list(messages)
    if not said and not changed and not gone:
        return None
    return pack({"session": _FORMAT, "run": run_id, "from": start, "messages": said, "values": changed, "gone": gone, "agent": agent})


def note_record(note: Mapping[str, Any]) -> bytes:
    """What a policy wants to find again, as a record."""
    return pack({"session": _FORMAT, "note": dict(note)})
