"""A session's records in the store, which outlive the process.

They have the form of any session's records, so a text agent can read a spoken conversation.
Additional data of realtime sessions is under the key `realtime`.

This module holds the session's lease, and orders the writes. It writes only complete items, and
nothing after the lease is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ....runtime.agent.run_messages import LOST, CancelRun
from ....runtime.codec.kept_values import kept_value
from ....runtime.codec.packing import pack
from ....runtime.data.chat import Message, new_id
from ....runtime.durability.lease import Lease
from ....runtime.durability.leases import Busy, leases_of
from ....runtime.durability.store_access import StoreAccess
from ....runtime.durability.store_keys import preempt_key, session_key
from ....runtime.errors import RunLost, SessionBusy
from ....runtime.stores.writes import Append
from ..state.recorded import Recorded, read_records

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Record"]

_MISSING: Final = object()


class Record:
    """One session's records, as written by this process."""

    def __init__(self, core: SessionCore, access: StoreAccess, session_id: str, busy: Busy) -> None:
        self._core = core
        self._access = access
        self._session_id = session_id
        self._busy: Busy = busy
        self._lease: Lease | None = None
        self._run = new_id()
        self._told = 0
        self._position = 0
        self._before: dict[str, Any] = {}
        self._queue: deque[dict[str, Any]] = deque()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.last = 0
        self.written = 0

    @property
    def lease(self) -> Lease | None:
        return self._lease

    @property
    def is_pending(self) -> bool:
        return self.written < self.last

    async def open(self) -> Recorded:
        """Acquire the session's lease, and read its records."""
        core = self._core
        key = session_key(self._session_id)
        lease = Lease(
            key,
            f"session {self._session_id!r}",
            partial(core.report, core.lifecycle.lost_lease, LOST),
            partial(
                core.report,
                core.lifecycle.lost_lease,
                CancelRun("another process has taken the session over", begins_first=True),
            ),
            preempts=self._busy == "preempt",
        )
        if not await leases_of(core.system).take_turn(
            self._access, lease, preempt_key(self._session_id), self._busy
        ):
            msg = (
                f"session {self._session_id!r} is open elsewhere. Pass busy='queue' to "
                "wait for it, or busy='preempt' to end the other one."
            )
            raise SessionBusy(msg)
        self._lease = lease
        records = await self._access.read(key)
        self._position = len(records)
        found = read_records(self._session_id, records)
        self._before = {name: kept_value(value) for name, value in found.values.items()}
        return found

    def start(self) -> None:
        """Start writing records."""
        self._task = self._core.child(self._write(), None, "store")

    def note(
        self,
        realtime: Mapping[str, Any],
        message: Message | None = None,
        revised: Mapping[str, str] | None = None,
    ) -> int:
        """Add a record. Return its number."""
        core = self._core
        values = core.context.session.to_dict()
        changed = {}
        for key, value in values.items():
            kept, known = kept_value(value), self._before.get(key, _MISSING)
            if type(known) is not type(kept) or known != kept:
                changed[key] = value
                self._before[key] = kept
        gone = [key for key in self._before if key not in values]
        for key in gone:
            del self._before[key]
        messages = [] if message is None else [message]
        record: dict[str, Any] = {
            "session": 1,
            "run": self._run,
            "from": self._told,
            "messages": messages,
            "values": changed,
            "gone": gone,
            "agent": core.current.agent.name,
            "realtime": dict(realtime),
        }
        if revised:
            record["revised"] = dict(revised)
        self._told += len(messages)
        self.last += 1
        self._queue.append(record)
        self._ready.set()
        return self.last

    async def _write(self) -> None:
        core = self._core
        while True:
            while not self._queue:
                self._ready.clear()
                await self._ready.wait()
            try:
                await self._write_some()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 -- ends the session
                core.report(core.lifecycle.fatal, error)
                return
            core.report(core.was_written)

    async def _write_some(self) -> None:
        batch = tuple(self._queue)
        records = tuple(pack(one) for one in batch)
        lease = self._lease
        if lease is None:
            msg = (
                f"session {self._session_id!r} was taken over by another process. Open it again "
                "to continue"
            )
            raise RunLost(msg)
        await lease.commit([Append(lease.key, records, self._position)])
        self._position += len(records)
        for _ in batch:
            self._queue.popleft()
        self.written += len(records)

    async def close(self, *, lost: bool) -> None:
        """Write the remaining records, and release the session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        lease, self._lease = self._lease, self._lease if self._queue and not lost else None
        if lease is None:
            return
        try:
            if self._queue and not lost:
                await self._write_some()
        finally:
            self._lease = None
            await leases_of(self._core.system).give_back(lease)


def then_of(
    record: Record | None, number: int, then: Callable[[], object]
) -> Callable[[], object] | None:
    """Return `then` if that record is not stored yet; otherwise call it, and return None."""
    if record is None or record.written >= number:
        then()
        return None
    return then
