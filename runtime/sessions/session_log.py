"""The content of a session, turn by turn: the records in its journal, and their sum.

A record is one part of a turn: its input messages and replies, and the values that it changed. A
turn that was interrupted and resumed has several. Each record stores how much of its run came
before it, so that nothing is counted twice, whatever the order of writing. Each record has a unique
mark: if the record at some place of a journal is equal, the journal is equal up to there.

The module builds and reads these records. It does not write to a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ..agent.history import OpenCalls
from ..agent.invocation import AgentCall, walk
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
    """The content of a session, as stored."""

    __slots__ = (
        "_calls",
        "_kept",
        "_name",
        "_note",
        "_told",
        "_values",
        "_waiting",
        "count",
        "is_marked",
        "last",
        "last_agent",
        "messages",
        "size",
        "speakers",
    )

    def __init__(self, session_id: str, records: Iterable[bytes]) -> None:
        self._name = session_id
        self.messages: list[Message] = []  # all messages, oldest first
        self.speakers: list[str | None] = []  # the agent of each message; None for the user's
        self._kept: dict[str, Any] = {}  # session values, as `kept_value` returns them
        self._values: dict[str, Any] = {}  # values that were read and not converted yet
        self._note: bytes | None = None  # latest note of the policy
        # Agent that ended the last turn; None if no record has one.
        self.last_agent: str | None = None
        self._told: dict[str, int] = {}  # number of messages of each run
        # For each interrupted run: the texts for its waiting calls.
        self._waiting: dict[str, dict[str, str]] = {}
        self._calls = OpenCalls()
        self.count = 0  # number of records
        self.size = 0  # size of the records in bytes
        self.last = b""  # last record
        self.is_marked = False  # True if no other record can be equal to the last one
        self.read(records)

    def read(self, records: Iterable[bytes]) -> None:
        """Add the next records.

        Raises if one of them is damaged; then this object must not be used any more.
        """
        for record in records:
            try:
                self._add(record, unpack(record))
            except CheckpointError as error:
                msg = f"session {self._name!r}, record {self.count}: {error}"
                raise CheckpointError(msg) from error
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                msg = (
                    f"session {self._name!r} is damaged at record {self.count}: "
                    f"{type(error).__name__}: {error}. Restore the store from a backup"
                )
                raise CheckpointError(msg) from error

    def _add(self, packed: bytes, said: Mapping[str, Any]) -> None:
        if said["session"] > _FORMAT:
            msg = (
                f"it was written by a newer version of offbook: its format is {said['session']}, "
                f"and this version reads up to {_FORMAT}. Update offbook."
            )
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
        agent = said.get("agent")  # older records have none
        if not isinstance(agent, str | None):
            msg = f"agent must be a string or None, got a {type(agent).__name__}"
            raise TypeError(msg)
        speakers = said.get("speakers")  # older records only have the agent that ended the turn
        self.speakers.extend((_speakers(speakers, messages, agent))[len(messages) - len(new) :])
        self._told[run] = max(told, start + len(messages))
        revised = said.get("revised")  # the audible part of messages that the listener interrupted
        if revised:
            self.messages = [
                one.replace(content=str(revised[one.id])) if one.id in revised else one
                for one in self.messages
            ]
        waits = said.get("waits")
        if waits:
            self._waiting[run] = {str(call_id): str(text) for call_id, text in waits.items()}
        else:
            self._waiting.pop(run, None)
        self._values.update(said["values"])
        for key in said["gone"]:
            self._kept.pop(key, None)
            self._values.pop(key, None)
        self.last_agent = agent or self.last_agent

    @property
    def kept(self) -> Mapping[str, Any]:
        """The session values, as `kept_value` returns them."""
        if self._values:
            self._kept.update((key, kept_value(value)) for key, value in self._values.items())
            self._values = {}
        return self._kept

    @property
    def values(self) -> dict[str, Any]:
        """The session values. A new copy each time, which the caller may change."""
        return {key: value_of(kept) for key, kept in self.kept.items()}

    @property
    def note(self) -> dict[str, Any] | None:
        """The latest note of the policy."""
        found: dict[str, Any] | None = None if self._note is None else unpack(self._note)
        return found

    @property
    def is_complete(self) -> bool:
        """True if each call has its result directly after it, and each result a call."""
        return self._calls.are_none

    @property
    def waiting(self) -> dict[str, str]:
        """The texts for the calls that wait for an external answer, by call id."""
        return {
            call_id: text for calls in self._waiting.values() for call_id, text in calls.items()
        }

    def told_of(self, run_id: str) -> int:
        """Return the number of messages of that run in the session."""
        return self._told.get(run_id, 0)


def turn_record(
    run_id: str,
    start: int,
    messages: Iterable[Message],
    before: Mapping[str, Any],
    values: Mapping[str, Any],
    waits: Mapping[str, str] = _NO_CALLS,
    agent: str | None = None,
    speakers: Sequence[str | None] = (),
) -> bytes | None:
    """Encode a part of a turn as a record; None if it is empty.

    `before` has the earlier values, as `kept_value` returns them. `agent` ended this part;
    `speakers` has the agent of each message; `waits` has the texts for calls that wait.
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
    record = {
        "session": _FORMAT,
        "run": run_id,
        "from": start,
        "messages": said,
        "values": changed,
        "gone": gone,
        "agent": agent,
        "mark": new_id(),
    }
    if any(
        speaker != agent
        for speaker, message in zip(speakers, said, strict=False)
        if message.role != "user"
    ):
        record["speakers"] = list(speakers)
    if waits:
        record["waits"] = dict(waits)
    return pack(record)


def _speakers(names: Any, messages: Sequence[Message], agent: str | None) -> list[str | None]:
    """Return the agent of each message.

    Without names, the agent that ended the turn counts for all.
    """
    if names is None:
        return [None if message.role == "user" else agent for message in messages]
    if (
        not isinstance(names, list)
        or len(names) != len(messages)
        or not all(isinstance(name, str | None) for name in names)
    ):
        raise TypeError("speakers must have one name or None for each message of the turn")
    return names


def waiting_calls(root: AgentCall | None) -> dict[str, str]:
    """Return the texts for a run's waiting calls by id, so that the model does not repeat them."""
    found: dict[str, str] = {}
    for invocation in () if root is None else walk(root):
        for pending in (invocation.pending or {}).values():
            info = pending.context.info
            asked = f' to what it asked ("{info}")' if isinstance(info, str) and info else ""
            text = (
                f"The call waits for {'approval' if pending.approval else f'an answer{asked}'}. "
                "Do not make it again: its result comes when it was given."
            )
            found.update(
                (step.call_id, text)
                for step in pending.context.address
                if step.kind == "tool" and step.call_id is not None
            )
    return found


def note_record(note: Mapping[str, Any]) -> bytes:
    """Encode a policy's note as a record."""
    return pack({"session": _FORMAT, "note": dict(note), "mark": new_id()})
