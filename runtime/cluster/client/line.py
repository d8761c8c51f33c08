"""The requests of one client under one key, in order: a session, a run or a keyed actor.

An entry of a line is sent to the host that the key belongs to. If that host moves it on, or is
lost, the entry is sent again, under the same id. Meanwhile the later entries of the line wait, so
that they arrive in the order sent (G14): a line is with one host at a time, and moves as a whole.

An entry that may have been started, but is not stored, is never sent again. It ends with the error
that `Entry.check_lost` raises.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import unpack
from ...errors import OffbookError
from ..errors import ClusterError
from ..host_list import HostList
from ..transport import HostGone

if TYPE_CHECKING:
    from ..link_order import Reply
    from .link import Call, HostLink
    from .routes import Routes

__all__ = ["Entry", "Line", "Lines", "ask"]

_MOST_MOVES: Final = 50
"""The limit of consecutive moves of an entry without any progress."""
_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_SENT_ON: Final = frozenset(("moved", "elsewhere"))


class Entry:
    """One request, until it has an answer."""

    __slots__ = (
        "accepted",
        "answered",
        "body",
        "call",
        "check_lost",
        "head",
        "kind",
        "lost",
        "moves",
        "name",
        "on_sent",
    )

    def __init__(
        self,
        kind: str,
        body: bytes,
        name: str,
        *,
        head: dict[str, Any] | None = None,
        check_lost: Callable[[Call, HostGone], None] | None = None,
        on_sent: Callable[[Call], object] | None = None,
    ) -> None:
        self.kind = kind
        self.body = body
        self.name = name
        """Its name in errors."""
        self.head = head or {}
        """Additional fields of the head, sent each time."""
        self.check_lost = check_lost
        """Raises the error for the caller, if it must not be sent again after its host was lost."""
        self.on_sent = on_sent
        self.call: Call | None = None  # while a host has it
        self.lost: HostGone | None = None  # the host that had it, if that was lost
        self.accepted = False  # whether a host may have started it: then no other host refuses it
        self.moves = 0  # number of moves since the last progress
        self.answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.answered.add_done_callback(_retrieve)

    async def reply(self) -> Reply:
        """Return the answer of any host. Raise the error of `check_lost`, or `ClusterError`."""
        return await asyncio.shield(self.answered)

    def fail(self, error: Exception) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)


class Line:
    """The entries of one key that have no answer yet."""

    __slots__ = ("_entries", "_key", "_lines", "_link", "_moving", "_routes")

    def __init__(self, lines: Lines, key: str) -> None:
        self._lines = lines
        self._routes = lines.routes
        self._key = key
        self._entries: deque[Entry] = deque()
        self._link: HostLink | None = None  # the host that has the line
        self._moving = False  # whether a task sends it again, which new entries wait for

    def add(self, entry: Entry) -> None:
        """Send an entry after all earlier ones.

        It is sent at once, unless the line is being moved.
        """
        self._entries.append(entry)
        if not self._moving and not self._send(entry):
            self._move()

    def drop(self, entry: Entry) -> None:
        """Drop an entry whose caller has left. It is not sent again."""
        entry.answered.cancel()
        if entry.call is None:
            self._remove(entry)

    def _send(self, entry: Entry) -> bool:
        """Send an entry to the host that has the line, or else to the host that the key belongs to.

        Returns False if no host can be reached.
        """
        others = any(one.call is not None for one in self._entries)
        found = self._routes.choose(
            self._key, stay_with=self._link.host if others and self._link is not None else None
        )
        if found is None:
            return False
        self._link, head = found
        lost, entry.lost = entry.lost, None
        if lost is not None and lost.incarnation is not None:
            head["lost"] = [lost.host, lost.incarnation, lost.silent]
        if entry.accepted:
            head["again"] = True
        call = entry.call = self._link.post(entry.kind, {**head, **entry.head}, entry.body)
        call.on_replied = lambda: self._settle(entry, call)
        if entry.on_sent is not None:
            entry.on_sent(call)
        return True

    def _settle(self, entry: Entry, call: Call) -> None:
        """Process the answer of a host, or its loss."""
        entry.call, replied = None, call.replied
        gone = replied.exception()
        if gone is None and (reply := replied.result()).code not in _SENT_ON:
            if not entry.answered.done():
                entry.answered.set_result(reply)
            self._remove(entry)
            return
        if entry.answered.done():
            self._remove(entry)
            return
        try:
            self._note(entry, call, gone, replied)
        except OffbookError as error:
            entry.fail(error)
            self._remove(entry)
            return
        self._move()

    def _note(
        self, entry: Entry, call: Call, gone: BaseException | None, replied: asyncio.Future[Reply]
    ) -> None:
        """Record why an entry must be sent on. Raise if it cannot be."""
        entry.moves += 1
        if isinstance(gone, HostGone):
            self._routes.lost(gone)
            entry.lost = gone
            if gone.incarnation is not None:
                if entry.check_lost is not None:
                    entry.check_lost(call, gone)
                entry.accepted = True
        elif gone is not None:
            msg = f"{entry.name} could not be sent to its host: {gone}"
            raise ClusterError(msg) from gone
        elif (reply := replied.result()).code == "moved":
            self._routes.learn(HostList.of(unpack(reply.body)))
        else:
            entry.accepted = True
        if entry.moves > _MOST_MOVES:
            msg = (
                f"{entry.name} was sent from host to host {_MOST_MOVES} times, and none accepted "
                "it. Call stats() to see the hosts, and try again."
            )
            raise ClusterError(msg)

    def _remove(self, entry: Entry) -> None:
        if entry in self._entries:
            self._entries.remove(entry)
        if self._entries:
            return
        self._link = None
        if not self._moving:
            self._lines.forget(self._key, self)

    # --- moves ---

    def _move(self) -> None:
        """Send the whole line again, as soon as no host has a part of it."""
        if self._routes.closed:
            for one in [one for one in self._entries if one.call is None]:
                one.fail(
                    ClusterError(
                        f"the client of cluster {self._routes.cluster!r} was closed before "
                        f"{one.name} was answered. Await the answers before you leave the client."
                    )
                )
                self._remove(one)
        elif not self._moving:
            self._moving = True
            self._routes.run_task(self._send_again(), f"the line of {self._key!r}")

    async def _send_again(self) -> None:
        """Wait until the host releases the whole line, then send it to the next host in order.

        Later entries wait for those that are still with the host, until these end there or pause at
        a safe point.
        """
        try:
            while any(one.call is None for one in self._entries):
                waits = [one.call.replied for one in self._entries if one.call is not None]
                if waits:
                    # `_settle` was called before this returns
                    await asyncio.wait(waits)
                    continue
                self._link = None
                moves = max(one.moves for one in self._entries)
                if moves > 1:
                    await asyncio.sleep(min(_PAUSE * 2 ** (moves - 2), _LONGEST_PAUSE))
                try:
                    await self._routes.wait_for_host(self._key)
                except ClusterError as error:
                    for one in [one for one in self._entries if one.call is None]:
                        one.fail(ClusterError(str(error)))
                        self._remove(one)
                    continue
                for one in list(self._entries):
                    if one.call is None and not self._send(one):
                        break
        finally:
            self._moving = False
            if not self._entries:
                self._lines.forget(self._key, self)


class Lines:
    """All lines of one client."""

    __slots__ = ("_by_key", "routes")

    def __init__(self, routes: Routes) -> None:
        self.routes = routes
        self._by_key: dict[str, Line] = {}

    def add(self, key: str, entry: Entry, *, in_order: bool = True) -> Line:
        """Send an entry under that key.

        Without `in_order`, it does not wait for earlier entries of the key, and later ones do not
        wait for it.
        """
        if not in_order:
            line = Line(self, key)
        elif (found := self._by_key.get(key)) is not None:
            line = found
        else:
            line = self._by_key[key] = Line(self, key)
        line.add(entry)
        return line

    def forget(self, key: str, line: Line) -> None:
        """Remove a line without entries."""
        if self._by_key.get(key) is line:
            del self._by_key[key]


async def ask(routes: Routes, key: str, entry: Entry, *, in_order: bool = True) -> Any:
    """Send an entry, and return the value of the answer. Raise the error that is the answer."""
    line = routes.lines.add(key, entry, in_order=in_order)
    try:
        reply = await entry.reply()
    except asyncio.CancelledError:
        line.drop(entry)
        raise
    value = unpack(reply.body, opaque=True)
    if reply.code == "error":
        raise value
    return value


def _retrieve(answered: asyncio.Future[Reply]) -> None:
    """Mark the error of an answer as retrieved: its caller may have left."""
    if not answered.cancelled():
        answered.exception()
