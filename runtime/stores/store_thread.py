"""The worker thread in which a store's client blocks, so that no event loop does.

Calls from any loop and any thread become operations in one queue; a loop adds all calls of one
cycle together. The thread takes all waiting operations, and the backend does them as one batch: a
thousand concurrent appends share one transaction. The thread ends when it was idle for a moment, is
started again by the next operation, and never keeps the process alive. Every operation is answered,
and only when it is done for good. The queue is bounded by the number of callers, because each of
them waits for its answer.

Renewals of owners come first, even before large values that were queued earlier. A search or a
prune is always a batch of its own: if it fails, no write is repeated. A prune is done in short
steps, and waiting operations run between two of them.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Protocol

from ..errors import StoreError, UsageError
from ..log import loggers
from . import forks
from .troubles import Trouble

__all__ = [
    "CLOSE_SECONDS",
    "SEARCHES",
    "STEP_SECONDS",
    "WRITES",
    "Backend",
    "Operation",
    "SteppedOperation",
    "Worker",
]

WRITES: Final = frozenset(
    ("set", "delete", "append", "create", "keep_alive", "revoke", "claim", "commit", "prune")
)
"""The operations that change something."""
SEARCHES: Final = frozenset(("keys", "orphans", "run_entries", "prune"))
"""The operations that a backend may do by several commands. Each is a batch of its own."""
STEP_SECONDS: Final = 0.05
"""The time limit for one step of a prune."""
CLOSE_SECONDS: Final = 60.0
"""How long closing waits for pending operations.

It is longer than a server may take to answer: only a hanging disk takes that long.
"""

_IDLE: Final = 0.2  # seconds without an operation after which the thread ends
_MOST_AT_ONCE: Final = 1000
_MOST_BYTES_AT_ONCE: Final = 8 << 20
# Bytes of an operation from which renewals run in a separate batch before it.
_LARGE: Final = 1 << 20
# Seconds for which a file is left to other processes, which poll for it that often.
_BETWEEN_STEPS: Final = 0.02
_FIRST_DELAY: Final = 0.05
_LONGEST_DELAY: Final = 0.5


class Operation:
    """One call of a store's method."""

    __slots__ = ("arguments", "error", "future", "key", "loop", "name", "result", "size")

    def __init__(self, name: str, key: bytes = b"", *arguments: object, size: int = 0) -> None:
        self.name = name
        self.key = key
        self.arguments: tuple[Any, ...] = arguments
        """Their meaning depends on the name."""
        self.size = size
        """The approximate number of bytes to write."""
        self.result: object = None
        self.error: Exception | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[object] | Future[object] | None = None

    def resolve(self) -> None:
        """Resolve the future of the waiting caller, on its loop if it has one."""
        future = self.future
        if future is not None and not future.done():
            if self.error is not None:
                future.set_exception(self.error)
            else:
                future.set_result(self.result)


class SteppedOperation(Operation):
    """An operation that is done in steps: a prune."""

    __slots__ = ("is_done", "progress")

    def __init__(self, name: str, key: bytes = b"", *arguments: object, size: int = 0) -> None:
        super().__init__(name, key, *arguments, size=size)
        self.is_done = False
        """Whether it is complete. If not, the backend receives it again."""
        self.progress: Any = None
        """The point at which the backend continues."""


class Backend(Protocol):
    """The object that does the operations. All its methods are called in one thread at a time."""

    patience: float
    """Seconds for which a batch is retried after a lost connection, from its first attempt.

    It is retried at least once.
    """
    closes_at_fork: bool
    """Whether its connection is closed before a fork.

    If not, the child releases its copy of the sockets.
    """

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        """Do all operations, in one transaction, and set the result of each; of a prune, one step.

        It must return or raise within a documented time.

        A repeated batch has the same number, and must not be done twice. Numbers increase.
        """

    def judge(self, error: Exception) -> Trouble:
        """Classify an error that `perform` has raised."""
        ...

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        """Convert that error to the error of the operation."""
        ...

    def close(self) -> None:
        """Close the connection, if there is one."""

    def before_fork(self) -> None:
        """Close the connection; it is reopened when it is next needed.

        Called only if `closes_at_fork`.
        """

    def descriptors(self) -> list[int]:
        """Return the descriptors that the child releases. Called in the child; only reads."""


