"""The tasks of one served agent: which of them have an actor, and what the store has of the others.

Owns: the actors of tasks by their ids, and the way to each. A plain object of the loop on which its system runs. It must never keep anything of a task that is
at rest, nor tell an owner of what belongs to another one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from ...actor.direct import stop_actor
from ...codec.packing import pack
from ...errors import ActorDeadError, WriteRefused
from ...stores.writes import Expect, Put, Write
from ..conversion import event_from_wire, task_from_wire, task_to_wire
from .asks import Cancel, Continue, Follow, Say
from .checks import LONGEST_ID
from .keys import TaskKeys
from .recovery import RunFinder
from .tailing import tail
from .task_actor import TaskActor
from .task_log import StoredTask, TaskLog, Update, read_task

if TYPE_CHECKING:
    from ...actor.loop_cell import LoopCell
    from ...durability.store_access import StoreAccess
    from ...runner import Runner
    from ...system.system import ActorSystem
    from ..data.stream_events import StreamEvent
    from ..data.task import Task
    from ..push.outbox import Outbox
    from .owner import Owner
    from .player import Player
    from .subscription import Subscription

__all__ = ["ServiceSettings", "TaskService"]

T = TypeVar("T")

_PLAIN_REPLY_SECONDS: Final = 0.1
"""For how long an agent that may answer without a task is waited for, before its client is shown one."""
_UNARY_SECONDS: Final = 0.05
"""For how long a task is in no store whose client waits for its rest: one that takes less is written once."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What is said of a service when it is made."""

    new_task_id: Callable[[], str]
    new_context_id: Callable[[], str]
    player: Callable[[TaskService, TaskLog, Say | Continue], Player]
    runner: Runner | None = None
    may_reply: bool = False  # whether the agent may answer without a task
    consolidate: Callable[[Task, Sequence[StreamEvent], Exception | None], Task] | None = None


class _Door:
    """The way to a task's actor."""

    __slots__ = ("cell", "sent")

    def __init__(self, cell: LoopCell) -> None:
        self.cell = cell
        self.sent = 0  # messages that it has not taken up yet


