"""The runs started from the console, which continue without a browser: resumed, retried, answered.

A task for each reads its events until it ends, so that it need not wait for a consumer. The events
are discarded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ..errors import SystemDraining
from ..log import loggers

if TYPE_CHECKING:
    from ..run.run import Run

__all__ = ["BegunRuns"]

_MOST: Final = 1_000
_PATIENCE: Final = 10.0
"""Seconds after which a run counts as started even without an event."""


class BegunRuns:
    """The runs of one console. On one loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raise SystemDraining if there are too many already."""
        if len(self._tasks) >= _MOST:
            msg = (
                f"{_MOST:,} runs that were started from this console are running. Wait until some "
                "have ended."
            )
            raise SystemDraining(msg)

    async def begin(self, run: Run) -> None:
        """Return when the run has started: with its first event, or its end.

        Errors of its start are raised.
        """
        begun = self.follow(run)
        await asyncio.wait((begun,), timeout=_PATIENCE)
        if begun.done():
            begun.result()

    def follow(self, run: Run) -> asyncio.Future[None]:
        """Read its events until it ends. The returned future is done when the run has started."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_consume(run, begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return begun

    async def aclose(self) -> None:
        """Stop following the runs: `recover()` continues those with recorded steps.

        Others are cancelled.
        """
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _consume(run: Run, begun: asyncio.Future[None]) -> None:
    try:
        async for _ in run:
            if not begun.done():
                begun.set_result(None)
        await run
        if not begun.done():
            begun.set_result(None)
    except Exception as error:  # noqa: BLE001 -- it is raised where the run was started
        if begun.done():
            loggers.console.warning(
                "run %s, which was started from the console, could not be followed to its end: %s",
                run.id,
                type(error).__name__,
            )
        else:
            begun.set_exception(error)
            begun.exception()  # the client that started it may be gone