class Worker:
    """A queue and a thread, for one backend in one process."""

    def __init__(self, name: str, backend: Backend) -> None:
        self._name = name
        self._backend = backend
        self._queue: queue.SimpleQueue[Operation] = queue.SimpleQueue()
        # Calls in the current cycle of each loop: when it ends, they are added to the queue.
        self._asked: dict[asyncio.AbstractEventLoop, list[Operation]] = {}
        # Held to add to the queue, and to decide that the thread ends: every added operation is
        # taken. Reentrant, because the garbage collector may call `abandon()` in a thread that
        # already holds it.
        self._lock = threading.RLock()
        self._at_work = threading.Lock()  # held while the backend is used, and during a fork
        self._is_held = False  # whether the fork holds it
        self._thread: threading.Thread | None = None
        self._closed = False
        self._number = 0
        # Operations that the thread has taken out of the queue.
        self._renewals: list[Operation] = []
        self._waiting: deque[Operation] = deque()
        self._searches: deque[Operation] = deque()
        self._is_search_next = False
        self._last: Operation | None = None  # "close"
        forks.watch(self)

    async def do(self, operation: Operation) -> Any:
        """Do an operation. A caller that is cancelled before it has started withdraws it."""
        operation.loop = loop = asyncio.get_running_loop()
        operation.future = future = loop.create_future()
        with self._lock:
            if self._closed:
                msg = f"{self._name}.{operation.name}: the store is closed. Make another one."
                raise UsageError(msg)
            asked = self._asked.get(loop)
            if asked is None:
                self._asked[loop] = [operation]
                loop.call_soon(self._hand_over, loop)
            else:
                asked.append(operation)
        return await future

    def post(self, operation: Operation) -> None:
        """Queue an operation after all earlier ones, without waiting for its result."""
        with self._lock:
            if not self._closed:
                for asked in self._asked.values():
                    self._put(asked)
                    asked.clear()
                self._put([operation])

    def close(self) -> None:
        """Wait until all pending operations are done, and close the connection.

        Blocks, but not forever; may be called again.
        """
        future = self._end()
        if future is not None:
            try:
                future.result(CLOSE_SECONDS)
            except TimeoutError:
                self._left_behind()

    async def aclose(self) -> None:
        """Do the same as `close()`, without blocking the loop."""
        future = self._end()
        if future is not None:
            ended = asyncio.wrap_future(future)
            await asyncio.wait((ended,), timeout=CLOSE_SECONDS)
            if not ended.done():
                self._left_behind()
            else:
                ended.result()

    def _left_behind(self) -> None:
        loggers.stores.error(
            "%s was closed, but has not finished its earlier operations within %g s. Its thread "
            "is abandoned. Check whether its disk hangs.",
            self._name,
            CLOSE_SECONDS,
        )

    def abandon(self) -> None:
        """Close without waiting: no caller is left."""
        self._end()

    def before_fork(self) -> None:
        """Wait until the connection is idle.

        In the child, no thread would release the locks that a call holds.
        """
        self._is_held = self._at_work.acquire(
            timeout=-1 if self._backend.closes_at_fork else forks.SECONDS
        )
        if self._backend.closes_at_fork:
            self._backend.before_fork()

    def after_fork(self) -> None:
        if self._is_held:
            self._at_work.release()

    def after_fork_in_child(self) -> None:
        forks.disconnect(self._backend.descriptors())

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Queue the operations of a loop at the end of its cycle.

        Operations of loops that were closed before that are dropped.
        """
        with self._lock:
            self._put(self._asked.pop(loop, ()))
            for ended in [other for other in self._asked if other.is_closed()]:
                del self._asked[ended]

    def _put(self, operations: Sequence[Operation]) -> None:
        """Add operations to the queue. Called under the lock."""
        if operations and self._thread is None:
            thread = threading.Thread(target=self._work, name=f"{self._name}-worker", daemon=True)
            try:
                thread.start()
            except (
                RuntimeError
            ) as error:  # The process may have no more threads, or the interpreter exits.
                for operation in operations:
                    operation.error = StoreError(
                        f"{self._name}.{operation.name}: {error} (raise the limit of "
                        "threads; nothing of this operation was written)."
                    )
                    operation.error.__cause__ = error.with_traceback(None)
                _answer(operations)
                return
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
                with self._at_work:
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
            try:
                lost = self._perform(batch) if batch else None
                if lost is not None:
                    # Operations that arrived in the meantime waited for the same connection: they
                    # share the error, instead of waiting as long again.
                    self._receive()
                    meanwhile = [*self._renewals, *self._waiting, *self._searches]
                    self._renewals.clear()
                    self._waiting.clear()
                    self._searches.clear()
                    batch += meanwhile
                    self._give_up(meanwhile, lost)
                closing = self._last is not None and not (
                    self._renewals or self._waiting or self._searches
                )
                if closing:
                    with self._at_work:
                        self._backend.close()
            except BaseException as error:  # noqa: BLE001 -- a caller waits for an answer in any case
                closing = self._last is not None
                _fail([*batch, self._last] if self._last is not None else batch, error, self._name)
            _answer(self._done(batch, closing=closing))
            if closing:
                return
            # Do not keep finished operations alive while idle.
            del batch

    def _done(self, batch: list[Operation], *, closing: bool) -> list[Operation]:
        """Return the operations to answer."""
        step = batch[0] if len(batch) == 1 else None
        if (
            isinstance(step, SteppedOperation)
            and not step.is_done
            and step.error is None
            and not self._closed
        ):
            self._searches.append(step)
            batch = []
        return [*batch, self._last] if closing and self._last is not None else batch

    def _take(self) -> list[Operation] | None:
        """Return the next batch, without operations whose caller has left.

        None: nothing arrived, and the thread ends.
        """
        while True:
            self._receive()
            if (
                self._searches
                and getattr(self._searches[0], "progress", None) is not None
                and not (self._renewals or self._waiting or self._last)
            ):
                with suppress(queue.Empty):
                    self._sort(self._queue.get(timeout=_BETWEEN_STEPS))
                    self._receive()
            if self._searches and (self._is_search_next or not (self._renewals or self._waiting)):
                self._is_search_next = False
                search = self._searches.popleft()
                if not _is_cancelled(search):
                    return [search]
                continue
            if batch := self._next_batch():
                self._is_search_next = True
                return batch
            if self._last is not None:
                return []
            try:
                operation = self._queue.get(timeout=_IDLE)
            except queue.Empty:
                with self._lock:
                    if self._queue.empty():
                        self._thread = None
                        return None
            else:
                self._sort(operation)
                del operation

    def _receive(self) -> None:
        """Take everything out of the queue. The lock keeps the operations of one loop together."""
        with self._lock:
            while not self._queue.empty():  # no other thread takes anything out
                self._sort(self._queue.get_nowait())

    def _sort(self, operation: Operation) -> None:
        name = operation.name
        if name == "keep_alive":
            self._renewals.append(operation)
        elif name in SEARCHES:
            self._searches.append(operation)
        elif name == "close":
            self._last = operation
        else:
            self._waiting.append(operation)

    def _next_batch(self) -> list[Operation]:
        waiting = self._waiting
        batch = [operation for operation in self._renewals if not _is_cancelled(operation)]
        self._renewals.clear()
        size = 0
        while waiting and len(batch) < _MOST_AT_ONCE and size < _MOST_BYTES_AT_ONCE:
            if waiting[0].size > _LARGE and batch and batch[0].name == "keep_alive":
                break
            operation = waiting.popleft()
            if not _is_cancelled(operation):
                batch.append(operation)
                size += operation.size
        return batch

    def _give_up(
        self, operations: Sequence[Operation], error: Exception, *, in_doubt: bool = False
    ) -> None:
        for operation in operations:
            explained = self._backend.explain(error, operation)
            if in_doubt:
                explained = StoreError(
                    f"{explained} An earlier attempt was not answered, so the operation may have "
                    "been done."
                )
            operation.error = explained
            operation.error.__cause__ = error.with_traceback(None)

    def _perform(
        self, batch: Sequence[Operation], deadline: float | None = None
    ) -> Exception | None:
        """Do a batch, or set the error of each of its operations.

        Returns the error if the connection was lost for longer than the backend's patience.
        """
        self._number += 1
        backend, number = self._backend, self._number
        started = time.monotonic()
        delay = 0.0
        # whether an earlier attempt may have been done, or may still be in progress
        in_doubt = False
        while True:
            try:
                with self._at_work:
                    backend.perform(batch, number)
            except Exception as error:  # noqa: BLE001 -- every error of every client becomes an answer
                trouble = backend.judge(error)
                now = time.monotonic()
                # Operations that then fail one by one share the patience: a thousand of them do not
                # wait a thousand times.
                deadline = max(now, started + backend.patience) if deadline is None else deadline
                for operation in batch:
                    operation.error = None
                if trouble is Trouble.OPERATION and len(batch) > 1 and not in_doubt:
                    return self._one_by_one(batch, deadline)
                # An operation's own error proves nothing about an attempt before it: only the same
                # number can show the outcome of that.
                waits = trouble is Trouble.WAITED_FOR or (trouble is Trouble.OPERATION and in_doubt)
                if waits and now + delay <= deadline:
                    in_doubt = True
                    time.sleep(delay)
                    delay = min(max(delay * 2, _FIRST_DELAY), _LONGEST_DELAY)
                    continue
                self._give_up(batch, error, in_doubt=in_doubt and trouble is not Trouble.WAITED_FOR)
                return error if trouble is Trouble.WAITED_FOR else None
            return None

    def _one_by_one(self, batch: Sequence[Operation], deadline: float) -> Exception | None:
        """Do each operation by itself: none has been done, and one of them may be the cause."""
        for place, operation in enumerate(batch):
            lost = self._perform([operation], deadline)
            if lost is not None:
                self._give_up(batch[place + 1 :], lost)
                return lost
        return None


def _is_cancelled(operation: Operation) -> bool:
    return operation.future is not None and operation.future.cancelled()


def _fail(batch: Sequence[Operation], error: BaseException, name: str) -> None:
    for operation in batch:
        if operation.error is None:
            msg = (
                f"{name}.{operation.name} ended with {type(error).__name__}, which a store must "
                "not raise. The operation may have been done."
            )
            operation.error = StoreError(msg)
            operation.error.__cause__ = error.with_traceback(None)


def _answer(batch: Sequence[Operation]) -> None:
    """Resolve all futures; those of one loop together.

    Waking a loop takes longer than a small operation.
    """
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
