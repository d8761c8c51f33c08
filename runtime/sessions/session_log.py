"""What a session holds, turn by turn: the records in its journal, and what they add up to.

A record is one part of a turn: the messages that came in it and those that were said, and the values that it has changed. A turn that was interrupted
and goes on later has several. Each says how much of its run stood before it, so that nothing is there twice, whatever was written when.

Owns: the making and the reading of these records. It must never write to a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ..agent.invocation import Assignment, walk
from ..codec.packing import pack, unpack
from ..data.chat import Message
from ..durability.image import checked_message
from ..durability.journal import kept_value
from ..errors import CheckpointError

__all__ = ["SessionLog", "note_record", "turn_record", "waiting_calls"]

_FORMAT: Final = 1
_MISSING: Final = object()
_NO_CALLS: Final[Mapping[str, str]] = MappingProxyType({})


class SessionLog:
    """A session, as the store has it."""

    __slots__ = ("_told", "_waiting", "last_agent", "messages", "note", "values")

    def __init__(self, session_id: str, records: Iterable[bytes]) -> None:
        self.messages: list[Message] = []  # all that was said, oldest first
        self.values: dict[str, Any] = {}
        self.note: dict[str, Any] | None = None  # what the policy has noted last
        self.last_agent: str | None = None  # with whom the last turn ended; None if no record says so
        self._told: dict[str, int] = {}  # how much of each run is in it
        self._waiting: dict[str, dict[str, str]] = {}  # of each run that was interrupted: what is said of its calls that wait for something
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
        revised = record.get("revised")  # of messages whose listener has interrupted: what was heard of them
        if revised:
            self.messages = [replace(one, content=str(revised[one.id])) if one.id in revised else one for one in self.messages]
        self._waiting[run] = {str(call_id): str(text) for call_id, text in record.get("waits", {}).items()}
        self.values.update(record["values"])
        for key in record["gone"]:
            self.values.pop(key, None)
        agent = record.get("agent")  # records that were written before there was one have none
        if not isinstance(agent, str | None):
            msg = f"an agent is no {type(agent).__name__}"
            raise TypeError(msg)
        self.last_agent = agent or self.last_agent

    @property
    def waiting(self) -> dict[str, str]:
        """What is said of the calls that wait for something from outside, by their ids."""
        return {call_id: text for calls in self._waiting.values() for call_id, text in calls.items()}

    def told_of(self, run_id: str) -> int:
        """How much of what was said in that run is here."""
        return self._told.get(run_id, 0)


def turn_record(
    run_id: str,
    start: int,
    messages: Iterable[Message],
    before: Mapping[str, Any],
    values: Mapping[str, Any],
    waits: Mapping[str, str] = _NO_CALLS,
    agent: str | None = None,
) -> bytes | None:
    """A part of a turn as a record; None if nothing came of it. `before` has the values as they were, each as `kept_value` gives it.

    `agent` is the one with which it ended; `waits` has what the model is told of the calls that wait.
    """
    changed = {}
    for key, value in values.items():
        kept, known = kept_value(value), before.get(key, _MISSING)
        if type(known) is not type(kept) or known != kept:
            changed[key] = value
    gone = [key for key in before if key not in values]
    said = list(messages)
    if not said and not changed and not gone and not waits:
        return None
    record = {"session": _FORMAT, "run": run_id, "from": start, "messages": said, "values": changed, "gone": gone, "agent": agent}
    return pack({**record, "waits": dict(waits)} if waits else record)


def waiting_calls(root: Assignment | None) -> dict[str, str]:
    """What the model is told of the calls of a run that wait for something, by their ids: so that it does not make them again."""
    found: dict[str, str] = {}
    for invocation in () if root is None else walk(root):
        for pending in (invocation.pending or {}).values():
            info = pending.context.info
            asked = f' to what it asked ("{info}")' if isinstance(info, str) and info else ""
            text = f"The call waits for {'approval' if pending.approval else f'an answer{asked}'}. Do not make it again: its result comes when it was given."
            found.update((step.call_id, text) for step in pending.context.address if step.kind == "tool" and step.call_id is not None)
    return found


def note_record(note: Mapping[str, Any]) -> bytes:
    """What a policy wants to find again, as a record."""
    return pack({"session": _FORMAT, "note": dict(note)})
