"""The tasks of one served agent: the actors of active tasks, and the stored data of all others.

A plain object, for use on the event loop of its system. It retains nothing of an inactive task, and
never reveals a task to another owner.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from ...actor.direct import stop_actor
from ...errors import ActorDeadError
from ...log import loggers
from ...stores.writes import Write
from ..conversion import event_from_wire, task_from_wire, task_to_wire
from ..fair_slots import FairSlots
from ..server.settings import ServerLimits
from .asks import Cancel, Continue, Follow, Say
from .checks import LONGEST_ID, TooManyMessages
from .keys import TaskKeys
from .recovery import RunFinder
from .subscription import tail
from .task_actor import TaskActor
from .task_log import StoredTask, TaskLog, Update, read_task

if TYPE_CHECKING:
    from ...actor.loop_cell import LoopCell
    from ...durability.store_access import StoreAccess
    from ...runner import Runner
    from ...system.system import ActorSystem
    from ..data.task import StreamEvent, Task
    from ..push.outbox import Outbox
    from .keys import Owner
    from .player import Player
    from .subscription import Subscription

__all__ = ["ServiceSettings", "TaskService"]

T = TypeVar("T")

_PLAIN_REPLY_SECONDS: Final = 0.1
"""Seconds to wait for an agent that may answer without a task, before its client is shown one."""
_UNARY_SECONDS: Final = 0.05
"""Seconds for which a task is not stored while its client waits for the result.

A shorter task is written once.
"""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The settings of a service."""

    new_task_id: Callable[[], str]
    new_context_id: Callable[[], str]
    player: Callable[[TaskService, TaskLog, Say | Continue], Player]
    runner: Runner | None = None
    may_reply: bool = False  # whether the agent may answer without a task
    consolidate: Callable[[Task, Sequence[StreamEvent], Exception | None], Task] | None = None
    limits: ServerLimits = ServerLimits()  # noqa: RUF009 -- frozen
    is_shared: bool = False  # whether several authenticated clients share it
    logger: logging.Logger = loggers.a2a


class _Door:
    """The reference to a task's actor."""

    __slots__ = ("cell", "sent")

    def __init__(self, cell: LoopCell) -> None:
        self.cell = cell
        self.sent = 0  # messages that the actor has not received yet


