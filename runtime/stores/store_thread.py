"""The one thread in which a store's client blocks, so that no loop does.

What is asked of a store from any loop and any thread becomes an operation in one queue, into which a loop puts all that was asked in one of its cycles. The
thread takes all that wait, and has the backend do them as one batch: a thousand concurrent appends share one transaction. It ends when there was nothing to do
for a moment, and is started by the next operation; it never keeps the process alive. No operation is answered before it is done for good, and each is answered.
The queue is no longer than there are callers, because each of them waits for its answer.

Owns: the queue, the thread, who is answered with what, and when a batch is tried again. It must never know a backend's client.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from enum import Enum, auto
from typing import Any, Final, Protocol

from ..errors import StoreError, UsageError

__all__ = ["WRITES", "Backend", "Operation", "Trouble", "Worker"]

WRITES: Final = frozenset(("set", "delete", "append", "create", "keep_alive", "revoke", "claim", "commit", "prune"))
"""The operations that change something."""

_IDLE: Final = 0.2  # seconds without an operation after which the thread ends
_MOST_AT_ONCE: Final = 1000
_MOST_BYTES_AT_ONCE: Final = 8 << 20
_FIRST_DELAY: Final = 0.05
_LONGEST_DELAY: Final = 0.5


class Trouble(Enum):
    """Whom an error of a backend's client concerns."""

    LOST = auto()
    """The connection. Whether the batch was done is not known: the same one may be tried again, because the backend knows it by its number."""
    BATCH = auto()
    """All operations alike."""
    OPERATION = auto()
    """One of them, perhaps; none has been done. Each may be tried by itself."""


class Operation:
    """One call of a store's method."""

    __slots__ = ("arguments", "error", "future", "key", "loop", "name", "result", "size")

    def __init__(self, name: str, key: bytes = b"", *arguments: object, size: int = 0) -> None:
        self.name = name
        self.key = key
        self.arguments: tuple[Any, ...] = arguments
        """What they are is said by the name: each backend knows it."""
        self.size = size
        """About how many bytes are to be written."""
        self.result: object = None
        self.error: Exception | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[object] | Future[object] | None = None

    def resolve(self) -> None:
        """Tell the caller that waits. On its loop, if it has one."""
        future = self.future
        if future is not None and not future.done():
            if self.error is not None:
                future.set_exception(self.error)
            else:
                future.set_result(self.result)


class Backend(Protocol):
    """What does the operations. All its methods are called in one thread at a time."""

    patience: float
    """For how many seconds a batch is tried again when the connection was lost."""

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        """Do all of them, in one transaction, and set the result of each.

        A batch that comes again has the same number: what it did, if it did anything, is not done twice. Numbers rise.
        """

    def judge(self, error: Exception) -> Trouble:
        """Whom an error concerns that `perform` has raised."""
        ...

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        """That error, as what the operation failed with."""
        ...

    def close(self) -> None:
        """Let go of the connection, if there is one."""


