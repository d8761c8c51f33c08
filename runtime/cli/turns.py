"""Shows one run in a terminal: its events as they happen; Ctrl-C cancels it.

The run lives on the system's own event loop; the main thread shows it and receives Ctrl-C.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from ..data.events import AgentEvent
from ..data.run_result import RunResult
from ..run.run import Run

__all__ = ["play"]

_Item: TypeAlias = "AgentEvent | BaseException | None"
_AHEAD: Final = 256
"""The number of events that are buffered before they are shown: a slow terminal slows the run."""


def play(
    run: Run, show: Callable[[AgentEvent], object], on_cancel: Callable[[], object]
) -> RunResult:
    """Show all events of a run, and return its result.

    The first Ctrl-C calls `on_cancel` and cancels the run; the second raises.
    """
    events: queue.Queue[_Item] = queue.Queue(_AHEAD)
    reader = threading.Thread(target=_read, args=(run, events), name="offbook-turn", daemon=True)
    reader.start()
    was_cancelled = False
    while True:
        try:
            item = events.get()
            if item is None:
                break
            if isinstance(item, BaseException):
                raise item
            show(item)
        except KeyboardInterrupt:
            if was_cancelled:
                raise
            was_cancelled = True
            on_cancel()
            run.cancel()
    reader.join()
    return run.result()


def _read(run: Run, events: queue.Queue[_Item]) -> None:
    try:
        for event in run:
            events.put(event)
    except BaseException as error:  # noqa: BLE001 -- it is raised where the run is waited for
        events.put(error)
    else:
        events.put(None)
