"""Bare asyncio: a task and a queue for each actor.

The cost of an actor without supervision, refs or bounds; asking a dead one gets no answer.

`ask` puts a message and a future, and awaits the future. `stop` cancels the task and awaits it.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns as now
from typing import Any, ClassVar, NamedTuple

from benchmarks.contenders.base import AsyncContender, Load, Probe
from benchmarks.contenders.work import MESSAGE, work
from benchmarks.lab.measure import Stopwatch

__all__ = ["AsyncioTasks"]

Inbox = asyncio.Queue[tuple[Any, asyncio.Future[Any] | None]]


class Ref(NamedTuple):
    inbox: Inbox
    task: asyncio.Task[None]

    async def ask(self, message: Any) -> Any:
        reply = asyncio.get_running_loop().create_future()
        self.inbox.put_nowait((message, reply))
        return await reply

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


def start(behaviour: Any, *args: Any) -> Ref:
    inbox: Inbox = asyncio.Queue()
    return Ref(inbox, asyncio.create_task(behaviour(inbox, *args)))


async def echo(inbox: Inbox) -> None:
    while True:
        message, reply = await inbox.get()
        if reply is not None:
            reply.set_result(message)


async def awaiting_echo(inbox: Inbox) -> None:
    while True:
        message, reply = await inbox.get()
        await asyncio.sleep(0)
        if reply is not None:
            reply.set_result(message)


async def counter(inbox: Inbox, burst: int, done: asyncio.Event) -> None:
    """Says when it has handled a burst."""
    left = burst
    while True:
        await inbox.get()
        left -= 1
        if not left:
            left = burst
            done.set()


async def parent(inbox: Inbox, children: list[Ref]) -> None:
    """Asks all its children at once."""
    loop = asyncio.get_running_loop()
    while True:
        message, reply = await inbox.get()
        replies = [loop.create_future() for _ in children]
        for child, its_reply in zip(children, replies, strict=True):
            child.inbox.put_nowait((message, its_reply))
        result = [await its_reply for its_reply in replies]
        if reply is not None:
            reply.set_result(result)


async def worker(inbox: Inbox) -> None:
    while True:
        await inbox.get()
        work()
        await asyncio.sleep(0)  # without it, it could not be stopped before its queue is empty


class AsyncioTasks(AsyncContender):
    key = "asyncio"
    title = "bare asyncio"
    what = "a task and a queue per actor"
    distribution = "offbook"  # it comes with Python: nothing to install

    differs: ClassVar = dict.fromkeys(
        ("stop", "shutdown", "control"), "a caller that had asked would wait for ever"
    )

    @classmethod
    def version(cls) -> str:
        return "of this Python"

    async def spawn(self, load: Load, watch: Stopwatch) -> None:
        refs = []
        with watch as lap:
            for _ in range(load.times):
                refs.append(start(echo))
                lap(now())
            await asyncio.sleep(0)  # they get to their queues

    async def ask(self, load: Load, watch: Stopwatch) -> None:
        ref = start(echo)
        with watch as lap:
            for _ in range(load.times):
                await ref.ask(MESSAGE)
                lap(now())

    async def ask_awaiting(self, load: Load, watch: Stopwatch) -> None:
        ref = start(awaiting_echo)
        with watch as lap:
            for _ in range(load.times):
                await ref.ask(MESSAGE)
                lap(now())

    async def tell(self, load: Load, watch: Stopwatch) -> None:
        done = asyncio.Event()
        ref = start(counter, load.width, done)
        with watch as lap:
            for _ in range(load.times):
                done.clear()
                for _ in range(load.width):
                    ref.inbox.put_nowait((MESSAGE, None))
                    lap(now())
                await done.wait()

    async def fan_out(self, load: Load, watch: Stopwatch) -> None:
        ref = start(parent, [start(echo) for _ in range(load.width)])
        await ref.ask(MESSAGE)
        with watch as lap:
            for _ in range(load.times):
                await ref.ask(MESSAGE)
                lap(now())

    async def stop(self, load: Load, watch: Stopwatch) -> None:
        refs = [start(echo) for _ in range(load.times)]
        await asyncio.sleep(0)
        with watch as lap:
            for ref in refs:
                await ref.stop()
                lap(now())

    async def shutdown(self, load: Load, watch: Stopwatch) -> None:
        refs = [start(echo) for _ in range(load.times)]
        await asyncio.sleep(0)
        with watch:
            for ref in refs:
                ref.task.cancel()
            await asyncio.wait([ref.task for ref in refs])
            watch.operations += load.times

    async def control(self, load: Load, watch: Stopwatch) -> None:
        """Cancelling overtakes the work. A caller that had asked would wait for ever."""
        for _ in range(load.times):
            ref = start(worker)
            for _ in range(load.width):
                ref.inbox.put_nowait((MESSAGE, None))
            await asyncio.sleep(0)  # it begins to work
            with watch as lap:
                await ref.stop()
                lap(now())

    async def idle(self, load: Load, probe: Probe) -> None:
        first = start(echo)  # kept, because the loop keeps no task
        await first.ask(MESSAGE)
        with probe:
            refs = [start(echo) for _ in range(load.times)]
            await asyncio.sleep(0)
        probe.all_idle()
        del refs
