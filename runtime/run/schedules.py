"""Schedules: runs that start at certain times, once over all processes that attend.

A schedule is a value in the store, with the time of its next occurrence, which has a timer. The
process that acts on the timer starts the run, whose id names the occurrence. Then it replaces the
timer by that of the next occurrence, in one step. If it is lost in between, another process starts
the run again, and the id makes that the same run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..codec.packing import pack, unpack
from ..data.value import Value
from ..durability.store_keys import occurrence_key, schedule_key, schedule_prefix
from ..durability.timers import Timer
from ..errors import CheckpointError, StoreError, UsageError
from ..log import loggers
from ..stores.run_entries import DropEntry
from ..stores.writes import Expect, Put, Remove, Write

if TYPE_CHECKING:
    from ..durability.store_access import StoreAccess

__all__ = ["Missed", "Overlap", "ScheduleInfo", "Schedules", "new_schedule"]

Missed = Literal["once", "skip", "all"]
Overlap = Literal["skip", "queue"]

_FORMAT: Final = 1
_LATE_SECONDS: Final = 60.0
"""An occurrence on which nobody acted for so many seconds was missed."""
_LONGEST_NAME: Final = 100
_ATTEMPTS: Final = 20


class ScheduleInfo(Value, frozen=True):
    """A schedule."""

    name: str
    text: str
    cron: str | None
    every: timedelta | None
    timezone: str
    session_id: str | None
    missed: Missed
    overlap: Overlap
    next: datetime
    """The time of the next occurrence."""
    last_run_id: str | None = None
    """The run of the last occurrence that has started one."""

    @property
    def next_run_id(self) -> str:
        """The id of the run that the next occurrence starts."""
        return f"{self.name}@{self.next.isoformat()}"

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence after a moment; None if there is none."""
        if self.every is not None:
            # In UTC: the difference of two local times leaves out that their clocks were changed.
            start = self.next.astimezone(UTC)
            passed = max(0, (moment.astimezone(UTC) - start) // self.every + 1)
            return (start + passed * self.every).astimezone(_zone(self.timezone))
        assert self.cron is not None
        return next(_times(self.cron, moment.astimezone(_zone(self.timezone))), None)

    def passed(self, now: datetime) -> ScheduleInfo | None:
        """Return the schedule after its next occurrence; None if that was the last one."""
        start = self.next if self.missed == "all" else max(self.next, now)
        following = self.after(start)
        return None if following is None else self.replace(next=following)


class Schedules:
    """The schedules of one agent in one store."""

    def __init__(
        self,
        access: StoreAccess,
        agent_name: str,
        start: Callable[[ScheduleInfo], Awaitable[object]],
        is_unfinished: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._access = access
        self._agent = agent_name
        self._start = start  # starts the run of the next occurrence, once
        self._is_unfinished = is_unfinished

    async def put(self, info: ScheduleInfo) -> ScheduleInfo:
        """Store a schedule, in place of the one of that name.

        One that differs only in its times is left as it is: a service stores its schedules each
        time it starts.
        """
        for _ in range(_ATTEMPTS):
            value, held = await self._read(info.name)
            if held is not None and _is_same(held, info):
                return held
            writes: list[Write] = [Expect(self._key(info.name), value)]
            if held is not None:
                writes.append(DropEntry(self._timer(held).key))
            writes += self._writes(info)
            if await self._access.commit_if_unchanged(writes):
                return info
        msg = f"schedule({info.name!r}): other processes change it at the same time. Try again."
        raise StoreError(msg)

    async def all(self) -> list[ScheduleInfo]:
        """Return all schedules, by their names."""
        names = [
            key.removeprefix(schedule_prefix(self._agent))
            for key in await self._access.keys(schedule_prefix(self._agent))
        ]
        found = [(await self._read(name))[1] for name in names]
        return [info for info in found if info is not None]

    async def remove(self, name: str) -> bool:
        """Remove a schedule. Returns False if there is none of that name."""
        for _ in range(_ATTEMPTS):
            value, held = await self._read(name)
            if held is None:
                return False
            writes: list[Write] = [
                Expect(self._key(name), value),
                Remove(self._key(name)),
                DropEntry(self._timer(held).key),
            ]
            if await self._access.commit_if_unchanged(writes):
                return True
        msg = f"unschedule({name!r}): other processes change it at the same time. Try again."
        raise StoreError(msg)

    async def act(self, timer: Timer) -> bool:
        """Start the run of an occurrence, and set the timer of the next one.

        Returns True if the timer is gone from the store.
        """
        value, info = await self._read(timer.content)
        if info is None or self._timer(info).key != timer.key:
            # The schedule was changed at this moment.
            await self._access.commit_if_unchanged(timer.removal())
            return True
        now, started = datetime.now(UTC), info.last_run_id
        if info.missed == "skip" and (now - info.next).total_seconds() > _LATE_SECONDS:
            loggers.run.info("Occurrence %s was missed, and is skipped.", info.next_run_id)
        elif info.overlap == "skip" and started is not None and await self._is_unfinished(started):
            loggers.run.info(
                "Occurrence %s is skipped: run %s has not ended.", info.next_run_id, started
            )
        else:
            await self._start(info)
            started = info.next_run_id
        following = info.passed(now)
        writes: list[Write] = [*timer.removal(), Expect(self._key(info.name), value)]
        if following is None:
            writes.append(Remove(self._key(info.name)))
        else:
            writes += self._writes(following.replace(last_run_id=started))
        return await self._access.commit_if_unchanged(writes)

    async def _read(self, name: str) -> tuple[bytes | None, ScheduleInfo | None]:
        value = await self._access.get(self._key(name))
        return value, None if value is None else _unpacked(name, value)

    def _writes(self, info: ScheduleInfo) -> list[Write]:
        return [Put(self._key(info.name), _packed(info)), self._timer(info).entry()]

    def _timer(self, info: ScheduleInfo) -> Timer:
        """Return the timer of the next occurrence."""
        key = occurrence_key(self._agent, info.name, info.next.isoformat())
        return Timer(key, "occurrence", self._agent, None, info.next, info.name)

    def _key(self, name: str) -> str:
        return schedule_key(self._agent, name)


def new_schedule(
    name: str,
    text: str,
    cron: str | None,
    every: timedelta | None,
    timezone: str,
    session_id: str | None,
    missed: Missed,
    overlap: Overlap,
) -> ScheduleInfo:
    """Return a schedule. Raise `UsageError` if it is not valid."""
    call = f"schedule({name!r:.120})"
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        msg = f"{call}: name must be a printable string of 1 to {_LONGEST_NAME} characters."
        raise UsageError(msg)
    if not isinstance(text, str) or not text:
        msg = f"{call}: text must be the message that starts each run, got {text!r:.80}."
        raise UsageError(msg)
    if (cron is None) is (every is None):
        msg = f"{call}: pass either cron= or every=, and not both."
        raise UsageError(msg)
    for option, given, known in (
        ("missed", missed, get_args(Missed)),
        ("overlap", overlap, get_args(Overlap)),
    ):
        if given not in known:
            msg = f"{call}: {option} must be {' or '.join(map(repr, known))}, got {given!r}."
            raise UsageError(msg)
    try:
        zone = _zone(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as problem:
        msg = (
            f"{call}: timezone must be the name of a zone, such as 'Europe/Berlin', got "
            f"{timezone!r:.80}: {problem}. On a machine without zones, install tzdata."
        )
        raise UsageError(msg) from problem
    now = datetime.now(zone).replace(microsecond=0)
    if every is not None:
        if not isinstance(every, timedelta) or every < timedelta(seconds=1):
            msg = f"{call}: every must be a timedelta of at least a second, got {every!r:.80}."
            raise UsageError(msg)
        first: datetime | None = (now.astimezone(UTC) + every).astimezone(zone)
    else:
        assert cron is not None
        first = next(_checked_times(call, cron, now), None)
    if first is None:
        msg = f"{call}: cron={cron!r} never fires. Correct the day and the month."
        raise UsageError(msg)
    return ScheduleInfo(name, text, cron, every, timezone, session_id, missed, overlap, first)


def _checked_times(call: str, cron: str, after: datetime) -> Iterator[datetime]:
    try:
        return _times(cron, after)
    except ModuleNotFoundError as missing:
        msg = f"{call}: cron= needs cronsim: pip install 'offbook[schedules]'. Or pass every=."
        raise UsageError(msg) from missing
    except Exception as problem:
        msg = (
            f"{call}: cron must have five fields (minute, hour, day, month, weekday), such as "
            f"'0 9 * * MON-FRI', got {cron!r:.80}: {problem}."
        )
        raise UsageError(msg) from problem


def _times(cron: str, after: datetime) -> Iterator[datetime]:
    from cronsim import CronSim  # noqa: PLC0415 -- an extra

    return CronSim(cron, after)


def _zone(name: str) -> tzinfo:
    return ZoneInfo(name)


def _is_same(held: ScheduleInfo, info: ScheduleInfo) -> bool:
    return held.replace(next=info.next, last_run_id=info.last_run_id) == info


def _packed(info: ScheduleInfo) -> bytes:
    return pack(
        [
            _FORMAT,
            info.text,
            info.cron,
            info.every,
            info.timezone,
            info.session_id,
            info.missed,
            info.overlap,
            info.next.isoformat(),
            info.last_run_id,
        ]
    )


def _unpacked(name: str, value: bytes) -> ScheduleInfo:
    parts: Any = unpack(value)
    if not isinstance(parts, list) or not parts:
        msg = f"the stored schedule {name!r} is damaged."
        raise CheckpointError(msg)
    if parts[0] != _FORMAT:
        msg = f"the stored schedule {name!r} was written by a newer version of offbook. Update it."
        raise CheckpointError(msg)
    _, text, cron, every, timezone, session_id, missed, overlap, at, last = parts
    moment = datetime.fromisoformat(at).astimezone(_zone(timezone))
    return ScheduleInfo(
        name, text, cron, every, timezone, session_id, missed, overlap, moment, last
    )
