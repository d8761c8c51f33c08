"""The hosts of a cluster as they come and go: the iteration of `Cluster.watch()`.

It compares the current state with the shown one, without a queue, so a slow reader gets the latest
state of each host.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..transport import HostGone

if TYPE_CHECKING:
    from .routes import Routes

__all__ = ["HostChange", "watch_hosts"]


@dataclass(frozen=True, slots=True)
class HostChange:
    """The state of a host, at the start of the watch and at each change."""

    host: str
    state: str
    """up, draining, lost (it cannot be reached, and may return) or left (it was drained)."""
    version: str | None = None
    incarnation: str = ""
    """Its current incarnation; empty while it is lost. A recovered host has another one."""


async def watch_hosts(routes: Routes) -> AsyncIterator[HostChange]:
    """Yield each host, then each change, until the client is closed."""
    incarnations: dict[str, str] = {}
    polling = routes.run_task(_poll(routes, incarnations), "the watch of the hosts")
    shown: dict[str, HostChange] = {}
    try:
        while not routes.closed:
            changes = list(_changes(routes, incarnations, shown))
            for change in changes:
                yield change
            if not changes:
                await routes.wait_changed()
    finally:
        polling.cancel()


def _changes(
    routes: Routes, incarnations: dict[str, str], shown: dict[str, HostChange]
) -> Iterator[HostChange]:
    """Record and yield the differences from the shown state."""
    members = {one.name: one for one in routes.hosts.members}
    for name in shown.keys() - members.keys():
        yield replace(shown.pop(name), state="left")
    for name, one in members.items():
        state = "draining" if one.is_draining else "up"
        if routes.is_down(name):
            state = "lost"
            incarnations.pop(name, None)  # it is up again once its incarnation is known
        elif name not in incarnations:
            continue  # it has not answered yet
        change = HostChange(name, state, one.version, incarnations.get(name, ""))
        if shown.get(name) != change:
            shown[name] = change
            yield change


async def _poll(routes: Routes, incarnations: dict[str, str]) -> None:
    """Poll each host periodically, because an idle client would not notice a change."""
    while True:
        names = routes.hosts.names()
        controls = await asyncio.gather(*map(routes.control, names))
        newest, at = routes.hosts.number, ""
        for name, said in zip(names, controls, strict=True):
            if said is None:
                routes.lost(HostGone(name, incarnations.get(name), silent=True))
            else:
                incarnations[name] = said.incarnation
                if said.counts.get("list", 0) > newest:
                    newest, at = said.counts["list"], name
        for name in incarnations.keys() - routes.hosts.names():
            del incarnations[name]
        if at:
            await routes.refresh(at)
        routes.changed()
        await asyncio.sleep(routes.limits.sweep_seconds)
