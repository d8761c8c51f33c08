"""The stored data of one run: its steps, its session values, its saves, and its input.

This module only reads, and only builds plain values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from ..codec.packing import unpack
from ..data.chat import Message
from ..data.events import AgentEvent
from ..data.interrupt import InterruptContext, Pending
from ..data.run_info import RunInfo
from ..durability.checkpoint import numbered_id, read_checkpoint
from ..durability.kept_outcome import values_at_end
from ..durability.replay import replay
from ..durability.store_access import StoreAccess
from ..durability.store_keys import answered_key, journal_key
from ..errors import CheckpointError, CheckpointNotFound
from ..observe.event_json import Json, plain

__all__ = ["KeptSteps"]

_AT_ONCE: Final = 200
_MOST_SAVES: Final = 100
_MANY: Final = 500
"""Records: replaying more of them takes a thread, so as not to block the event loop."""
_LONGEST: Final = 300


class KeptSteps:
    """One run in one store."""

    def __init__(self, access: StoreAccess, info: RunInfo) -> None:
        self._access = access
        self._info = info

    async def steps(self, after: int) -> dict[str, Json]:
        """Return the records of its journal after number `after`, a page at a time."""
        records = await self._access.read(journal_key(self._info.id), after)
        told: list[Json] = [
            _record(after + position, data)
            for position, data in enumerate(records[:_AT_ONCE], start=1)
        ]
        return {
            "steps": told,
            "more": max(0, len(records) - _AT_ONCE),
            "kept": bool(records) or after > 0,
        }

    async def values(self) -> dict[str, Json]:
        """Return the session values as they were when the run was last written."""
        key = journal_key(self._info.id)
        ended, records = await self._access.get(key), await self._access.read(key)
        if ended:
            return _plain_values(values_at_end(self._info.id, ended))
        if records:
            return _plain_values((await _added_up(records))["values"])
        image = (await self._head()).get("image")
        return _plain_values(image.get("values", {}) if isinstance(image, dict) else {})

    async def saves(self) -> list[Json]:
        """Return its saves, the last one first: each can be resumed by its id."""
        try:
            head = await self._head()
        except CheckpointNotFound:
            return []
        name, last = self._info.checkpoint_id, head["number"]
        first = max(1, last - _MOST_SAVES + 1)
        found = await asyncio.gather(
            *(
                self._save(name, number, head if number == last else None)
                for number in range(first, last + 1)
            )
        )
        return [save for save in reversed(found) if save is not None]

    async def _save(self, name: str, number: int, save: dict[str, Any] | None) -> Json:
        numbered = numbered_id(name, number)
        if save is None:
            data = await self._access.get(numbered)
            if data is None:
                return None
            save = read_checkpoint(numbered, data)
        if save["run"] != self._info.id:
            return None
        return {
            "id": numbered,
            "number": number,
            "records": save.get("records"),
            "answered": await self._access.get(answered_key(self._info.id, number)) is not None,
        }

    async def waiting_at(self, save_id: str) -> list[InterruptContext]:
        """Return the interrupts of the run at that save."""
        data = await self._access.get(save_id)
        # The last save has no key with its number.
        head = save_id if data is not None else self._info.checkpoint_id
        data = data if data is not None else await self._access.get(head)
        save = {} if data is None else read_checkpoint(head, data)
        if save.get("run") != self._info.id or save_id not in (
            head,
            numbered_id(head, save["number"]),
        ):
            msg = (
                f"run {self._info.id!r:.200} has no stored checkpoint {save_id!r:.200}. Choose "
                "one that the page lists."
            )
            raise CheckpointNotFound(msg, run=self._info.id)
        image = save.get("image")
        if image is None:
            image = await _added_up(
                (await self._access.read(journal_key(self._info.id)))[: save["records"]]
            )
        frames = image.get("frames", {}) if isinstance(image, dict) else {}
        pending = [
            one for frame in frames.values() for one in (frame.get("pending") or {}).values()
        ]
        return [one.context for one in pending if isinstance(one, Pending)]

    async def asked(self) -> tuple[tuple[Message, ...], int]:
        """Return the messages with which it started, and how many were already in its session."""
        records = await self._access.read(journal_key(self._info.id))
        image = (await _added_up(records[:1])) if records else (await self._head()).get("image")
        found = image.get("input") if isinstance(image, dict) else None
        messages = (
            found[0] if isinstance(found, list) and found and isinstance(found[0], list) else []
        )
        if not messages or not all(isinstance(message, Message) for message in messages):
            msg = (
                f"the input of run {self._info.id!r:.200} is not stored: its steps were not "
                "recorded, or it has ended. Set durability='step' and keep= on its Runner."
            )
            raise CheckpointNotFound(msg, run=self._info.id)
        new = image.get("fresh") if isinstance(image, dict) else None
        return tuple(messages), max(0, len(messages) - new) if type(new) is int and new > 0 else 0

    async def _head(self) -> dict[str, Any]:
        data = await self._access.get(self._info.checkpoint_id)
        if data is None:
            msg = (
                f"the steps of run {self._info.id!r:.200} are not stored. To store those of new "
                "runs, set durability='step'."
            )
            raise CheckpointNotFound(msg, run=self._info.id)
        return read_checkpoint(self._info.checkpoint_id, data)


async def _added_up(records: Sequence[bytes]) -> dict[str, Any]:
    if len(records) > _MANY:
        return await asyncio.to_thread(replay, list(records))
    return replay(list(records))


def _plain_values(values: dict[str, Any]) -> dict[str, Json]:
    return {str(key): plain(value) for key, value in values.items()}


def _record(number: int, data: bytes) -> Json:
    try:
        changes: Any = unpack(data)
        told: list[Json] = [
            {"kind": str(change[0])[:40], "text": _text(change)[:_LONGEST]} for change in changes
        ]
    except (CheckpointError, LookupError, TypeError, ValueError) as error:
        told = [{"kind": "unreadable", "text": str(error)[:_LONGEST]}]
    return {"number": number, "bytes": len(data), "changes": told}


def _text(change: list[Any]) -> str:
    match change:
        case ["start", dict() as image, *_]:
            return f"run of {image.get('agent')}"
        case ["event", lane, AgentEvent() as event, *_]:
            return (
                f"#{event.seq} {event!s}"
                if lane is not None
                else f"#{event.seq} {event!s} (not in the history)"
            )
        case ["frame", key, bytes() as packed, *_]:
            frame = unpack(packed)
            names = frame.get("names") if isinstance(frame, dict) else None
            return f"{' / '.join(map(str, names)) if isinstance(names, list) else ''} ({key})"
        case ["values", dict() as changed, list() as gone, *_]:
            return ", ".join([*map(str, changed), *(f"without {name}" for name in gone)])
        case ["step", _, name, *_]:
            return str(name)
        case ["mark", kind, number, *_]:
            return f"{kind} {number}"
        case ["counters", dict() as news, *_]:
            return ", ".join(
                f"{name} {value}" for name, value in news.items() if isinstance(value, int | str)
            )
        case _:
            return ", ".join(str(one) for one in change[1:] if isinstance(one, str | int))
