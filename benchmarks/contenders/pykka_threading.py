"""pykka itself: `ThreadingActor`, a thread for each actor, used from an ordinary thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pykka

from benchmarks.contenders.pykka_style import PykkaStyle, classes_on

__all__ = ["PykkaThreading"]


class PykkaThreading(PykkaStyle):
    key = "pykka"
    title = "pykka"
    what = "ThreadingActor, used from a plain thread"
    distribution = "pykka"
    cannot: ClassVar = {"ask_awaiting": "its handlers cannot await"}
    classes = classes_on(pykka.ThreadingActor)
    # 100,000 threads would measure the operating system, if it allows them at all.
    most_idle = 10_000

    @contextmanager
    def open(self) -> Iterator[None]:  # type: ignore[override]  # which is a context manager
        """`stop_all` blocks for one after the other.

        That is faster than telling them all and gathering: 120 against 170 µs an actor.
        """
        yield
        pykka.ActorRegistry.stop_all()