class TaskService:
    """All tasks of one agent."""

    def __init__(self, system: ActorSystem, access: StoreAccess, keys: TaskKeys, settings: ServiceSettings) -> None:
        self.system = system
        self.access = access
        self.keys = keys
        self._settings = settings
        self._doors: dict[str, _Door] = {}
        self.keeps_pieces = not access.answers_at_once
        self.outbox: Outbox | None = None
        self.runs = RunFinder(settings.runner)
        self.ended = 0  # turns that have ended since it was last looked at

    def now(self) -> float:
        return self.system.clock.time()

    @property
    def at_work(self) -> int:
        """How many tasks have an actor."""
        return len(self._doors)

    def actors(self) -> list[TaskActor]:
        """The actors of tasks that something is done with."""
        return [door.cell.actor for door in self._doors.values() if isinstance(door.cell.actor, TaskActor)]

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

    # --- asking ---

    async def say(self, ask: Say) -> None:
        """Have a message worked on: it begins a task, or is for the one that it names."""
        message = ask.message
        if message.task_id:
            await self._check_task(message, ask.owner)
            if ask.shows is not None:
                ask.shows.task_id = message.task_id
            self.tell(message.task_id, ask)
            return
        context_id = message.context_id
        if context_id:
            await self._check_context(context_id, ask.owner)
        else:
            context_id = self._settings.new_context_id()
        task = pb.Task(id=self._settings.new_task_id(), context_id=context_id)
        if ask.shows is not None:
            ask.shows.task_id = task.id
        self._open(task.id, TaskLog(self.keys, task, StoredTask(ask.owner)))
        self.tell(task.id, ask)

    async def _check_task(self, message: pb.Message, owner: Owner) -> None:
        log = await self.find(message.task_id, owner)
        if message.context_id and message.context_id != log.task.context_id:
            msg = f"message.contextId: task {message.task_id} belongs to another context."
            raise InvalidParamsError(msg)

    async def _check_context(self, context_id: str, owner: Owner) -> None:
        """A context belongs to the owner that has named it first."""
        key, own = self.keys.context(context_id), pack([owner.tenant, owner.subject])
        found = await self.access.get(key)
        if found is None:
            try:
                await self.access.commit(None, [Expect(key), Put(key, own)])
            except WriteRefused:  # another one was first, at this very moment
                found = await self.access.get(key)
            else:
                return
        if found != own:
            raise TaskNotFoundError("Context not found")

    @asynccontextmanager
    async def following(self, log: TaskLog, shows: Subscription, extensions: frozenset[str]) -> AsyncIterator[None]:
        """Show a task as it is, and what follows: by its actor, or, where another process works on it, from its journal."""
        task_id = log.task.id
        shows.task_id = task_id
        if task_id in self._doors or log.is_at_rest or await self.access.holder(self.keys.work(task_id)) is None:
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
        """The task as it is at this moment, where it is worked on here: pieces of artifacts are in the store a little later."""
        door = self._doors.get(log.task.id)
        actor = None if door is None else door.cell.actor
        current = actor.current if isinstance(actor, TaskActor) else None
        if current is not None and current.number >= log.number and current.is_stored:
            return current.snapshot()
        return log.task

    def unfollow(self, task_id: str, shows: Subscription) -> None:
        """The client has gone; the task goes on."""
        door = self._doors.get(task_id)
        if door is not None and isinstance(door.cell.actor, TaskActor):
            door.cell.actor.closed(shows)

    async def cancel(self, task_id: str) -> pb.Task:
        cancel = Cancel(self.system.loop.create_future())
        self.tell(task_id, cancel)
        return await cancel.answer

    def tell(self, task_id: str, message: object) -> None:
        """Send something to the task's actor; it is made if there is none."""
        door = self._doors.get(task_id) or self._open(task_id, None)
        door.sent += 1
        try:
            door.cell.own_ref().tell(message)
        except ActorDeadError:  # it has failed, or the system stops: then this fails as well
            door = self._open(task_id, None)
            door.sent += 1
            door.cell.own_ref().tell(message)

    def _open(self, task_id: str, log: TaskLog | None) -> _Door:
        door = self._doors[task_id] = _Door(self.system.spawn_own(TaskActor, (self, task_id, log), None, None))
        return door

    def sent(self, task_id: str) -> None:
        """The actor has sent itself a message."""
        door = self._doors.get(task_id)
        if door is not None:
            door.sent += 1

    def taken(self, task_id: str) -> None:
        """The actor has taken a message up."""
        door = self._doors.get(task_id)
        if door is not None:
            door.sent -= 1

    def leave(self, task_id: str) -> None:
        """The actor has nothing to do. It is gone, unless something is on its way to it."""
        door = self._doors.get(task_id)
        if door is not None and door.sent <= 0:
            del self._doors[task_id]
            stop_actor(door.cell)

    # --- the store ---

    async def load(self, task_id: str) -> TaskLog | None:
        """The task, as the store has it."""
        data = await self.access.get(self.keys.task(task_id))
        return None if data is None else read_task(self.keys, data)

    async def find(self, task_id: str, owner: Owner) -> TaskLog:
        """The task of that owner. Any other one is not found."""
        log = await self.load(task_id) if task_id and len(task_id) <= LONGEST_ID else None
        if log is None or log.kept.owner != owner:
            raise TaskNotFoundError
        return log

    def also_writes(self, log: TaskLog, begun_by: Say | Continue | None) -> list[Write]:
        """What is written in one step with a task's changes."""
        found: list[Write] = []
        if isinstance(begun_by, Say):
            key, owner = self.keys.context(log.task.context_id), log.kept.owner
            if not begun_by.message.context_id:
                found += [Expect(key), Put(key, pack([owner.tenant, owner.subject]))]
        if self.outbox is not None:
            found += self.outbox.writes(log, begun_by)
        return found

    def stored(self, log: TaskLog) -> None:
        """The changes of a task are in the store."""
        if self.outbox is not None:
            self.outbox.look(log.task.id)

    # --- consolidating ---

    @property
    def consolidate(self) -> Callable[[TaskLog, Sequence[Update], Exception | None], Coroutine[Any, None, None]] | None:
        return None if self._settings.consolidate is None else self._consolidate

    async def _consolidate(self, log: TaskLog, updates: Sequence[Update], error: Exception | None) -> None:
        """Let who serves the agent say what the task is, after what has happened in this turn."""
        assert self._settings.consolidate is not None
        events = [event for event in map(event_from_wire, updates) if event is not None]
        made = self._settings.consolidate(task_from_wire(log.task), events, error)
        log.replace(task_to_wire(made))
