"""One client that follows a task.

Unread events are bounded: if a client is slower than the task, chunks of one artifact are merged,
and of consecutive WORKING states only the last is retained; if that is still too much, the stream
ends with an error. The task never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, InternalError

from ...clock import sleep
from .task_log import join_pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from .service import TaskService
    from .task_log import TaskLog

__all__ = ["Shown", "Subscription", "tail"]

Shown: TypeAlias = pb.Task | pb.Message | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

_MOST_UPDATES: Final = 64
"""The number of updates that may wait before they are merged."""
_MOST_BYTES: Final = 4 * 1024 * 1024
_TOO_SLOW: Final = (
    "the client reads too slowly, and too many updates wait for it. Subscribe to the task again "
    "for its current state"
)


class Subscription:
    """The source of a stream.

    A plain object, for use on the event loop: the task puts, and the stream of one client reads.
    """

    __slots__ = (
        "_bytes",
        "_ended",
        "_error",
        "_limit",
        "_on_closed",
        "_shown",
        "_waiting",
        "is_following",
        "task_id",
    )

    def __init__(
        self,
        on_closed: Callable[[Subscription], object] | None = None,
        *,
        is_following: bool = False,
        limit: int = _MOST_BYTES,
    ) -> None:
        self._shown: deque[Shown] = deque()
        self._bytes = 0
        self._limit = limit
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self._on_closed = on_closed
        self.task_id = ""  # the id of the followed task
        self.is_following = is_following  # whether it stays when the task pauses, until its end

    @property
    def is_open(self) -> bool:
        return not self._ended

    @property
    def waiting(self) -> int:
        """The number of unread updates."""
        return len(self._shown)

    def put(self, shown: Shown) -> None:
        """Queue an update for the client. It must not be changed afterwards."""
        if self._ended:
            return
        self._shown.append(shown)
        if len(self._shown) > _MOST_UPDATES:
            self._join()
        self.wake()

    def _join(self) -> None:
        self._shown = joined(self._shown)
        if (
            sum(shown.ByteSize() for shown in self._shown) > self._limit
            or len(self._shown) > 4 * _MOST_UPDATES
        ):
            self._shown.clear()
            self.end(InternalError(_TOO_SLOW))

    def end(self, error: Exception | None = None) -> None:
        """Close the queue: nothing more follows."""
        if not self._ended:
            self._ended, self._error = True, error
            self.wake()

    def wake(self) -> None:
        """Wake the reader, whether there is something new or not."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def close(self) -> None:
        """Note that the client has disconnected."""
        self.end()
        self._shown.clear()
        on_closed, self._on_closed = self._on_closed, None
        if on_closed is not None:
            on_closed(self)

    # --- reading: one reader at a time ---

    @property
    def is_over(self) -> bool:
        """True if everything was read, and nothing more follows."""
        return self._ended and not self._shown

    @property
    def error(self) -> A2AError | None:
        """The error that ended it, in a form for clients."""
        error = self._error
        return error if error is None or isinstance(error, A2AError) else InternalError()

    def take(self) -> list[Shown]:
        """Return all unread updates."""
        taken = list(self._shown)
        self._shown.clear()
        return taken

    async def changed(self) -> None:
        """Wait for the next update, the end, or `wake`.

        Return immediately if there is something to read, or nothing more follows.
        """
        if not self._shown and not self._ended:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    async def wait(self) -> None:
        """Wait until there is something to read, or nothing more follows."""
        while not self._shown and not self._ended:
            await self.changed()

    async def read(self) -> AsyncIterator[Shown]:
        """Yield all updates until the end. Raises the error that ended it."""
        while True:
            await self.wait()
            if not self._shown:
                break
            yield self._shown.popleft()
        if self.error is not None:
            raise self.error


def joined(shown: deque[Shown]) -> deque[Shown]:
    """Return an equivalent queue with fewer updates.

    Consecutive chunks of an artifact are merged, if nothing else of that artifact, and no status,
    is between them.
    """
    found: deque[Shown] = deque()
    # Chunks to merge; the last found update is the first of them.
    pieces: list[pb.TaskArtifactUpdateEvent] = []
    for one in shown:
        last = found[-1] if found else None
        if pieces and isinstance(one, pb.TaskArtifactUpdateEvent) and _goes_on(pieces[-1], one):
            pieces.append(one)
            continue
        _put_joined(found, pieces)
        if (
            isinstance(one, pb.TaskStatusUpdateEvent)
            and isinstance(last, pb.TaskStatusUpdateEvent)
            and last.status.state == pb.TASK_STATE_WORKING
        ):
            found[-1] = one
        else:
            found.append(one)
        pieces = [one] if isinstance(one, pb.TaskArtifactUpdateEvent) else []
    _put_joined(found, pieces)
    return found


def _put_joined(found: deque[Shown], pieces: list[pb.TaskArtifactUpdateEvent]) -> None:
    if len(pieces) > 1:
        first, last = pieces[0], pieces[-1]
        whole = join_pieces([piece.artifact for piece in pieces])
        found[-1] = pb.TaskArtifactUpdateEvent(
            task_id=first.task_id,
            context_id=first.context_id,
            artifact=whole,
            append=first.append,
            last_chunk=last.last_chunk,
            metadata=first.metadata,
        )


def _goes_on(one: pb.TaskArtifactUpdateEvent, following: pb.TaskArtifactUpdateEvent) -> bool:
    return following.append and one.artifact.artifact_id == following.artifact.artifact_id


_FIRST_LOOK: Final = 0.05
_LAST_LOOK: Final = 1.0


async def tail(service: TaskService, log: TaskLog, shows: Subscription) -> None:
    """Show the task, and each of its changes when it is stored."""
    key, number = service.keys.task(log.task.id), log.number
    shows.put(log.snapshot())
    delay = _FIRST_LOOK
    try:
        while shows.is_open:
            await sleep(delay, service.system.clock)
            records = await service.access.read(key, number)
            delay = _FIRST_LOOK if records else min(2 * delay, _LAST_LOOK)
            number += len(records)
            for record in records:
                response = pb.StreamResponse.FromString(record)
                shows.put(
                    response.status_update
                    if response.HasField("status_update")
                    else response.artifact_update
                )
            fresh = await service.load(log.task.id)
            if fresh is None or (fresh.is_at_rest and fresh.number <= number):
                break
        shows.end()
    except Exception:
        service.logger.exception("Task %s could not be followed.", log.task.id)
        shows.end(InternalError())