class Worker:
    """A queue and a thread, for one backend in one process."""

    def __init__(self, name: str, backend: Backend) -> None:
        self._name = name
        self._backend = backend
        self._queue: queue.SimpleQueue[Operation] = queue.SimpleQueue()
        self._asked: dict[asyncio.AbstractEventLoop, list[Operation]] = {}  # in the present cycle of each loop: when it ends, they are put into the queue
        # Held to put something into the queue, and to decide that the thread ends: what is put is taken. The garbage collector may come to `abandon()` in a
        # thread that holds it already.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._number = 0

    async def do(self, operation: Operation) -> Any:
        """Have it done. A caller that is cancelled before it has begun takes it back."""
        operation.loop = loop = asyncio.get_running_loop()
        operation.future = future = loop.create_future()
        with self._lock:
            if self._closed:
                msg = f"{self._name}.{operation.name}: the store is closed; make another one."
                raise UsageError(msg)
            asked = self._asked.get(loop)
            if asked is None:
                self._asked[loop] = [operation]
                loop.call_soon(self._hand_over, loop)
            else:
                asked.append(operation)
        return await future

    def close(self) -> None:
        """Wait until all that was asked for is done, and let go of the connection. Blocks; may be called again."""
        future = self._end()
        if future is not None:
            future.result()

    async def aclose(self) -> None:
        """As `close()`, without blocking the loop."""
        future = self._end()
        if future is not None:
            await asyncio.wrap_future(future)

    def abandon(self) -> None:
        """As `close()`, without waiting: no caller waits for anything any more."""
        self._end()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """A cycle of that loop has ended. One that was closed before that has nothing to wait for any more."""
        with self._lock:
            self._put(self._asked.pop(loop, ()))
            for ended in [other for other in self._asked if other.is_closed()]:
                del self._asked[ended]

    def _put(self, operations: Sequence[Operation]) -> None:
        """Under the lock."""
        if operations and self._thread is None:
            thread = threading.Thread(target=self._work, name=f"{self._name}-worker", daemon=True)
            thread.start()
            self._thread = thread
        for operation in operations:
            self._queue.put(operation)

    def _end(self) -> Future[object] | None:
        with self._lock:
            if self._closed:
                return None
            self._closed = True
            for asked in self._asked.values():
                self._put(asked)
            self._asked.clear()
            if self._thread is None:
                self._backend.close()
                return None
            last = Operation("close")
            future: Future[object] = Future()
            last.future = future
            self._queue.put(last)
            return future

    # ---- in the thread

    def _work(self) -> None:
        while (batch := self._take()) is not None:
            closing = batch[-1].name == "close"
            operations = batch[:-1] if closing else batch
            try:
                if operations:
                    self._perform(operations)
                if closing:
                    self._backend.close()
            except BaseException as error:  # noqa: BLE001 -- a caller waits for an answer, whatever has happened
                _fail(operations, error, self._name)
            _answer(batch)
            if closing:
                return
            # What was done must not be kept while there is nothing to do.
            del batch, operations

    def _take(self) -> list[Operation] | None:
        """All that wait, but for those whose caller has left. None: nothing came, and the thread ends."""
        while True:
            try:
                operation = self._queue.get(timeout=_IDLE)
            except queue.Empty:
                with self._lock:
                    if self._queue.empty():
                        self._thread = None
                        return None
                continue
            batch: list[Operation] = []
            size = 0
            while True:
                if operation.future is None or not operation.future.cancelled():
                    batch.append(operation)
                    size += operation.size
                if len(batch) >= _MOST_AT_ONCE or size >= _MOST_BYTES_AT_ONCE:
                    break
                try:
                    operation = self._queue.get_nowait()
                except queue.Empty:
                    break
            del operation
            if batch:
                return batch

    def _perform(self, batch: Sequence[Operation], deadline: float | None = None) -> None:
        """Have a batch done, or give each of its operations an error."""
        self._number += 1
        backend, number = self._backend, self._number
        delay = 0.0
        while True:
            try:
                backend.perform(batch, number)
            except Exception as error:  # noqa: BLE001 -- every error of every client becomes an answer
                trouble = backend.judge(error)
                now = time.monotonic()
                # What fails one by one afterwards shares the patience: a thousand operations do not wait a thousand times.
                deadline = now + backend.patience if deadline is None else deadline
                for operation in batch:
                    operation.error = None
                if trouble is Trouble.LOST and now + delay < deadline:
                    time.sleep(delay)
                    delay = min(max(delay * 2, _FIRST_DELAY), _LONGEST_DELAY)
                    continue
                if trouble is Trouble.OPERATION and len(batch) > 1:
                    for operation in batch:
                        self._perform([operation], deadline)
                    return
                for operation in batch:
                    operation.error = backend.explain(error, operation)
                    operation.error.__cause__ = error.with_traceback(None)
            return


def _fail(batch: Sequence[Operation], error: BaseException, name: str) -> None:
    for operation in batch:
        if operation.error is None:
            msg = f"{name}.{operation.name} ended with {type(error).__name__}, which it must not: whether anything was written is not known."
            operation.error = StoreError(msg)
            operation.error.__cause__ = error.with_traceback(None)


def _answer(batch: Sequence[Operation]) -> None:
    """Tell all who wait; those of one loop in one go, because each waking up of a loop takes longer than a small operation."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[Operation]] = {}
    for operation in batch:
        by_loop.setdefault(operation.loop, []).append(operation)
    for loop, operations in by_loop.items():
        if loop is None:
            _resolve(operations)
        else:
            with suppress(RuntimeError):  # the loop is closed: no caller waits there any more
                loop.call_soon_threadsafe(_resolve, operations)


def _resolve(operations: Sequence[Operation]) -> None:
    for operation in operations:
        operation.resolve()
