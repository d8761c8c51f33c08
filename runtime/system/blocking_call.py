"""One call in a worker thread.

It holds the function, its name for the log, and the future on the loop that waits for the result.
It knows nothing about threads or other calls.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["BlockingCall"]

T = TypeVar("T")


class BlockingCall(Generic[T]):
    """A blocking function, and the future of its result."""

    __slots__ = (
        "_began",
        "_context",
        "_error",
        "_function",
        "_loop",
        "_result",
        "given_up",
        "name",
        "reply",
    )

    def __init__(
        self, function: Callable[[], T], name: str, began: Callable[[], object] | None
    ) -> None:
        self._function: Callable[[], T] | None = function
        self._context = contextvars.copy_context()
        self._began = began  # called on the loop as soon as the function has started
        self._loop = asyncio.get_running_loop()
        self._result: T
        self._error: BaseException | None = None
        self.name = name
        self.reply: asyncio.Future[T] = self._loop.create_future()
        self.given_up: float | None = (
            # The instant at which its caller stopped waiting; written under the lock of the
            # workers.
            None
        )

    # --- in the thread ---

    def make(self) -> None:
        """Call the function, with the caller's context variables."""
        if self._began is not None:
            self._tell(self._began)
        function, self._function = self._function, None
        assert function is not None
        try:
            self._result = self._context.run(function)
        except (
            StopIteration,
            GeneratorExit,
        ) as odd:  # a future refuses the one, and the other would close the waiting coroutine
            self._error = RuntimeError(f"the function raised {type(odd).__name__}")
            self._error.__cause__ = odd
        except BaseException as error:  # noqa: BLE001 -- raised where the call is awaited
            self._error = error

    def deliver(self) -> None:
        """Send the result to the loop."""
        self._tell(self._resolve)

    def _tell(self, function: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            if not self._loop.is_closed():  # a closed loop has no waiters left
                raise

    # --- on the loop ---

    def _resolve(self) -> None:
        if self.reply.done():
            return
        if self._error is None:
            self.reply.set_result(self._result)
        else:
            self.reply.set_exception(self._error)
            self._error = None  # its traceback refers to this object

    def drop(self) -> None:
        """Cancel the wait for the call, from any thread."""
        self._tell(self.reply.cancel)
