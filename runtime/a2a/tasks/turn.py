"""One turn of a task: from a message to the task's rest.

Owns: the order in which a turn's changes are stored and shown: a change of the state is in the store before a client sees it. A task of which nothing was shown
is in no store. What plays is a `Player`; it must never touch the task but through the turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, InternalError, UnsupportedOperationError

from ...data.chat import new_id
from ...durability.lease import Lease
from ...durability.leases import leases_of
from ...errors import RunLost
from ...log import loggers
from ...stores.writes import Put, Remove, Write
from .asks import Continue, End, Say
from .states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.struct_pb2 import Struct

    from .player import Player
    from .service import TaskService
    from .subscription import Shown, Subscription
    from .task_log import TaskLog, Update

__all__ = ["CANCEL_SECONDS", "FAILED", "RESTARTED", "Turn"]

FAILED: Final = "The agent has failed."
RESTARTED: Final = "server restarted"
CANCEL_SECONDS: Final = 10.0
"""How long a cancelled task may take to stop, before it counts as canceled all the same."""


class Turn:
    """One turn. A plain object of the loop, which belongs to the actor of its task."""

    __slots__ = (
        "_exposing",
        "_held",
        "_is_cut_off",
        "_lease",
        "_lock",
        "_looked_on",
        "_pieces_at",
        "_playing",
        "_timer",
        "ask",
        "events",
        "is_canceled",
        "is_exposed",
        "log",
        "player",
        "service",
    )

    def __init__(self, service: TaskService, log: TaskLog, ask: Say | Continue, looked_on: dict[Subscription, frozenset[str]]) -> None:
        self.service = service
        self.log = log
        self.ask = ask
        self.events: list[Update] = []  # of this turn, for who consolidates them
        self.is_canceled = False
        self.is_exposed = log.is_stored  # whether clients may know of the task
        self.player: Player | None = None
        self._looked_on = looked_on  # who looks on at the task, and which extensions each has asked for
        self._held: list[Update] = []  # what is shown when the task is
        self._lease: Lease | None = None
        self._lock = asyncio.Lock()  # one write at a time
        self._timer: asyncio.TimerHandle | None = None
        self._exposing: asyncio.Task[None] | None = None
        self._pieces_at = 0.0
        self._playing: asyncio.Task[Any] | None = None
        self._is_cut_off = False

    @property
    def message(self) -> pb.Message:
        """The client's message that is worked on: for a turn that goes on, the last one."""
        if isinstance(self.ask, Say):
            return self.ask.message
        return next((said for said in reversed(self.log.task.history) if said.role == pb.ROLE_USER), pb.Message())

    # --- from begin to end ---

    async def play(self, player: Player) -> End:
        """Work on the task until it is at rest. Whatever goes wrong, the client hears of it, and of nothing that is not its business."""
        self.player = player
        try:
            await self._begin()
        except A2AError as refused:
            await self._leave(Remove(self._work_key))
            self._refuse(refused)
            return End()
        except Exception:  # noqa: BLE001 -- whatever a store raises, the client hears that it has failed
            loggers.a2a.exception("Task %s could not be begun.", self.log.task.id)
            self._refuse(InternalError())
            return End()
        if self.is_canceled:
            return await self._finish(End(None if self.log.is_terminal else pb.TASK_STATE_CANCELED))
        if isinstance(self.ask, Continue):
            if self.log.is_at_rest:
                return await self._finish(End())
            self.ask.run = await self.service.runs.find(self.service, self.log.kept.run_id)
            if self.ask.run is None:
                return await self._finish(End(pb.TASK_STATE_FAILED, self.said(RESTARTED)))
        return await self._finish(await self._played(player))

    async def _played(self, player: Player) -> End:
        """Let it be played. Who is cancelled and does not stop is cut off."""
        self._playing = playing = asyncio.current_task()
        assert playing is not None
        try:
            return await player.play(self)
        except asyncio.CancelledError:
            if self._is_cut_off and playing.uncancel() == 0:
                return End(pb.TASK_STATE_CANCELED)
            await self._stop_timer()
            raise
        except RunLost:
            await self._stop_timer()
            raise
        except Exception as error:  # noqa: BLE001 -- whatever an agent raises, its task has failed
            return End(pb.TASK_STATE_FAILED, error=error)
        finally:
            self._playing = None

    def give_up(self) -> None:
        """It was cancelled, and has not ended in time."""
        if self._playing is not None:
            self._is_cut_off = True
            self._playing.cancel()

    @property
    def _work_key(self) -> str:
        return self.service.keys.work(self.log.task.id)

    async def _begin(self) -> None:
        log, service, ask = self.log, self.service, self.ask
        if log.is_stored:
            await self._take_turn()
            log = self.log
        if isinstance(ask, Say):
            if log.is_terminal:
                msg = f"Task {log.task.id} has ended: {pb.TaskState.Name(log.task.status.state)}. Send a message without a taskId."
                raise UnsupportedOperationError(msg)
            if ask.shows is not None and log.is_stored:
                ask.shows.put(log.snapshot())
                self._looked_on[ask.shows] = ask.extensions
            log.said(ask.message)
            if not log.is_stored:
                log.submitted(service.now())
            await self._change(log.status(pb.TASK_STATE_WORKING, service.now()))
            if not log.is_stored:
                await self._show_in_time(ask)
            elif ask.at_once:
                ask.settle(log.snapshot())

    async def _take_turn(self) -> None:
        """Wait until no other process works on the task, and see what it is then."""
        log, service = self.log, self.service
        lease = Lease(self._work_key, f"task {log.task.id}", self._lost, self._wanted, preempts=self.is_canceled)
        leases = leases_of(service.system)
        await leases.take_turn(service.access, lease, service.keys.wanted(log.task.id), "preempt" if self.is_canceled else "queue")
        self._lease = lease
        fresh = await service.load(log.task.id)
        if fresh is None:
            msg = f"Task {log.task.id} has been removed."
            raise UnsupportedOperationError(msg)
        self.log = fresh
        await lease.commit([Put(self._work_key, b"1")])
        if service.outbox is not None:
            await service.outbox.prepare(log.task.id)

    async def _show_in_time(self, ask: Say) -> None:
        """The task is shown when it has said something that is no plain message, or when its client has waited long enough for that."""
        seconds = self.service.seconds_until_shown(is_awaited=ask.is_awaited)
        if ask.at_once or seconds <= 0:
            await self.save()
        else:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expose_soon)

    def _expose_soon(self) -> None:
        if not self.is_exposed:
            self._exposing = self.service.run_task(self.save(), f"task {self.log.task.id} is shown")

    async def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        exposing, self._exposing = self._exposing, None
        if exposing is not None and not exposing.done():
            await asyncio.wait((exposing,))
        if exposing is not None and not exposing.cancelled() and exposing.exception() is not None:
            loggers.a2a.error("Task %s could not be stored.", self.log.task.id, exc_info=exposing.exception())

    async def _finish(self, end: End) -> End:
        """The task comes to rest."""
        await self._stop_timer()
        log, service = self.log, self.service
        if end.error is not None:
            loggers.a2a.error("Task %s: its agent has failed.", log.task.id, exc_info=end.error)
        if end.reply is not None and not self.is_exposed:
            self._answer_plainly(end.reply)
            return end
        if end.reply is not None:  # the client knows of a task by now: it is that what says it
            await self.artifact(pb.Artifact(artifact_id=new_id(), name="reply", parts=end.reply.parts), append=False, last=True)
            end = End(pb.TASK_STATE_COMPLETED)
        if end.state is None:
            await self._leave(*([Remove(self._work_key)] if log.is_at_rest else []))
            return end
        message = end.message
        if message is None and end.state == pb.TASK_STATE_FAILED:
            message = self.said(FAILED)
        log.kept.pending, log.kept.checkpoint_id = end.pending, end.checkpoint_id
        if end.state in TERMINAL:
            log.kept.run_id = None
        update = log.status(end.state, service.now(), message)
        if service.consolidate is not None:
            await service.consolidate(log, [*self.events, update], end.error)
        try:
            await self._change(update, last=True)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, the client hears that it has failed
            loggers.a2a.exception("Task %s has come to its rest, and that could not be stored.", log.task.id)
            self._refuse(InternalError())
            return End(error=error)
        service.ended += 1
        self._rest()
        return end

    def _answer_plainly(self, reply: pb.Message) -> None:
        """No task: the client gets that message, and that is all there was."""
        ask = self.ask
        assert isinstance(ask, Say)
        reply.context_id = self.log.task.context_id
        if ask.shows is not None:
            ask.shows.put(reply)
            ask.shows.end()
        ask.settle(reply)

    def _rest(self) -> None:
        """Answer who has waited for the task's rest, and let go of those who look on at this turn."""
        ask, log = self.ask, self.log
        if isinstance(ask, Say):
            ask.settle(log.snapshot())
        for shows in list(self._looked_on):
            if log.is_terminal or not shows.is_following:
                shows.end()

    def _refuse(self, error: Exception) -> None:
        if isinstance(self.ask, Say):
            self.ask.refuse(error)

    # --- what a player says ---

    def said(self, text: str) -> pb.Message:
        """A message of the agent's in this task, for its status."""
        task = self.log.task
        return pb.Message(message_id=new_id(), role=pb.ROLE_AGENT, task_id=task.id, context_id=task.context_id, parts=[pb.Part(text=text)])

    async def working(self, message: pb.Message | None, metadata: Struct | None = None) -> None:
        """The task is being worked on, and says that."""
        await self._change(self.log.status(pb.TASK_STATE_WORKING, self.service.now(), message, metadata))

    async def artifact(self, artifact: pb.Artifact, *, append: bool, last: bool, joins: bool = False) -> None:
        """An artifact, or a piece of one. Pieces are in the store with the next change of the state, or after a second."""
        update = self.log.artifact(artifact, append=append, last=last, joins=joins)
        self.events.append(update)
        if not self.is_exposed:
            self._held.append(update)
            if isinstance(self.ask, Say) and self.ask.is_awaited:
                await self.save()
            return
        self._show(update)
        if self.service.keeps_pieces and asyncio.get_running_loop().time() - self._pieces_at > 1.0:
            await self.save()

    async def keep(self) -> None:
        """Have in the store what is kept of the task beside what clients see, where that outlives the process."""
        if self.is_exposed and self.service.keeps_pieces:
            async with self._lock:
                await self._commit([*self.log.writes()], last=False)
                self.log.saved()

    def hint(self, uri: str, metadata: Struct) -> None:
        """Something of the inside, for clients that have asked for that extension. It is no change of the task."""
        task, wanted = self.log.task, [shows for shows, extensions in self._looked_on.items() if uri in extensions]
        if wanted and self.is_exposed:
            status = pb.TaskStatus(state=pb.TASK_STATE_WORKING)
            status.timestamp.CopyFrom(task.status.timestamp)
            update = pb.TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=status, metadata=metadata)
            for shows in wanted:
                shows.put(update)

    @property
    def wants_hints(self) -> bool:
        return any(self._looked_on.values())

    # --- storing, then showing ---

    async def _change(self, update: Update, *, last: bool = False) -> None:
        """The state has changed."""
        self.events.append(update)
        self._held.append(update)
        if last or self.is_exposed or self._lease is not None:
            await self.save(last=last)

    async def save(self, *, last: bool = False) -> None:
        """Have in the store what is not there yet, and show it."""
        async with self._lock:
            log = self.log
            if not log.has_unsaved and not last:
                return
            writes: list[Write] = [*log.writes(), *self.service.also_writes(log, self.ask if not log.is_stored else None)]
            held, self._held = self._held, []
            await self._commit(writes, last=last)
            log.saved()
            self._pieces_at = asyncio.get_running_loop().time()
            if not self.is_exposed:
                self._expose(held)
            else:
                for update in held:
                    self._show(update)
            self.service.stored(log)

    async def _commit(self, writes: Sequence[Write], *, last: bool) -> None:
        service, lease = self.service, self._lease
        if lease is not None:
            await lease.commit([*writes, *([Remove(self._work_key)] if last else [])], then="forget" if last else "keep")
            if last:
                await self._leave()
        elif last:  # it was never shown before its rest: no other process can have anything to do with it
            await service.access.commit(None, writes)
        else:
            lease = Lease(self._work_key, f"task {self.log.task.id}", self._lost, self._wanted)
            await leases_of(service.system).take(service.access, lease, [Put(self._work_key, b"1"), *writes])
            self._lease = lease

    async def _leave(self, *writes: Write) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            if writes and lease.is_held:
                await lease.commit(writes)
            await leases_of(self.service.system).give_back(lease)

    def _expose(self, held: list[Update]) -> None:
        """The task is in the store: clients may know of it."""
        self.is_exposed = True
        ask = self.ask
        if not isinstance(ask, Say):
            return
        if ask.shows is not None:
            first = self.log.snapshot()
            first.status.CopyFrom(
                pb.TaskStatus(
                    state=pb.TASK_STATE_SUBMITTED, timestamp=held[0].status.timestamp if held and isinstance(held[0], pb.TaskStatusUpdateEvent) else None
                )
            )
            del first.artifacts[:]
            ask.shows.put(first)
            self._looked_on[ask.shows] = ask.extensions
        if ask.at_once:
            ask.settle(self.log.snapshot())
        for update in held:
            self._show(update)

    def _show(self, shown: Shown) -> None:
        for shows in self._looked_on:
            shows.put(shown)

    # --- from outside ---

    def cancel(self) -> None:
        """The client wants it to end."""
        if not self.is_canceled:
            self.is_canceled = True
            if self.player is not None:
                self.player.cancel()

    def _wanted(self) -> None:
        """Another process wants it to end, on behalf of its client."""
        self.cancel()

    def _lost(self) -> None:
        """Another process may work on it by now: this one must not write any more."""
        loggers.a2a.warning("Task %s is not this process's any more.", self.log.task.id)
        if self.player is not None:
            self.player.cancel()
        for shows in list(self._looked_on):
            shows.end(InternalError("another server works on this task by now; subscribe again"))
