"""Programs that run until they are interrupted.

The argument says which. Each says when it is ready, and its actors say when they stop.
"""

import asyncio
import os
import signal
import sys
import threading
import time

import uvloop

from offbook.runtime import Actor, ActorSystem, ThreadActor

NEVER = 3600.0  # a program that waits for the time limit of something hangs the test


def say(*words):
    # At once, and in one piece, whichever thread says it.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Worker(Actor):
    def __init__(self, name, below=0):
        super().__init__()
        self.name = name
        self.below = below

    def on_start(self):
        for number in range(self.below):
            self.spawn(type(self), f"{self.name}.{number}")

    async def on_receive(self, message):
        say("ready")
        await asyncio.get_running_loop().create_future()

    async def on_stop(self):
        await asyncio.sleep(0)
        say("stopped", self.name)


class ThreadWorker(ThreadActor):
    def on_receive(self, message):
        return message

    def on_stop(self):
        say("stopped thread")


class Blocking(Worker):
    """Holds the event loop, as no actor should."""

    async def on_receive(self, message):
        say("ready")
        time.sleep(NEVER)


class ThreadBlocking(ThreadActor):
    def on_receive(self, message):
        say("ready")
        time.sleep(NEVER)


async def main(worker=Worker):
    async with ActorSystem(stop_timeout=NEVER) as system:
        system.spawn(ThreadWorker)
        await system.spawn(worker, "root", 2).request("go")


def on_the_loop():
    asyncio.run(main())


def on_uvloop():
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def while_a_handler_holds_the_loop():
    asyncio.run(main(Blocking))


def in_thread_asking():
    with ActorSystem.in_thread(stop_timeout=NEVER) as system:
        system.spawn(ThreadWorker)
        system.spawn(Worker, "root", 2).ask("go")


def in_thread_waiting():
    with ActorSystem.in_thread(stop_timeout=NEVER) as system:
        system.spawn(ThreadWorker)
        system.spawn(Worker, "root", 2).tell("go")
        never = threading.Event()
        # A signal that comes between the interpreter's last look and a wait without a limit is not
        # seen until the next signal: CPython's, not the system's.
        while not never.wait(1):
            pass


def in_thread_stuck():
    """A thread that does not end is given up when the time for that is over."""
    with ActorSystem.in_thread(stop_timeout=0.05) as system:
        system.spawn(Worker, "root")
        system.spawn(ThreadBlocking).ask("go")


def default():
    ThreadWorker.start()
    Worker.start("root", 2).ask("go")


if __name__ == "__main__":
    # A program that is started in the background may have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    globals()[sys.argv[1]]()
