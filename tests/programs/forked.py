"""Programs that fork while a system runs in them.

The argument says which. Each prints what its children and itself found, as lines of JSON.
"""

import asyncio
import concurrent.futures
import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from functools import partial

import pykka

from offbook.runtime import Actor, ActorSystem, ThreadActor

FORKS = 25
MANY = 2000
SECONDS = 20  # a child that takes longer is stuck, and is killed


class Echo(Actor):
    def on_receive(self, message):
        return message


class ThreadEcho(ThreadActor):
    def on_receive(self, message):
        return message


def say(**found):
    print(json.dumps(found), flush=True)


def attempt(call):
    try:
        result = call()
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"no error, but {result!r}"


async def send(ref):
    await ref.send("?")


async def request(ref):
    return await ref.request("?", timeout=5)


def attempts(system, refs):
    """All that can be tried with the actors of the parent. Every one has to say that it cannot."""
    found = {}
    for ref in refs:
        calls = {
            "tell": partial(ref.tell, "?"),
            "ask": partial(ref.ask, "?"),
            "ask without blocking": partial(ref.ask, "?", block=False),
            "send": partial(send, ref),
            "request": partial(request, ref),
        }
        # To stop what is not there is no mistake: it is dead already.
        assert not any(ref.stop(block=False, drain=drain).get(timeout=5) for drain in (False, True))
        found |= {
            f"{name} {ref.actor_class.__name__}": attempt(call) for name, call in calls.items()
        }
    return found | {
        "spawn": attempt(partial(system.spawn, Echo)),
        "spawn thread": attempt(partial(system.spawn, ThreadEcho)),
    }


def own_system():
    """A child process can have a system of its own, of either kind."""
    replies = []
    with ActorSystem.in_thread() as system:
        refs = [system.spawn(kind) for kind in (Echo, ThreadEcho) for _ in range(20)]
        replies.extend(ref.ask(number) for number, ref in enumerate(refs))
        registered = sorted(ref.path for ref in pykka.ActorRegistry.get_all()) == sorted(
            ref.path for ref in refs
        )
        pykka.ActorRegistry.stop_all()
        replies.append(any(ref.is_alive() for ref in refs))

    async def main():
        async with ActorSystem() as system:
            return await system.spawn(Echo).request("on a loop")

    return {
        "own": replies == [*range(40), False],
        "loop": asyncio.run(main()),
        "registered": registered,
    }


def forked(child):
    """Fork, and return what `child` returned there."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)
        try:
            os.write(writing, json.dumps(child()).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _pid, status = os.waitpid(pid, 0)
    return {"status": status, **(json.loads(text) if text else {})}


def while_threads_send():
    """Threads send, spawn and stop all the time: so that a lock is held in the middle of something
    when the fork comes.
    """
    over = threading.Event()

    def trouble(ref, system):
        while not over.is_set():
            for _ in range(20):
                ref.tell("!")
            ref.ask("!")
            system.spawn(Echo).stop()

    def look_up():
        while not over.is_set():
            # pykka's own lock is held all the while, and every spawn needs it.
            pykka.ActorRegistry.get_by_class_name("Nobody")

    def start():
        while not over.is_set():
            Echo.start().stop()

    with ActorSystem.in_thread() as system:
        refs = [system.spawn(Echo), system.spawn(ThreadEcho)]
        for _ in range(MANY):
            system.spawn(Echo)
        threads = [threading.Thread(target=trouble, args=(ref, system)) for ref in refs * 2]
        threads += [threading.Thread(target=look_up), threading.Thread(target=start)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(FORKS):
                found = forked(lambda: {"attempts": attempts(system, refs), **own_system()})
                say(child=found, parent=[ref.ask("!") for ref in refs])
                if found["status"]:
                    break  # the others would get stuck, too
        finally:
            over.set()
            for thread in threads:
                thread.join()


def on_the_loop():
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(Echo), system.spawn(ThreadEcho)]
            await asyncio.gather(*(ref.request("!") for ref in refs))
            found = forked(lambda: {"attempts": attempts(system, refs), **own_system()})
            say(child=found, parent=[await ref.request("!") for ref in refs])

    asyncio.run(main())


def in_a_handler():
    class Forker(Actor):
        def on_receive(self, refs):
            return forked(
                lambda: {
                    "attempts": attempts(self.actor_system, refs),
                    "child": attempt(partial(self.spawn, Echo)),
                    **own_system(),
                }
            )

    with ActorSystem.in_thread(slow_handler=SECONDS) as system:
        refs = [system.spawn(Echo), system.spawn(ThreadEcho)]
        say(child=system.spawn(Forker).ask(refs), parent=[ref.ask("!") for ref in refs])


def default_system():
    """`MyActor.start()` in the child makes it a default system of its own; and both processes end
    by themselves.
    """
    refs = [Echo.start(), ThreadEcho.start()]
    assert [ref.ask("!") for ref in refs] == ["!", "!"]
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)
        system = refs[0]._cell.system
        say(
            child={
                "status": 0,
                "attempts": attempts(system, refs),
                **own_system(),
                "start": Echo.start().ask("mine"),
            }
        )
        return
    _pid, status = os.waitpid(pid, 0)
    say(status=status, parent=[ref.ask("!") for ref in refs])


shared = {}  # what children of multiprocessing inherit


def work(_number):
    return {"attempts": attempts(shared["system"], shared["refs"]), **own_system()}


def with_multiprocessing():
    context = multiprocessing.get_context("fork")
    with ActorSystem.in_thread() as system:
        shared.update(system=system, refs=[system.spawn(Echo), system.spawn(ThreadEcho)])
        with context.Pool(2) as pool:
            for found in pool.map(work, range(4)):
                say(child={"status": 0, **found})
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            for found in pool.map(work, range(4)):
                say(child={"status": 0, **found})
        say(parent=[ref.ask("!") for ref in shared["refs"]])


if __name__ == "__main__":
    # Newer Pythons warn of any fork beside threads.
    warnings.simplefilter("ignore", DeprecationWarning)
    globals()[sys.argv[1]]()
