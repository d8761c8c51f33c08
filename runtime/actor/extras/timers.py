"""Delayed messages from an actor to itself: once, or periodically.

A timer's message comes through the mailbox like any other, and waits there at most once: a busy
actor finds one message, not one for each interval. A cancelled timer sends nothing. A timer ends
with the instance that set it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import ActorDeadError, UsageError
from ..envelope import Notice
from ..mailbox import MailboxClosed

if TYPE_CHECKING:
    from ...clock import Timer
    from ..cell import Cell

__all__ = ["Tick", "TimerHandle", "Timers"]


class Tick(Notice):
    """The message of a timer, in the mailbox.

    It needs no room there, because each timer has at most one.
    """

    __slots__ = ("_handle",)

    def __init__(self, message: object, handle: TimerHandle) -> None:
        super().__init__(message)
        self._handle = handle

    def is_due(self) -> bool:
        """Return True if the message must be handled: its timer may have been cancelled."""
        return self._handle.taken()


class TimerHandle:
    """A timer that was set."""

    __slots__ = ("_due", "_every", "_is_active", "_message", "_timer", "_timers", "_waits")

    def __init__(self, timers: Timers, message: object, every: float | None) -> None:
        self._timers = timers
        self._message = message
        self._every = every
        self._due = 0.0
        self._timer: Timer | None = None  # written on the loop
        self._is_active = True
        self._waits = False  # True while its message is in the mailbox

    @property
    def is_active(self) -> bool:
        """True if the timer will send another message."""
        return self._is_active

    def cancel(self) -> None:
        """Send nothing more; a message that waits in the mailbox is not handled.

        Does nothing if the timer is already inactive.
        """
        if self._is_active:
            self._is_active = False
            self._timers.forget(self)

    def taken(self) -> bool:
        """Note that its message has left the mailbox. Returns True if it must be handled."""
        self._waits = False
        if self._is_active and self._every is None:
            self.cancel()
            return True
        return self._is_active

    # --- on the loop ---

    def arm(self, seconds: float) -> None:
        if self._is_active:
            clock = self._timers.cell.system.clock
            self._due = clock.monotonic() + seconds
            self._timer = clock.call_later(seconds, self._fire)

    def disarm(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _fire(self) -> None:
        self._timer = None
        if not self._is_active:
            return
        cell = self._timers.cell
        if self._every is not None:
            # The schedule stays fixed: a late message does not delay the next one, and missed ones
            # are skipped.
            clock = cell.system.clock
            now = clock.monotonic()
            self._due += self._every * max(1, math.ceil((now - self._due) / self._every))
            self._timer = clock.call_later(max(0.0, self._due - now), self._fire)
        if not self._waits:
            self._waits = True
            try:
                cell.post(Tick(self._message, self))
            except MailboxClosed:
                self.cancel()  # the actor is about to stop


class Timers:
    """The timers of an actor: `self.timers`. They end with it, and when it is restarted."""

    __slots__ = ("_handles", "cell")

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self._handles: dict[TimerHandle, None] = {}

    def after(self, seconds: float, message: object) -> TimerHandle:
        """Send `message` to this actor in `seconds` seconds."""
        if not (isinstance(seconds, int | float) and 0 <= seconds < math.inf):
            msg = f"timers.after: seconds must be a number of seconds, 0 or more, got {seconds!r}."
            raise UsageError(msg, actor=self.cell.path)
        return self._set(seconds, message, None)

    def every(self, seconds: float, message: object) -> TimerHandle:
        """Send `message` to this actor every `seconds` seconds, the first one after `seconds`.

        While one waits in the mailbox, no other is added.
        """
        if not (isinstance(seconds, int | float) and 0 < seconds < math.inf):
            msg = f"timers.every: seconds must be a number of seconds above 0, got {seconds!r}."
            raise UsageError(msg, actor=self.cell.path)
        return self._set(seconds, message, seconds)

    def _set(self, seconds: float, message: object, every: float | None) -> TimerHandle:
        cell = self.cell
        handle = TimerHandle(self, message, every)
        with cell.system.lock:
            if cell.ending is not None:
                msg = (
                    f"{cell.path} has ended, so it cannot set a timer. Set timers in a handler "
                    "or in on_start()."
                )
                raise ActorDeadError(msg, actor=cell.path)
            self._handles[handle] = None
        cell.system.on_loop(handle.arm, seconds)
        return handle

    def forget(self, handle: TimerHandle) -> None:
        """Remove a cancelled timer. From any thread."""
        self._handles.pop(handle, None)
        self.cell.system.on_loop(handle.disarm)

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for handle in tuple(self._handles):
            handle.cancel()
