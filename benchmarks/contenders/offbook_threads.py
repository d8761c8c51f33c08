"""offbook as a drop-in for pykka, in a program without an event loop: both kinds of actor, with
pykka's API, used from an ordinary thread.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import perf_counter_ns as now
from typing import Any, ClassVar

from benchmarks.contenders.base import Load
from benchmarks.contenders.pykka_style import PykkaStyle, classes_on
from benchmarks.contenders.work import MESSAGE
from benchmarks.lab.measure import Stopwatch
from offbook.runtime import Actor, ActorSystem, ThreadActor

__all__ = ["OffbookFromThread", "OffbookThreadActor"]


class OffbookThreadActor(PykkaStyle):
    key = "offbook-thread-actor"
    title = "offbook, ThreadActor"
    what = "ThreadActor, used from a plain thread as pykka's are"
    distribution = "offbook"
    classes = classes_on(ThreadActor)
    most_idle = 10_000  # as pykka

    def open(self) -> AbstractContextManager[object]:
        return ActorSystem.in_thread(loop_factory=self.loop_factory)


class GatheringParent(Actor):
    """On the loop, a handler awaits its children instead of blocking."""

    def __init__(self, children: list[Any]) -> None:
        super().__init__()
        self.children = children

    async def on_receive(self, message: Any) -> Any:
        replies = [child.ask(message, block=False) for child in self.children]
        return [await reply for reply in replies]


class OffbookFromThread(PykkaStyle):
    key = "offbook-from-thread"
    title = "offbook, from a thread"
    what = "Actor on a loop in the background, used from a plain thread as pykka's are"
    distribution = "offbook"
    classes: ClassVar = {**classes_on(Actor), "Parent": GatheringParent}

    def open(self) -> AbstractContextManager[object]:
        return ActorSystem.in_thread(loop_factory=self.loop_factory)

    def control(self, load: Load, watch: Stopwatch) -> None:
        """No handler may block the loop until the mailbox is full, as the others' do: this actor
        has begun to work by then.
        """
        with self.open():
            for _ in range(load.times):
                ref = self.classes["Worker"].start(_OPEN_GATE)
                for _ in range(load.width):
                    ref.tell(MESSAGE)
                with watch as lap:
                    ref.stop()
                    lap(now())


class _OpenGate:
    def wait(self) -> None: ...


_OPEN_GATE = _OpenGate()
