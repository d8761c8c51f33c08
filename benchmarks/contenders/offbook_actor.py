"""offbook's `Actor` on the event loop, used from that loop: `await ref.request(...)`,
`ref.tell(...)`, `await ref.stop()`.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns as now
from typing import Any

from benchmarks.contenders.base import AsyncContender, Load, Probe
from benchmarks.contenders.work import MESSAGE, work
from benchmarks.lab.measure import Stopwatch
from offbook.runtime import Actor, ActorSystem

__all__ = ["OffbookActor"]


class Echo(Actor):
    def on_receive(self, message: Any) -> Any:
        return message


class AwaitingEcho(Actor):
    async def on_receive(self, message: Any) -> Any:
        await asyncio.sleep(0)
        return message


class Counter(Actor):
    """Says when it has handled a burst."""

    def __init__(self, burst: int, done: asyncio.Event) -> None:
        super().__init__()
        self.burst = self.left = burst
        self.done = done

    def on_receive(self, message: Any) -> None:
        del message
        self.left -= 1
        if not self.left:
            self.left = self.burst
            self.done.set()


class Parent(Actor):
    """Asks all its children at once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.children = [self.spawn(Echo) for _ in range(width)]

    async def on_receive(self, message: Any) -> Any:
        # Quicker by a third than to gather requests, which makes a task for each.
        replies = [child.ask(message, block=False) for child in self.children]
        return [await reply for reply in replies]


class Worker(Actor):
    def on_receive(self, message: Any) -> None:
        del message
        work()


class OffbookActor(AsyncContender):
    key = "offbook"
    title = "offbook"
    what = "Actor on the event loop, used from that loop"
    distribution = "offbook"

    async def spawn(self, load: Load, watch: Stopwatch) -> None:
        async with ActorSystem() as system:
            refs = []
            with watch as lap:
                for _ in range(load.times):
                    refs.append(system.spawn(Echo))
                    lap(now())
                await asyncio.sleep(0)

    async def ask(self, load: Load, watch: Stopwatch) -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Echo)
            with watch as lap:
                for _ in range(load.times):
                    await ref.request(MESSAGE)
                    lap(now())

    async def ask_awaiting(self, load: Load, watch: Stopwatch) -> None:
        async with ActorSystem() as system:
            ref = system.spawn(AwaitingEcho)
            with watch as lap:
                for _ in range(load.times):
                    await ref.request(MESSAGE)
                    lap(now())

    async def tell(self, load: Load, watch: Stopwatch) -> None:
        async with ActorSystem() as system:
            done = asyncio.Event()
            ref = system.spawn(Counter, load.width, done)
            with watch as lap:
                for _ in range(load.times):
                    done.clear()
                    for _ in range(load.width):
                        ref.tell(MESSAGE)
                        lap(now())
                    await done.wait()

    async def fan_out(self, load: Load, watch: Stopwatch) -> None:
        async with ActorSystem() as system:
            parent = system.spawn(Parent, load.width)
            await parent.request(MESSAGE)
            with watch as lap:
                for _ in range(load.times):
                    await parent.request(MESSAGE)
                    lap(now())

    async def stop(self, load: Load, watch: Stopwatch) -> None:
        async with ActorSystem() as system:
            refs = [system.spawn(Echo) for _ in range(load.times)]
            with watch as lap:
                for ref in refs:
                    await ref.stop()
                    lap(now())

    async def shutdown(self, load: Load, watch: Stopwatch) -> None:
        system = ActorSystem()
        await system.start()
        for _ in range(load.times):
            system.spawn(Echo)
        await asyncio.sleep(0)
        with watch:
            await system.stop()
            watch.operations += load.times

    async def control(self, load: Load, watch: Stopwatch) -> None:
        """`stop()` overtakes the work.

        Until it returns, each message that was left has become a dead letter.
        """
        async with ActorSystem() as system:
            for _ in range(load.times):
                ref = system.spawn(Worker)
                for _ in range(load.width):
                    ref.tell(MESSAGE)
                await asyncio.sleep(0)  # it begins to work
                with watch as lap:
                    await ref.stop()
                    lap(now())

    async def idle(self, load: Load, probe: Probe) -> None:
        async with ActorSystem() as system:
            await system.spawn(Echo).request(MESSAGE)
            with probe:
                refs = [system.spawn(Echo) for _ in range(load.times)]
                await asyncio.sleep(0)
            probe.all_idle()
            del refs
