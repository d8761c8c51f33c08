"""The signal that this process is about to end, for work that must end first.

An event is set when the process receives SIGTERM or SIGINT. Earlier handlers, such as those of a
web server, are called as well. The module ends nothing itself.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self

__all__ = ["Shutdown"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """An event that is set when the process must end, and at the end of its block.

    Use `async with Shutdown() as shutdown: ...`, then `sse(run, until=shutdown)`. A stopping web
    server first waits for open responses, and streams would keep it waiting. Outside the main
    thread, where no signal arrives, only `set()` and the end of the block set it.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: dict[int, Any] = {}

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        """Start the shutdown. On the loop."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until the shutdown starts."""
        await self._event.wait()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is None or before == signal.SIG_IGN:
                continue  # not set by Python, or ignored
            try:
                signal.signal(number, self._receive)
            except ValueError:
                break  # not in the main thread
            self._before[number] = before
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)
        before: Callable[[int, FrameType | None], object] | int = self._before.get(
            number, signal.SIG_DFL
        )
        if callable(before):
            before(number, frame)
        elif number in self._before:  # default action: the process ends
            signal.signal(number, before)
            signal.raise_signal(number)

    async def __aexit__(self, *_: object) -> None:
        self._event.set()
        before, self._before = self._before, {}
        for number, handler in before.items():
            # Otherwise a newer handler was set, which stays.
            if signal.getsignal(number) == self._receive:
                signal.signal(number, handler)
