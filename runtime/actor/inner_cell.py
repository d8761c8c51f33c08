"""The inside of an actor of this package, of which a service has very many for a short time: those of its runs.

Owns: what such an actor does without until it is asked for, which is its mailbox; and the short way through its one handler, of one that is spawned with a
message and ends with the handler of that. All of it is spawned on the loop. What an actor promises holds for these, too: code that looks for the mailbox finds
one, and what is put in it is handled or answered.
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
    """The steps of the one handler of an actor that ends with it."""

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
        except BaseException as error:  # noqa: BLE001 -- it becomes the outcome, for the supervisor
            self._held(perf_counter() - started)
            self._end(StepResult(error))
        self._held(perf_counter() - started)
        return item

    __next__ = send


class InnerCell(LoopCell):
    """One actor of this package, from its spawn to its end."""

    __slots__ = ("box",)

    box: Mailbox | None  # set to None by the function that makes the cell: a constructor around that of all cells would take long

    @property
    def mailbox(self) -> Mailbox:  # type: ignore[override]  # an attribute of others
        """From any thread. It is made when the first one looks for it; that of an actor that has ended takes nothing."""
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
        """On the loop, where nothing can be put before this has returned."""
        if self.actor_class.__actor_traits__.has_on_start:
            self.wake()
        else:
            self.phase = OPEN

    def begin_at_work(self, envelope: Envelope) -> None:
        """Begin with the handler of that message, which is asynchronous, before any other message can come. When it has ended by itself, so has the actor."""
        system = self.system
        system.monitor.handled += 1
        self.handling = "on_receive"
        self.current = envelope
        self.until_childless = True
        self.phase = RUNNING
        system.running[self] = None
        steps = _Play(self.actor.on_receive(envelope.message), self, envelope, "on_receive")  # type: ignore[union-attr]  # it was made
        self.task = asyncio.Task(steps, loop=system.loop, name=self.actor_class.__actor_traits__.task_name, context=self.context)

    def end_with_handler(self) -> bool:
        """Also in the last step of the handler itself, without the way that all handlers end by."""
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
        """As of all actors, with one look under the lock."""
        if self.phase is STOPPED:
            return  # it was given up earlier, and only now its handler has ended
        if isinstance(ending, Failed):
            forget_frames(ending.error)  # they hold the instance; the log has them
        system, parent = self.system, self.parent
        with system.lock:
            self.phase = STOPPED
            self.closing = True
            box = self.box  # who makes one from now on finds that the actor has ended
            siblings = None if parent is None else parent.children
            if siblings is not None:
                siblings.pop(self, None)
        self.ending = ending
        actor, self.actor = self.actor, None
        left = [] if box is None else box.close()
        if system.extras:
            left += table.end(self)
        if self.current is not None:
            left.append(self.current)  # it was given up while it handled this one
        if parent is None:
            system.ended(self)
        elif not siblings:
            lifecycle.childless(parent)
        # Read behind the lock that these take: who begins to watch from then on finds that it has ended.
        if self.watchers is not None or self.watching is not None:
            watching.end(self, ending)
        if left:
            self.resolve_left(left)
        told, self.ended, self.ref, self.args = self.ended, (), None, ()
        if actor is not None:
            actor.on_ended()  # type: ignore[attr-defined]  # an inner one
        for tell in told:
            tell(True)
