"""One client that looks on at a task.

Owns: what the client has not read yet, and its bound: where a client is slower than the task, pieces of one artifact become one piece, and of several states
that say nothing the last one is left; where even that is too much, the stream ends with an error that says so. It must never make the task wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, InternalError

from .task_log import add_parts

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Shown", "Subscription"]

Shown: TypeAlias = pb.Task | pb.Message | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

_MOST_UPDATES: Final = 64
"""How many updates may wait before they are joined."""
_MOST_BYTES: Final = 4 * 1024 * 1024
_TOO_SLOW: Final = "the client reads more slowly than the task goes on, and too much waits for it; subscribe to the task to get it as it is"


class Subscription:
    """What a stream is fed from. A plain object of the loop: the task puts, and the stream of one client reads."""

    __slots__ = ("_bytes", "_ended", "_error", "_limit", "_on_closed", "_shown", "_waiting", "is_following", "task_id")

    def __init__(self, on_closed: Callable[[Subscription], object] | None = None, *, is_following: bool = False, limit: int = _MOST_BYTES) -> None:
        self._shown: deque[Shown] = deque()
        self._bytes = 0
        self._limit = limit
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self._on_closed = on_closed
        self.task_id = ""  # of the task that it is about
        self.is_following = is_following  # whether it stays over a task's rest, until its end

    @property
    def is_open(self) -> bool:
        return not self._ended

    @property
    def waiting(self) -> int:
        """How many updates wait to be read."""
        return len(self._shown)

    def put(self, shown: Shown) -> None:
        """Show something, when the client comes to it. It must not be changed afterwards."""
        if self._ended:
            return
        self._shown.append(shown)
        if len(self._shown) > _MOST_UPDATES:
            self._join()
        self.wake()

    def _join(self) -> None:
        self._shown = joined(self._shown)
        if sum(shown.ByteSize() for shown in self._shown) > self._limit or len(self._shown) > 4 * _MOST_UPDATES:
            self._shown.clear()
            self.end(InternalError(_TOO_SLOW))

    def end(self, error: Exception | None = None) -> None:
        """Nothing more will come."""
        if not self._ended:
            self._ended, self._error = True, error
            self.wake()

    def wake(self) -> None:
        """Let the reader look again, whether there is something new or not."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def close(self) -> None:
        """The client has gone."""
        self.end()
        self._shown.clear()
        on_closed, self._on_closed = self._on_closed, None
        if on_closed is not None:
            on_closed(self)

    # --- reading: one reader at a time ---

    @property
    def is_over(self) -> bool:
        """Whether all was read, and nothing more comes."""
        return self._ended and not self._shown

    @property
    def error(self) -> A2AError | None:
        """What it was ended with, as a client may hear it."""
        error = self._error
        return error if error is None or isinstance(error, A2AError) else InternalError()

    def take(self) -> list[Shown]:
        """All that waits to be read."""
        taken = list(self._shown)
        self._shown.clear()
        return taken

    async def changed(self) -> None:
        """Wait for the next that is put, the end, or to be woken; not at all if there is something to be read, or nothing more comes."""
        if not self._shown and not self._ended:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    async def wait(self) -> None:
        """Wait until there is something to be read, or nothing more comes."""
        while not self._shown and not self._ended:
            await self.changed()

    async def read(self) -> AsyncIterator[Shown]:
        """All that is shown, until the end. Raises what it was ended with."""
        while True:
            await self.wait()
            if not self._shown:
                break
            yield self._shown.popleft()
        if self.error is not None:
            raise self.error


def joined(shown: deque[Shown]) -> deque[Shown]:
    """The same with fewer updates. Each artifact's pieces become one, where nothing else of that artifact, and no status, is between them."""
    found: deque[Shown] = deque()
    for one in shown:
        last = found[-1] if found else None
        if isinstance(one, pb.TaskArtifactUpdateEvent) and isinstance(last, pb.TaskArtifactUpdateEvent) and _goes_on(last, one):
            both = pb.TaskArtifactUpdateEvent()
            both.CopyFrom(last)
            add_parts(both.artifact, one.artifact, joins=True)
            both.last_chunk = one.last_chunk
            found[-1] = both
        elif isinstance(one, pb.TaskStatusUpdateEvent) and isinstance(last, pb.TaskStatusUpdateEvent) and last.status.state == pb.TASK_STATE_WORKING:
            found[-1] = one
        else:
            found.append(one)
    return found


def _goes_on(one: pb.TaskArtifactUpdateEvent, following: pb.TaskArtifactUpdateEvent) -> bool:
    return following.append and one.artifact.artifact_id == following.artifact.artifact_id