class TaskService:
    """All tasks of one agent."""

    def __init__(
        self, system: ActorSystem, access: StoreAccess, keys: TaskKeys, settings: ServiceSettings
    ) -> None:
        self.system = system
        self.access = access
        self.keys = keys
        self.logger = settings.logger
        self._settings = settings
        self._doors: dict[str, _Door] = {}
        self.keeps_pieces = not access.answers_at_once
        self.outbox: Outbox | None = None
        self.runs = RunFinder(settings.runner, settings.logger)
        limits = self.limits = settings.limits
        share = limits.at_once_for_a_client or (
            max(1, limits.at_once // 2) if settings.is_shared else limits.at_once
        )
        self.slots = FairSlots(limits.at_once, share)
        self.is_shared = settings.is_shared
        self._accepted: dict[Owner, int] = {}  # messages in progress or waiting
        self.ended = 0  # turns that have ended since the last eviction

    def now(self) -> float:
        return self.system.clock.time()

    @property
    def at_work(self) -> int:
        """The number of tasks that have an actor."""
        return len(self._doors)

    def actors(self) -> list[TaskActor]:
        """Return the actors of active tasks."""
        return [
            door.cell.actor
            for door in self._doors.values()
            if isinstance(door.cell.actor, TaskActor)
        ]

    def is_at_work(self, task_id: str) -> bool:
        return task_id in self._doors

    def run_task(self, work: Coroutine[Any, None, T], name: str) -> asyncio.Task[T]:
        return self.system.run_task(work, name, contextvars.copy_context())

    def seconds_until_shown(self, *, is_awaited: bool) -> float:
        if not is_awaited:
            return _UNARY_SECONDS
        return _PLAIN_REPLY_SECONDS if self._settings.may_reply else 0.0

    def player_for(self, log: TaskLog, ask: Say | Continue) -> Player:
        return self._settings.player(self, log, ask)

    # --- requests ---

    async def say(self, ask: Say) -> None:
        """Process a message: it starts a task, or is for the one that it names."""
        accepted = self._accepted.get(ask.owner, 0)
        if accepted >= self.limits.accepted:
            raise TooManyMessages
        self._accepted[ask.owner], ask.is_counted = accepted + 1, True
        try:
            await self._say(ask)
        except BaseException:
            self.worked_on(ask)
            raise

    def worked_on(self, ask: Say | Continue) -> None:
        """Note that a message is no longer in progress or waiting."""
        if isinstance(ask, Say) and ask.is_counted:
            ask.is_counted = False
            left = self._accepted.pop(ask.owner) - 1
            if left:
                self._accepted[ask.owner] = left

    async def _say(self, ask: Say) -> None:
        message = ask.message
        if message.task_id:
            is_working = self._is_working(message.task_id)
            log = await self._check_task(message, ask.owner)
            ask.question = None if is_working else log.question
            if ask.shows is not None:
                ask.shows.task_id = message.task_id
            self.tell(message.task_id, ask)
            return
        # A client's own: each owner has separate contexts
        context_id = message.context_id or self._settings.new_context_id()
        task = pb.Task(id=self._settings.new_task_id(), context_id=context_id)
        if ask.shows is not None:
            ask.shows.task_id = task.id
        self._open(task.id, TaskLog(self.keys, task, StoredTask(ask.owner)))
        self.tell(task.id, ask)

    def _is_working(self, task_id: str) -> bool:
        """Return whether the task is running here at this moment."""
        door = self._doors.get(task_id)
        return (
            door is not None
            and isinstance(door.cell.actor, TaskActor)
            and door.cell.actor.is_working
        )

    async def _check_task(self, message: pb.Message, owner: Owner) -> TaskLog:
        log = await self.find(message.task_id, owner)
        if message.context_id and message.context_id != log.task.context_id:
            msg = (
                f"message.contextId: task {message.task_id} belongs to another context. Omit "
                "contextId, or send the task's own."
            )
            raise InvalidParamsError(msg)
        return log

    @asynccontextmanager
    async def following(
        self, log: TaskLog, shows: Subscription, extensions: frozenset[str]
    ) -> AsyncIterator[None]:
        """Show the current state of a task, and its changes.

        They come from its actor or, if another process runs it, from its journal.
        """
        task_id = log.task.id
        shows.task_id = task_id
        if (
            task_id in self._doors
            or log.is_at_rest
            or await self.access.holder(self.keys.work(task_id)) is None
        ):
            self.tell(task_id, Follow(shows, extensions))
            yield
            return
        tailing = self.run_task(tail(self, log, shows), f"task {task_id} is followed")
        try:
            yield
        finally:
            tailing.cancel()
            await asyncio.wait((tailing,))

    def live(self, log: TaskLog) -> pb.Task:
        """Return the current state of a task that is running here.

        Chunks of artifacts are stored a little later.
        """
        door = self._doors.get(log.task.id)
        actor = None if door is None else door.cell.actor
        current = actor.current if isinstance(actor, TaskActor) else None
        if current is not None and current.number >= log.number and current.is_stored:
            return current.snapshot()
        return log.task

    def unfollow(self, task_id: str, shows: Subscription) -> None:
        """Remove a client that has disconnected; the task continues."""
        door = self._doors.get(task_id)
        if door is not None and isinstance(door.cell.actor, TaskActor):
            door.cell.actor.closed(shows)

    async def cancel(self, task_id: str) -> pb.Task:
        cancel = Cancel(self.system.loop.create_future())
        self.tell(task_id, cancel)
        return await cancel.answer

    def tell(self, task_id: str, message: object) -> None:
        """Send a message to the task's actor, which is made if necessary."""
        door = self._doors.get(task_id) or self._open(task_id, None)
        door.sent += 1
        try:
            door.cell.own_ref().tell(message)
        except ActorDeadError:  # it has failed, or the system stops: then the retry fails as well
            door = self._open(task_id, None)
            door.sent += 1
            door.cell.own_ref().tell(message)

    def _open(self, task_id: str, log: TaskLog | None) -> _Door:
        door = self._doors[task_id] = _Door(
            self.system.spawn_own(TaskActor, (self, task_id, log), None, None)
        )
        return door

    def sent(self, task_id: str) -> None:
        """Count a message that the actor has sent to itself."""
        door = self._doors.get(task_id)
        if door is not None:
            door.sent += 1

    def taken(self, task_id: str) -> None:
        """Count a message that the actor has received."""
        door = self._doors.get(task_id)
        if door is not None:
            door.sent -= 1

    def leave(self, task_id: str) -> None:
        """Stop an idle actor, unless a message to it is pending."""
        door = self._doors.get(task_id)
        if door is not None and door.sent <= 0:
            del self._doors[task_id]
            stop_actor(door.cell)

    # --- the store ---

    async def load(self, task_id: str) -> TaskLog | None:
        """Load the stored task."""
        data = await self.access.get(self.keys.task(task_id))
        return None if data is None else read_task(self.keys, data)

    async def find(self, task_id: str, owner: Owner) -> TaskLog:
        """Return the task of that owner. Tasks of other owners are not found."""
        log = await self.load(task_id) if task_id and len(task_id) <= LONGEST_ID else None
        if log is None or log.kept.owner != owner:
            raise TaskNotFoundError
        return log

    def also_writes(self, log: TaskLog, begun_by: Say | Continue | None) -> list[Write]:
        """Return the additional writes of the step that writes a task's changes."""
        return [] if self.outbox is None else self.outbox.writes(log, begun_by)

    def stored(self, log: TaskLog) -> None:
        """Start the delivery of stored changes to webhooks."""
        if self.outbox is not None:
            self.outbox.look(log.task.id)

    # --- consolidating ---

    @property
    def consolidate(
        self,
    ) -> Callable[[TaskLog, Sequence[Update], Exception | None], Coroutine[Any, None, None]] | None:
        return None if self._settings.consolidate is None else self._consolidate

    async def _consolidate(
        self, log: TaskLog, updates: Sequence[Update], error: Exception | None
    ) -> None:
        """Let the serving program's function determine the task after the events of this turn."""
        assert self._settings.consolidate is not None
        events = [event for event in map(event_from_wire, updates) if event is not None]
        made = self._settings.consolidate(task_from_wire(log.snapshot()), events, error)
        log.replace(task_to_wire(made))
