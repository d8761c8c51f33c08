"""Programs without an event loop, each of which has to end by itself.

The argument says which; the second one, how it ends.
"""

import asyncio
import os
import sys
import threading

from offbook.runtime import Actor, ActorSystem, ThreadActor


def say(*words):
    # At once, and in one piece, whichever thread says it.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Greeter(Actor):
    async def on_receive(self, message):
        await asyncio.sleep(0)
        return f"hello {message}"

    async def on_stop(self):
        await asyncio.sleep(0)
        say("stopped", type(self).__name__)


class ThreadGreeter(ThreadActor):
    def on_receive(self, message):
        return f"hello {message} from {threading.current_thread().name}"

    def on_stop(self):
        say("stopped", type(self).__name__)


class Busy(Actor):
    """Has always something to do."""

    def on_start(self):
        self.actor_ref.tell("again")

    def on_receive(self, message):
        self.actor_ref.tell("again")

    def on_stop(self):
        say("stopped", type(self).__name__)


class Waiting(Actor):
    """Waits in its handler for what never comes."""

    async def on_receive(self, message):
        say("waiting")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            say("interrupted")


def in_thread():
    with ActorSystem.in_thread() as system:
        say(system.spawn(Greeter).ask("world"))
        say(system.spawn(ThreadGreeter, name="mine").ask("world"))
        finish()


def start_only():
    say(Greeter.start().ask("world"))
    say(ThreadGreeter.start().ask("world"))
    finish()


class Delegating(Actor):
    """Uses the worker threads that asyncio has by itself."""

    async def on_receive(self, message):
        return await asyncio.to_thread(str.upper, message)


def start_and_delegate():
    say(Delegating.start().ask("done"))
    finish()


def start_and_be_busy():
    Busy.start()
    finish()


def start_and_wait():
    future = Waiting.start().ask("go", block=False)
    while not future.done() and not Greeter.start().ask("sync"):
        pass
    finish()


def run_forgotten():
    """A system that is started on a loop and never left."""

    async def main():
        await ActorSystem().start()
        say(await Greeter.start().request("world"))

    asyncio.run(main())
    finish()


def finish():
    how = sys.argv[2]
    if how == "raise":
        raise ZeroDivisionError
    if how == "exit":
        sys.exit(3)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
