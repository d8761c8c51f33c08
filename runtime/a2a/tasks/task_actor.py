"""The actor of one task: its mailbox is the lock, and the queue of the task's messages.

It exists while there is something to do, and stops when the task is inactive and no client follows
it: then the task is only in the store. Two turns of a task never run at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import (
    InternalError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from ...actor.actor import Actor
from ...errors import ActorDeadError, SystemDraining, UsageError
from .asks import Cancel, Continue, End, Follow, Say, TurnOver
from .turn import CANCEL_SECONDS, Turn

if TYPE_CHECKING:
    from .keys import Owner
    from .player import Player
    from .service import TaskService
    from .subscription import Subscription
    from .task_log import TaskLog

__all__ = ["TaskActor"]

_MOST_WAITING: Final = 100
"""The number of messages that may wait for one task."""


class TaskActor(Actor):
    """One active task."""

    __slots__ = (
        "_cancels",
        "_looked_on",
        "_place",
        "_playing",
        "_service",
        "_task_id",
        "_turn",
        "_waiting",
        "log",
    )

    def __init__(self, service: TaskService, task_id: str, log: TaskLog | None) -> None:
        super().__init__()
        self._service = service
        self._task_id = task_id
        self.log = log  # None: it must be read first
        self._waiting: deque[Say | Continue] = deque()
        self._looked_on: dict[Subscription, frozenset[str]] = {}
        self._turn: Turn | None = None
        self._playing: asyncio.Task[End] | None = None
        self._place: asyncio.Future[None] | None = None  # the slot that the turn waits for
        self._cancels: list[Cancel] = []

    def on_receive(self, message: object) -> Coroutine[Any, Any, None] | None:
        if self.log is None:
            return self._read_first(message)
        self._handle(message)
        return None

    async def _read_first(self, message: object) -> None:
        try:
            self.log = await self._service.load(self._task_id)
        except BaseException:
            self._refuse(message, InternalError())
            self._service.taken(self._task_id)
            self._rest()
            raise
        self._handle(message)

    def _handle(self, message: object) -> None:
        try:
            if isinstance(message, TurnOver):
                self._turn_over()
            else:
                self._asked(message)
        finally:
            self._service.taken(self._task_id)
            self._rest()

    def _asked(self, message: object) -> None:
        if self.log is None:
            self._refuse(message, TaskNotFoundError())
            return
        match message:
            case Say() | Continue():
                if len(self._waiting) >= _MOST_WAITING:
                    self._refuse(
                        message,
                        UnsupportedOperationError(
                            "Too many messages already wait for this task. Send this one again "
                            "later."
                        ),
                    )
                    return
                self._waiting.append(message)
                self._play_next()
            case Follow():
                self._follow(message, self.current or self.log)
            case Cancel():
                self._cancel(message, self.current or self.log)

    @property
    def current(self) -> TaskLog | None:
        """The current task: that of the running turn, which has reloaded it, if there is one."""
        return self.log if self._turn is None else self._turn.log

    @property
    def is_working(self) -> bool:
        return self._turn is not None

    # --- turns ---

    def _play_next(self) -> None:
        if self._turn is not None or not self._waiting:
            return
        ask, log, service = self._waiting.popleft(), self.log, self._service
        assert log is not None
        turn = self._turn = Turn(service, log, ask, self._looked_on)
        player = service.player_for(log, ask)
        self._playing = service.run_task(
            self._play(turn, player, log.kept.owner), f"task {self._task_id}"
        )
        self._playing.add_done_callback(self._played)

    async def _play(self, turn: Turn, player: Player, owner: Owner) -> End:
        """Run the turn, when its owner has a slot for it.

        A cancelled turn needs none: it only ends.
        """
        slots = self._service.slots
        has_place = slots.take_now(owner)
        if not has_place:
            place = self._place = slots.wait(owner)
            try:
                await place
            except asyncio.CancelledError:
                slots.give_up(owner, place)
                raise
            has_place, self._place = self._place is not None, None
        try:
            return await turn.play(player)
        finally:
            if has_place:
                slots.leave(owner)

    def _played(self, playing: asyncio.Task[End]) -> None:
        if playing.cancelled():
            self._turn_left("the server is shutting down. Subscribe again later")
        elif (error := playing.exception()) is not None:
            self._service.logger.error(
                "The turn of task %s has failed.", self._task_id, exc_info=error
            )
            self._turn_left(None)
        # Where the system stops, there is nothing left to do.
        with contextlib.suppress(ActorDeadError, SystemDraining, UsageError):
            self.actor_ref.tell(TurnOver())
            self._service.sent(self._task_id)

    def _turn_left(self, why: str | None) -> None:
        """Report to waiting clients that the turn has no end."""
        turn = self._turn
        if turn is not None and isinstance(turn.ask, Say):
            turn.ask.refuse(InternalError(why))
        for shows in list(self._looked_on):
            shows.end(InternalError(why))

    def _turn_over(self) -> None:
        turn, self._turn, self._playing = self._turn, None, None
        if turn is None:
            return
        self.log = turn.log
        self._service.worked_on(turn.ask)
        if not self.log.is_stored:  # it was not a task, or could not be stored
            self._refuse_all(TaskNotFoundError())
        cancels, self._cancels = self._cancels, []
        for cancel in cancels:
            if not cancel.answer.done():
                if self.log.state == pb.TASK_STATE_CANCELED:
                    cancel.answer.set_result(self.log.snapshot())
                else:
                    cancel.answer.set_exception(TaskNotCancelableError())
        self._play_next()

    # --- other messages ---

    def _follow(self, follow: Follow, log: TaskLog) -> None:
        if log.is_terminal:
            follow.shows.end(
                UnsupportedOperationError(
                    f"Task {self._task_id} has ended, so it has no more events. Get the task for "
                    "its result."
                )
            )
            return
        follow.shows.put(log.snapshot())
        self._looked_on[follow.shows] = follow.extensions

    def _cancel(self, cancel: Cancel, log: TaskLog) -> None:
        if log.is_terminal:
            cancel.answer.set_exception(TaskNotCancelableError())
            return
        self._cancels.append(cancel)
        if self._turn is None:
            self._waiting.appendleft(Continue(None))
            self._play_next()
        turn = self._turn
        if turn is not None and not turn.is_canceled:
            turn.cancel()
            place, self._place = self._place, None
            if place is not None and not place.done():
                self._service.slots.give_up(log.kept.owner, place)
                place.set_result(None)
            asyncio.get_running_loop().call_later(CANCEL_SECONDS, self._too_late, turn)

    def _too_late(self, turn: Turn) -> None:
        """Cut off the agent, which has not stopped in time."""
        if self._turn is turn and self._playing is not None:
            self._service.logger.error(
                "Task %s was cancelled, but its agent has not stopped within %g s.",
                self._task_id,
                CANCEL_SECONDS,
            )
            turn.give_up()

    def waiting(self) -> list[int]:
        """Return the number of unread updates for each follower."""
        return [shows.waiting for shows in self._looked_on]

    def closed(self, shows: Subscription) -> None:
        """Remove a client that has disconnected."""
        self._looked_on.pop(shows, None)
        self._rest()

    # --- the end ---

    def _rest(self) -> None:
        """Stop the actor if there is nothing to do, and no client follows."""
        if self._turn is None and not self._waiting:
            for shows in [shows for shows in self._looked_on if not shows.is_open]:
                del self._looked_on[shows]
            if not self._looked_on:
                self._service.leave(self._task_id)

    def _refuse_all(self, error: Exception) -> None:
        while self._waiting:
            self._refuse(self._waiting.popleft(), error)
        for shows in list(self._looked_on):
            shows.end(error)

    def _refuse(self, message: object, error: Exception) -> None:
        match message:
            case Say():
                self._service.worked_on(message)
                message.refuse(error)
            case Follow():
                message.shows.end(error)
            case Cancel():
                if not message.answer.done():
                    message.answer.set_exception(error)

    def on_stop(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
        self._refuse_all(InternalError("the server is shutting down. Send the request again later"))
        for cancel in self._cancels:
            if not cancel.answer.done():
                cancel.answer.set_exception(
                    InternalError("the server is shutting down. Send the request again later")
                )
