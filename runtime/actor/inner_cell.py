"""The inside of this library's own actors, which a service creates in large numbers for its runs.

Such an actor has no mailbox until one is needed. If it is spawned with a message and ends with the
handler of that message, it takes a shortcut through this one handler. All of them are spawned on
the loop. They keep every promise of an actor: code that needs the mailbox gets one, and its
messages are handled or answered.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from ..errors import forget_frames
from . import lifecycle
from .extras import table, watching
from .loop_cell import Handling, LoopCell
from .mailbox import Mailbox
from .messages import Ending, Failed, Stopped
from .phase import OPEN, RUNNING, STOPPED
from .steps import StepResult

if TYPE_CHECKING:
    from .envelope import Envelope

__all__ = ["InnerCell"]

_STOPPED: Final = Stopped()


class _Play(Handling):
    """The steps of the single handler of an actor that ends with it."""

    __slots__ = ()

    def send(self, value: Any = None) -> object:
        started = self._begin()
        try:
            item = self._coro.send(value)
        except StopIteration:
            cell, seconds = self._cell, self._seconds + perf_counter() - started
            if seconds > cell.system.monitor.notable or not cell.end_with_handler():
                self._held(perf_counter() - started)
                self._end(StepResult(None))
            raise StopIteration from None
        except BaseException as error:  # noqa: BLE001 -- becomes the outcome, for the supervisor
            self._held(perf_counter() - started)
            self._end(StepResult(error))
        self._held(perf_counter() - started)
        return item

    __next__ = send


class InnerCell(LoopCell):
    """One actor of this library, from its spawn to its end."""

    __slots__ = ("box",)

    # Set to None by the function that creates the cell: another constructor layer would take long.
    box: Mailbox | None

    @property
    def mailbox(self) -> Mailbox:  # type: ignore[override]  # an attribute of other cells
        """The mailbox, created on first use. From any thread.

        The mailbox of an ended actor accepts nothing.
        """
        box = self.box
        return self._make_box() if box is None else box

    def _make_box(self) -> Mailbox:
        lock = self.system.lock
        with lock:
            box = self.box
            if box is None:
                box = Mailbox(None, lock)
                if self.phase is STOPPED:
                    box.close()
                self.box = box
            return box

    def is_idle(self) -> bool:
        box = self.box
        return self.phase is OPEN and (box is None or box.is_idle)

    def queued(self) -> int:
        return 0 if self.box is None else len(self.box)

    def begin(self) -> None:
        """Open the actor. On the loop, where no message can arrive before this returns."""
        if self.actor_class.__actor_traits__.has_on_start:
            self.wake()
        else:
            self.phase = OPEN

    def begin_at_work(self, envelope: Envelope) -> None:
        """Start with the asynchronous handler of `envelope`, before any other message can arrive.

        When that handler has ended normally, the actor ends too.
        """
        system = self.system
        system.monitor.handled += 1
        self.handling = "on_receive"
        self.current = envelope
        self.until_childless = True
        self.phase = RUNNING
        system.running[self] = None
        steps = _Play(self.actor.on_receive(envelope.message), self, envelope, "on_receive")  # type: ignore[union-attr]  # it was created
        self.task = asyncio.Task(
            steps,
            loop=system.loop,
            name=self.actor_class.__actor_traits__.task_name,
            context=self.context,
        )

    def end_with_handler(self) -> bool:
        """End the actor, even within the handler's last step, without the usual path."""
        system = self.system
        with system.lock:
            if self.children or self.closing or self.escalated is not None:
                return False
            self.closing = True
        self.task = self.handling = self.current = None
        system.running.pop(self, None)
        if system.waiting_for_quiet:
            system.look_again()
        self.end(_STOPPED)
        return True

    def end(self, ending: Ending) -> None:
        """Finish like all actors, but take the lock only once."""
        if self.phase is STOPPED:
            return  # abandoned earlier, and only now its handler has ended
        if isinstance(ending, Failed):
            forget_frames(ending.error)  # they hold the instance; the log has them
        system, parent = self.system, self.parent
        with system.lock:
            self.phase = STOPPED
            self.closing = True
            box = self.box  # a mailbox created from now on is closed at once
            siblings = None if parent is None else parent.children
            if siblings is not None:
                siblings.pop(self, None)
        self.ending = ending
        actor, self.actor = self.actor, None
        left = [] if box is None else box.close()
        if system.extras:
            left += table.end(self)
        if self.current is not None:
            left.append(self.current)  # abandoned while it handled this message
        if parent is None:
            system.ended(self)
        elif not siblings:
            lifecycle.childless(parent)
        # Read after those calls took the lock: an actor that starts to watch from then on sees the
        # end.
        if self.watchers is not None or self.watching is not None:
            watching.end(self, ending)
        if left:
            self.resolve_left(left)
        told, self.ended, self.ref, self.args = self.ended, (), None, ()
        if actor is not None:
            actor.on_ended()  # type: ignore[attr-defined]  # an inner one
        for tell in told:
            tell(True)
