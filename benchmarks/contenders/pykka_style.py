"""Actors as pykka's users write them, from an ordinary thread: `Echo.start()`, `ref.ask(...)`,
`ref.tell(...)`, `ref.stop()`.

The same code serves pykka itself and the two kinds of offbook's actors in a program without an
event loop: only the base class differs. `ask` blocks in `future.get()`. A parent asks with
`block=False`, and gathers with `pykka.get_all`.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractContextManager
from time import perf_counter_ns as now
from typing import Any

import pykka

from benchmarks.contenders.base import Contender, Load, Probe
from benchmarks.contenders.work import MESSAGE, work
from benchmarks.lab.measure import Stopwatch

__all__ = ["PykkaStyle", "classes_on"]


def classes_on(base: Any) -> dict[str, Any]:
    """The actor classes of the benchmark, on a base class that is pykka's or has its API."""

    class Echo(base):
        use_daemon_thread = True

        def on_receive(self, message: Any) -> Any:
            return message

    class AwaitingEcho(base):
        """Only where handlers may be asynchronous."""

        use_daemon_thread = True

        async def on_receive(self, message: Any) -> Any:
            await asyncio.sleep(0)
            return message

    class Counter(base):
        """Says when it has handled a burst."""

        use_daemon_thread = True

        def __init__(self, burst: int, done: threading.Event) -> None:
            super().__init__()
            self.burst = self.left = burst
            self.done = done

        def on_receive(self, message: Any) -> None:
            del message
            self.left -= 1
            if not self.left:
                self.left = self.burst
                self.done.set()

    class Parent(base):
        """Asks all its children at once."""

        use_daemon_thread = True

        def __init__(self, children: list[Any]) -> None:
            super().__init__()
            self.children = children

        def on_receive(self, message: Any) -> Any:
            return pykka.get_all([child.ask(message, block=False) for child in self.children])

    class Worker(base):
        """Begins to work when its mailbox is full."""

        use_daemon_thread = True

        def __init__(self, full: threading.Event) -> None:
            super().__init__()
            self.full = full

        def on_receive(self, message: Any) -> None:
            del message
            self.full.wait()
            work()

    return {
        "Echo": Echo,
        "AwaitingEcho": AwaitingEcho,
        "Counter": Counter,
        "Parent": Parent,
        "Worker": Worker,
    }


class PykkaStyle(Contender):
    """A subclass says which classes, and where they live."""

    classes: dict[str, Any]

    def open(self) -> AbstractContextManager[object]:
        """Where the actors live. Leaving it stops them all."""
        raise NotImplementedError

    def spawn(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            refs = []
            start = self.classes["Echo"].start
            with watch as lap:
                for _ in range(load.times):
                    refs.append(start())
                    lap(now())

    def ask(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            ref = self.classes["Echo"].start()
            with watch as lap:
                for _ in range(load.times):
                    ref.ask(MESSAGE)
                    lap(now())

    def ask_awaiting(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            ref = self.classes["AwaitingEcho"].start()
            with watch as lap:
                for _ in range(load.times):
                    ref.ask(MESSAGE)
                    lap(now())

    def tell(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            done = threading.Event()
            ref = self.classes["Counter"].start(load.width, done)
            with watch as lap:
                for _ in range(load.times):
                    done.clear()
                    for _ in range(load.width):
                        ref.tell(MESSAGE)
                        lap(now())
                    done.wait()

    def fan_out(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            parent = self.classes["Parent"].start(
                [self.classes["Echo"].start() for _ in range(load.width)]
            )
            with watch as lap:
                for _ in range(load.times):
                    parent.ask(MESSAGE)
                    lap(now())

    def stop(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            refs = [self.classes["Echo"].start() for _ in range(load.times)]
            with watch as lap:
                for ref in refs:
                    ref.stop()
                    lap(now())

    def shutdown(self, load: Load, watch: Stopwatch) -> None:
        place = self.open()
        place.__enter__()
        for _ in range(load.times):
            self.classes["Echo"].start()
        with watch:
            place.__exit__(None, None, None)
            watch.operations += load.times

    def control(self, load: Load, watch: Stopwatch) -> None:
        with self.open():
            for _ in range(load.times):
                full = threading.Event()
                ref = self.classes["Worker"].start(full)
                for _ in range(load.width):
                    ref.tell(MESSAGE)
                with watch as lap:
                    full.set()
                    ref.stop()
                    lap(now())

    def idle(self, load: Load, probe: Probe) -> None:
        with self.open():
            self.classes["Echo"].start().ask(MESSAGE)
            with probe:
                refs = [self.classes["Echo"].start() for _ in range(load.times)]
            probe.all_idle()
            del refs
