"""What is going on at this moment.

Owns: one snapshot for all who look, taken when it is asked for and at most once in a second, so that many pages cost as much as one. It must never look by
itself: a console that no page looks at costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic, time
from typing import TYPE_CHECKING, Final

from ..observe.event_json import Json
from .json_forms import run_json, stats_json
from .run_list import COUNTED, STATUSES, Count, RunList, Wanted

if TYPE_CHECKING:
    from ..data.run_info import RunInfo
    from ..system.system import ActorSystem

__all__ = ["Now"]

_FRESH: Final = 1.0
_COUNTED_AGAIN: Final = 10.0
_SHOWN: Final = 50
_SPAN: Final = 60.0
_OPEN: Final = ("running", "interrupted", "stuck")
"""What changes all the time; runs that have ended are counted more rarely."""


class Now:
    """The snapshots of one console."""

    def __init__(self, runs: RunList, system: Callable[[], ActorSystem]) -> None:
        self._runs = runs
        self._system = system
        self._lock: asyncio.Lock | None = None
        self._taken = 0.0
        self._last: dict[str, Json] = {}
        self._counted = 0.0
        self._counts: dict[str, Count] = {}
        self._handled: tuple[float, int] | None = None

    async def look(self) -> dict[str, Json]:
        """The snapshot: a fresh one, or the last, if that is of this second."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if not self._last or monotonic() - self._taken >= _FRESH:
                self._last, self._taken = await self._take(), monotonic()
            return self._last

    async def stats(self) -> dict[str, Json]:
        """The system and how many runs there are, for programs."""
        snapshot = await self.look()
        return {name: snapshot[name] for name in ("system", "runs", "more", "problem")}

    async def _take(self) -> dict[str, Json]:
        found: dict[str, Json] = {"at": time(), "system": self._system_now(), "problem": self._runs.problem(), "runs": {}, "more": []}
        if found["problem"] is not None:
            return {**found, "working": [], "waiting": [], "stuck": [], "recent": None}
        lists = {status: await self._runs.page(Wanted((status,)), _SHOWN) for status in _OPEN}
        counts = dict(await self._ended_counts())
        for status, runs in lists.items():
            counts[status] = Count(len(runs), more=False) if len(runs) < _SHOWN else await self._runs.count(status)
        found["runs"] = {status: counts[status].number for status in STATUSES}
        found["more"] = [status for status in STATUSES if counts[status].more]
        for name, status in zip(("working", "waiting", "stuck"), _OPEN, strict=True):
            found[name] = [run_json(info) for info in lists[status]]
        found["recent"] = await self._recent()
        return found

    async def _ended_counts(self) -> dict[str, Count]:
        if not self._counts or monotonic() - self._counted >= _COUNTED_AGAIN:
            self._counts = {status: await self._runs.count(status) for status in STATUSES if status not in _OPEN}
            self._counted = monotonic()
        return self._counts

    async def _recent(self) -> Json:
        """What was begun in the last minute."""
        found = await self._runs.page(Wanted(since=time() - _SPAN), COUNTED)
        failed: list[RunInfo] = [info for info in found if info.status.value == "failed"]
        span = _SPAN
        if len(found) == COUNTED:  # there are more: they are as many in the rest of the minute
            span = max(0.001, time() - found[-1].started.timestamp())
        return {
            "seconds": span,
            "begun": len(found),
            "per_second": len(found) / span,
            "failed": len(failed),
            "input_tokens": sum(info.usage.input_tokens for info in found),
            "output_tokens": sum(info.usage.output_tokens for info in found),
            "errors": [{"id": info.id, "error": (info.error or "")[:300], "agent": info.last_agent or info.agent} for info in failed[:10]],
        }

    def _system_now(self) -> Json:
        stats = self._system().stats()
        now, before = monotonic(), self._handled
        self._handled = (now, stats.handled)
        rate = None if before is None or now <= before[0] else max(0.0, (stats.handled - before[1]) / (now - before[0]))
        return {**stats_json(stats), "handled_per_second": rate}
