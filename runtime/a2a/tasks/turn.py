"""One turn of a task: from a message to the pause or end of the task.

A change of the state is stored before a client sees it. A task of which nothing was shown is not
stored. A `Player` runs the turn; it changes the task only through the turn.
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
from ...stores.writes import Put, Remove, Write
from .asks import Continue, End, Say
from .checks import INTERRUPTED, TERMINAL
from .client_messages import Repeated, admit

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
"""Seconds for a cancelled task to stop, before it counts as canceled anyway."""


class Turn:
    """One turn, owned by the actor of its task. A plain object, for use on the event loop."""

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
        "asked",
        "events",
        "is_canceled",
        "is_exposed",
        "log",
        "player",
        "service",
    )

    def __init__(
        self,
        service: TaskService,
        log: TaskLog,
        ask: Say | Continue,
        looked_on: dict[Subscription, frozenset[str]],
    ) -> None:
        self.service = service
        self.log = log
        self.ask = ask
        self.asked: pb.TaskStatus | None = None  # the question that the client's message answers
        self.events: list[Update] = []  # of this turn, for the consolidation
        self.is_canceled = False
        self.is_exposed = log.is_stored  # whether clients may know of the task
        self.player: Player | None = None
        # The followers of the task, and the extensions that each has requested.
        self._looked_on = looked_on
        self._held: list[Update] = []  # updates to show when the task is exposed
        self._lease: Lease | None = None
        self._lock = asyncio.Lock()  # one write at a time
        self._timer: asyncio.TimerHandle | None = None
        self._exposing: asyncio.Task[None] | None = None
        self._pieces_at = 0.0
        self._playing: asyncio.Task[Any] | None = None
        self._is_cut_off = False

    @property
    def message(self) -> pb.Message:
        """The client's current message: for a continued turn, the last one."""
        if isinstance(self.ask, Say):
            return self.ask.message
        return next(
            (said for said in reversed(self.log.task.history) if said.role == pb.ROLE_USER),
            pb.Message(),
        )

    # --- from start to end ---

    async def play(self, player: Player) -> End:
        """Run the task until it pauses or ends.

        All errors are reported to the client, without internal details.
        """
        self.player = player
        try:
            await self._begin()
        except Repeated:
            await self._leave(*([Remove(self._work_key)] if self.log.is_at_rest else []))
            assert isinstance(self.ask, Say)
            self.ask.finish(self.log.snapshot())
            return End()
        except A2AError as refused:
            await self._leave(Remove(self._work_key))
            self._refuse(refused)
            return End()
        except Exception:
            self.service.logger.exception("Task %s could not be started.", self.log.task.id)
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
        """Run the player. If it is cancelled and does not stop, it is cut off."""
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
        except Exception as error:  # noqa: BLE001 -- any error of an agent fails its task
            return End(pb.TASK_STATE_FAILED, error=error)
        finally:
            self._playing = None

    def give_up(self) -> None:
        """Cut off a cancelled player that has not ended in time."""
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
            admit(log, ask)
            if self.player is not None:
                self.player.check(self)
            if ask.shows is not None and log.is_stored:
                ask.shows.put(log.snapshot())
                self._looked_on[ask.shows] = ask.extensions
            if log.is_interrupted:
                self.asked = pb.TaskStatus()
                self.asked.CopyFrom(log.task.status)
            log.said(ask.message)
            if not log.is_stored:
                log.submitted(service.now())
            await self._change(log.status(pb.TASK_STATE_WORKING, service.now()))
            if not log.is_stored:
                await self._show_in_time(ask)
            elif ask.at_once:
                ask.settle(log.snapshot())

    async def _take_turn(self) -> None:
        """Wait until no other process runs the task, and reload it."""
        log, service = self.log, self.service
        lease = Lease(
            self._work_key,
            f"task {log.task.id}",
            self._lost,
            self._wanted,
            preempts=self.is_canceled,
        )
        leases = leases_of(service.system)
        await leases.take_turn(
            service.access,
            lease,
            service.keys.wanted(log.task.id),
            "preempt" if self.is_canceled else "queue",
        )
        self._lease = lease
        fresh = await service.load(log.task.id)
        if fresh is None:
            msg = (
                f"Task {log.task.id} has been removed. Send a message without a taskId to start "
                "another one."
            )
            raise UnsupportedOperationError(msg)
        self.log = fresh
        await lease.commit([Put(self._work_key, b"1")])
        if service.outbox is not None:
            await service.outbox.prepare(log.task.id)

    async def _show_in_time(self, ask: Say) -> None:
        """Show the task when it has an output other than a plain message, or after a timeout."""
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
            self.service.logger.error(
                "Task %s could not be stored.", self.log.task.id, exc_info=exposing.exception()
            )

    async def _finish(self, end: End) -> End:
        """Finish the turn: the task pauses or ends."""
        await self._stop_timer()
        log, service = self.log, self.service
        if end.error is not None:
            self.service.logger.error(
                "Task %s: its agent has failed.", log.task.id, exc_info=end.error
            )
        if end.reply is not None and not self.is_exposed:
            self._answer_plainly(end.reply)
            return end
        if end.reply is not None:  # the client already knows of a task, which gets the reply
            await self.artifact(
                pb.Artifact(artifact_id=new_id(), name="reply", parts=end.reply.parts),
                append=False,
                last=True,
            )
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
        elif end.state in INTERRUPTED:
            log.kept.questions += 1
        update = log.status(end.state, service.now(), message)
        if service.consolidate is not None:
            await service.consolidate(log, [*self.events, update], end.error)
        try:
            await self._change(update, last=True)
        except Exception as error:
            self.service.logger.exception(
                "Task %s has ended or paused, but that could not be stored.", log.task.id
            )
            self._refuse(InternalError())
            return End(error=error)
        service.ended += 1
        self._rest()
        return end

    def _answer_plainly(self, reply: pb.Message) -> None:
        """Answer with a plain message, without a task."""
        assert isinstance(self.ask, Say)
        reply.context_id = self.log.task.context_id
        self.ask.finish(reply)

    def _rest(self) -> None:
        """Answer the client that waits for the end of the turn, and end this turn's streams."""
        ask, log = self.ask, self.log
        if isinstance(ask, Say):
            ask.settle(log.snapshot())
        for shows in list(self._looked_on):
            if log.is_terminal or not shows.is_following:
                shows.end()

    def _refuse(self, error: Exception) -> None:
        if isinstance(self.ask, Say):
            self.ask.refuse(error)

    # --- calls of a player ---

    def said(self, text: str) -> pb.Message:
        """Make a message of the agent in this task, for its status."""
        task = self.log.task
        return pb.Message(
            message_id=new_id(),
            role=pb.ROLE_AGENT,
            task_id=task.id,
            context_id=task.context_id,
            parts=[pb.Part(text=text)],
        )

    async def working(self, message: pb.Message | None, metadata: Struct | None = None) -> None:
        """Report that the task is in progress."""
        await self._change(
            self.log.status(pb.TASK_STATE_WORKING, self.service.now(), message, metadata)
        )

    async def artifact(
        self, artifact: pb.Artifact, *, append: bool, last: bool, joins: bool = False
    ) -> None:
        """Add an artifact, or a chunk of one.

        Chunks are stored with the next change of the state, or after a second.
        """
        update = self.log.artifact(artifact, append=append, last=last, joins=joins)
        self._note(update)
        if not self.is_exposed:
            self._held.append(update)
            if isinstance(self.ask, Say) and self.ask.is_awaited:
                await self.save()
            return
        self._show(update)
        if self.service.keeps_pieces and asyncio.get_running_loop().time() - self._pieces_at > 1.0:
            await self.save()

    def _note(self, update: Update) -> None:
        if self.service.consolidate is not None:
            self.events.append(update)

    async def keep(self) -> None:
        """Store the internal data of the task, if the store outlives the process."""
        if self.is_exposed and self.service.keeps_pieces:
            async with self._lock:
                await self._commit([*self.log.writes()], last=False)
                self.log.saved()

    def hint(self, uri: str, metadata: Struct) -> None:
        """Send internal metadata to clients that have requested that extension.

        It is not a change of the task.
        """
        task, wanted = (
            self.log.task,
            [shows for shows, extensions in self._looked_on.items() if uri in extensions],
        )
        if wanted and self.is_exposed:
            status = pb.TaskStatus(state=pb.TASK_STATE_WORKING)
            status.timestamp.CopyFrom(task.status.timestamp)
            update = pb.TaskStatusUpdateEvent(
                task_id=task.id, context_id=task.context_id, status=status, metadata=metadata
            )
            for shows in wanted:
                shows.put(update)

    @property
    def wants_hints(self) -> bool:
        return any(self._looked_on.values())

    # --- storing, then showing ---

    async def _change(self, update: Update, *, last: bool = False) -> None:
        """Record a change of the state."""
        self._note(update)
        self._held.append(update)
        if last or self.is_exposed or self._lease is not None:
            await self.save(last=last)

    async def save(self, *, last: bool = False) -> None:
        """Store the unsaved changes, and show them."""
        async with self._lock:
            log = self.log
            if not log.has_unsaved and not last:
                return
            writes: list[Write] = [
                *log.writes(),
                *self.service.also_writes(log, self.ask if not log.is_stored else None),
            ]
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
            await lease.commit(
                [*writes, *([Remove(self._work_key)] if last else [])],
                then="forget" if last else "keep",
            )
            if last:
                await self._leave()
        elif last:  # It was never shown before: no other process can know of it.
            await service.access.commit(None, writes)
        else:
            lease = Lease(self._work_key, f"task {self.log.task.id}", self._lost, self._wanted)
            await leases_of(service.system).take(
                service.access, lease, [Put(self._work_key, b"1"), *writes]
            )
            self._lease = lease

    async def _leave(self, *writes: Write) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            if writes and lease.is_held:
                await lease.commit(writes)
            await leases_of(self.service.system).give_back(lease)

    def _expose(self, held: list[Update]) -> None:
        """Expose the stored task to clients."""
        self.is_exposed = True
        ask = self.ask
        if not isinstance(ask, Say):
            return
        if ask.shows is not None:
            ask.shows.put(self.log.as_submitted(held))
            self._looked_on[ask.shows] = ask.extensions
        if ask.at_once:
            ask.settle(self.log.snapshot())
        for update in held:
            self._show(update)

    def _show(self, shown: Shown) -> None:
        for shows in self._looked_on:
            shows.put(shown)

    # --- requests from outside ---

    def cancel(self) -> None:
        """Cancel the turn at the client's request."""
        if not self.is_canceled:
            self.is_canceled = True
            if self.player is not None:
                self.player.cancel()

    def _wanted(self) -> None:
        """Cancel the turn at the request of another process, for its client."""
        self.cancel()

    def _lost(self) -> None:
        """Stop writing: another process may run the task by now."""
        self.service.logger.warning("This process no longer owns task %s.", self.log.task.id)
        if self.player is not None:
            self.player.cancel()
        for shows in list(self._looked_on):
            shows.end(InternalError("another server has taken over this task. Subscribe again"))
