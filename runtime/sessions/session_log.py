"""What a session holds, turn by turn: the records in its journal, and what they add up to.

A record is one part of a turn: the messages that came in it and those that were said, and the values that it has changed. A turn that was interrupted
and goes on later has several. Each says how much of its run stood before it, so that nothing is there twice, whatever was written when. Each has a mark that
no other record ever has: a journal whose record at some place is the same is the same up to there.

Owns: the making and the reading of these records. It must never write to a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from ..agent.history import OpenCalls
from ..agent.invocation import Assignment, walk
from ..codec.kept_values import kept_value, value_of
from ..codec.packing import pack, unpack
from ..data.chat import Message, new_id
from ..durability.image import checked_message
from ..errors import CheckpointError

__all__ = ["SessionLog", "note_record", "turn_record", "waiting_calls"]

_FORMAT: Final = 1
_MISSING: Final = object()
_NO_CALLS: Final[Mapping[str, str]] = MappingProxyType({})


class SessionLog:
    """A session, as the store has it."""

    __slots__ = ("_calls", "_kept", "_name", "_note", "_told", "_values", "_waiting", "count", "is_marked", "last", "last_agent", "messages", "size")

    def __init__(self, session_id: str, records: Iterable[bytes]) -> None:
        self._name = session_id
        self.messages: list[Message] = []  # all that was said, oldest first
        self._kept: dict[str, Any] = {}  # the session values, as `kept_value` gives them
        self._values: dict[str, Any] = {}  # those of them that were read and are not put there yet
        self._note: bytes | None = None  # what the policy has noted last
        self.last_agent: str | None = None  # with whom the last turn ended; None if no record says so
        self._told: dict[str, int] = {}  # how much of each run is in it
        self._waiting: dict[str, dict[str, str]] = {}  # of each run that was interrupted: what is said of its calls that wait for something
        self._calls = OpenCalls()
        self.count = 0  # of its records
        self.size = 0  # bytes of them
        self.last = b""  # the last one
        self.is_marked = False  # whether no other record ever is the same
        self.read(records)

    def read(self, records: Iterable[bytes]) -> None:
        """These come next. If one of them is damaged, that is raised, and this is of no use any more."""
        for record in records:
            try:
                self._add(record, unpack(record))
            except CheckpointError as error:
                msg = f"session {self._name!r}, record {self.count}: {error}"
                raise CheckpointError(msg) from error
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                msg = f"session {self._name!r} is damaged at record {self.count}: {type(error).__name__}: {error}"
                raise CheckpointError(msg) from error

    def _add(self, packed: bytes, said: Mapping[str, Any]) -> None:
        if said["session"] > _FORMAT:
            msg = f"it was written by a newer version of understudy: its format is {said['session']}, and this one reads up to {_FORMAT}. Update."
            raise CheckpointError(msg)
        if "note" in said:
            self._note = pack(dict(said["note"]))
        else:
            self._add_turn(said)
        self.last, self.is_marked = packed, type(said.get("mark")) is str
        self.count += 1
        self.size += len(packed)

    def _add_turn(self, said: Mapping[str, Any]) -> None:
        run, start, messages = said["run"], said["from"], said["messages"]
        for message in messages:
            checked_message(message)
        told = self._told.get(run, 0)
        new = messages[max(0, told - start) :]
        self.messages.extend(new)
        self._calls.follow(new)
        self._told[run] = max(told, start + len(messages))
        revised = said.get("revised")  # of messages whose listener has interrupted: what was heard of them
        if revised:
            self.messages = [replace(one, content=str(revised[one.id])) if one.id in revised else one for one in self.messages]
        waits = said.get("waits")
        if waits:
            self._waiting[run] = {str(call_id): str(text) for call_id, text in waits.items()}
        else:
            self._waiting.pop(run, None)
        self._values.update(said["values"])
        for key in said["gone"]:
            self._kept.pop(key, None)
            self._values.pop(key, None)
        agent = said.get("agent")  # records that were written before there was one have none
        if not isinstance(agent, str | None):
            msg = f"an agent is no {type(agent).__name__}"
            raise TypeError(msg)
        self.last_agent = agent or self.last_agent

    @property
    def kept(self) -> Mapping[str, Any]:
        """The session values, as `kept_value` gives them."""
        if self._values:
            self._kept.update((key, kept_value(value)) for key, value in self._values.items())
            self._values = {}
        return self._kept

    @property
    def values(self) -> dict[str, Any]:
        """The session values. Each time they are made anew: the caller may change them."""
        return {key: value_of(kept) for key, kept in self.kept.items()}

    @property
    def note(self) -> dict[str, Any] | None:
        """What the policy has noted last."""
        found: dict[str, Any] | None = None if self._note is None else unpack(self._note)
        return found

    @property
    def is_complete(self) -> bool:
        """Whether each of its calls has its result right behind it, and each result a call."""
        return self._calls.are_none

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
    record = {"session": _FORMAT, "run": run_id, "from": start, "messages": said, "values": changed, "gone": gone, "agent": agent, "mark": new_id()}
    if waits:
        record["waits"] = dict(waits)
    return pack(record)


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
    return pack({"session": _FORMAT, "note": dict(note), "mark": new_id()})
