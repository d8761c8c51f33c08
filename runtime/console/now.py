"""A snapshot of the current state.

All pages share one snapshot, which is taken on request and at most once a second, so that many
pages cost as much as one. Without pages, it costs nothing.
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
"""Statuses that change all the time; runs that have ended are counted less often."""


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
        """Return the snapshot: the last one, if it is less than a second old, or a new one."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if not self._last or monotonic() - self._taken >= _FRESH:
                self._last, self._taken = await self._take(), monotonic()
            return self._last

    async def stats(self) -> dict[str, Json]:
        """Return the system and the number of runs, for programs."""
        snapshot = await self.look()
        return {name: snapshot[name] for name in ("system", "runs", "more", "problem")}

    async def _take(self) -> dict[str, Json]:
        found: dict[str, Json] = {
            "at": time(),
            "system": self._system_now(),
            "problem": self._runs.problem(),
            "runs": {},
            "more": [],
        }
        if found["problem"] is not None:
            return {**found, "working": [], "lost": [], "waiting": [], "stuck": [], "recent": None}
        lists = {status: await self._runs.page(Wanted((status,)), _SHOWN) for status in _OPEN}
        counts = dict(await self._ended_counts())
        for status, runs in lists.items():
            counts[status] = (
                Count(len(runs), more=False)
                if len(runs) < _SHOWN
                else await self._runs.count(status)
            )
        found["runs"] = {status: counts[status].number for status in STATUSES}
        found["more"] = [status for status in STATUSES if counts[status].more]
        for name, status in zip(("working", "waiting", "stuck"), _OPEN, strict=True):
            found[name] = [run_json(info) for info in lists[status]]
        lost = await self._runs.lost(lists["running"])
        found["working"] = [run_json(info) for info in lists["running"] if info.id not in lost]
        found["lost"] = [
            run_json(info, is_lost=True) for info in lists["running"] if info.id in lost
        ]
        found["recent"] = await self._recent()
        return found

    async def _ended_counts(self) -> dict[str, Count]:
        if not self._counts or monotonic() - self._counted >= _COUNTED_AGAIN:
            self._counts = {
                status: await self._runs.count(status) for status in STATUSES if status not in _OPEN
            }
            self._counted = monotonic()
        return self._counts

    async def _recent(self) -> Json:
        """Return the runs that were started in the last minute."""
        found = await self._runs.page(Wanted(since=time() - _SPAN), COUNTED)
        failed: list[RunInfo] = [info for info in found if info.status.value == "failed"]
        span = _SPAN
        if len(found) == COUNTED:  # there are more: extrapolate to the rest of the minute
            span = max(0.001, time() - found[-1].started.timestamp())
        return {
            "seconds": span,
            "begun": len(found),
            "per_second": len(found) / span,
            "failed": len(failed),
            "input_tokens": sum(info.usage.input_tokens for info in found),
            "output_tokens": sum(info.usage.output_tokens for info in found),
            "errors": [
                {
                    "id": info.id,
                    "error": (info.error or "")[:300],
                    "agent": info.last_agent or info.agent,
                }
                for info in failed[:10]
            ],
        }

    def _system_now(self) -> Json:
        stats = self._system().stats()
        now, before = monotonic(), self._handled
        self._handled = (now, stats.handled)
        rate = (
            None
            if before is None or now <= before[0]
            else max(0.0, (stats.handled - before[1]) / (now - before[0]))
        )
        return {**stats_json(stats), "handled_per_second": rate}
