"""The progress of a mapping, passed to a callback or drawn as a bar.

The bar appears if the package rich is installed and stderr is a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from ..errors import UsageError

__all__ = ["MapProgress", "ProgressLike", "progress_of"]


@dataclass(frozen=True, slots=True)
class MapProgress:
    """The number of inputs done, of inputs that failed, and of all inputs if that is known."""

    done: int
    failed: int
    total: int | None


ProgressLike: TypeAlias = bool | Callable[[MapProgress], object]


class Shown(Protocol):
    """A progress display that is active during a `with` block."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def show(self, progress: MapProgress) -> None: ...


def progress_of(wanted: ProgressLike) -> Shown:
    """Return the display: the callback, a bar on a terminal if True, or nothing if False."""
    if callable(wanted):
        return _Told(wanted)
    if not isinstance(wanted, bool):
        msg = f"map: progress must be True, False, or a function of the progress, got {wanted!r}."
        raise UsageError(msg)
    if wanted and sys.stderr is not None and sys.stderr.isatty():
        try:
            from rich.console import Console  # noqa: PLC0415 -- an extra
            from rich.progress import (  # noqa: PLC0415
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )
        except ImportError:
            return _Told(_nothing)
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TimeRemainingColumn(),
        )
        return _Bar(Progress(*columns, console=Console(stderr=True), transient=False))
    return _Told(_nothing)


def _nothing(_progress: MapProgress) -> None:
    """Show the progress nowhere."""


class _Told:
    def __init__(self, tell: Callable[[MapProgress], object]) -> None:
        self._tell = tell

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, progress: MapProgress) -> None:
        self._tell(progress)


class _Bar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task("runs", total=None, failed=0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def show(self, progress: MapProgress) -> None:
        self._bar.update(
            self._task, completed=progress.done, total=progress.total, failed=progress.failed
        )
