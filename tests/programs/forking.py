"""Programs that fork while a store, or a Runner, is in use.

The first argument says which, the second is the recipe of a store. Each prints lines of JSON.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

from offbook import runtime
from offbook.runtime import ActorSystem, MemoryStore, Runner
from offbook.runtime.system.fork import starting
from offbook.runtime.system.threaded import ThreadedSystem
from tests.doubles.agents import PlannedAgent

SECONDS = 30
FORKS = 20


def say(**found):
    print(json.dumps(found), flush=True)


def fork(child):
    """Fork, and let the child do that. Returns its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)
        code = 1
        try:
            child()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid


def code_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def named(part):
    """The descriptors of this process that lead to files of that name."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(descriptor.readlink().name)
    return sorted(name for name in found if part in name)


def goes_on(store):
    """The parent uses the store and ends; the child goes on writing until it is told to stop, and
    says how much it has written.
    """
    use(store)
    reading, writing = os.pipe()

    def child():
        os.close(writing)
        asyncio.run(store.get("key"))
        os.read(reading, 1)  # until the parent has ended
        asyncio.run(store.append("of child", [b"first"]))
        say(child="writes")
        told = threading.Thread(target=sys.stdin.readline)
        told.start()
        written = 1
        while told.is_alive():
            asyncio.run(store.append("of child", [b"x" * 3000]))
            written += 1
        store.close()
        say(written=written)

    fork(child)
    os.close(reading)
    store.close()


def use(store):
    """Write something, and close the store."""
    for _ in range(50):
        asyncio.run(store.append("journal", [b"x" * 3000]))


def while_writing(store):
    """Children that are forked while the store writes and watches can use it; nothing of the
    parent's is lost.
    """
    written, stop = [0], threading.Event()

    def write():
        async def main():
            while not stop.is_set():
                await asyncio.gather(
                    *(store.append(f"journal {number}", [b"x" * 500]) for number in range(20))
                )
                written[0] += 20

        asyncio.run(main())

    watch = store.watch(["journal 0"], lambda: None)
    thread = threading.Thread(target=write)
    thread.start()
    inherited = set()
    codes = []
    for number in range(FORKS):
        reading, writing = os.pipe()

        def child(number=number, writing=writing):
            os.write(writing, json.dumps(named(".db")).encode())
            asyncio.run(store.append("of children", [str(number).encode()]))
            store.close()

        pid = fork(child)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            inherited.update(json.loads(pipe.readline() or "[]"))
        codes.append(code_of(pid))
    stop.set()
    thread.join()
    watch.close()

    async def count():
        return sum([len(await store.read(f"journal {number}")) for number in range(20)]), len(
            await store.read("of children")
        )

    of_parent, of_children = asyncio.run(count())
    say(
        codes=codes,
        inherited=sorted(inherited),
        lost=written[0] - of_parent,
        of_children=of_children,
    )


def owner(store):
    """The parent is an owner that claims a key, and waits, with a child that lives on."""

    async def claim():
        await store.keep_alive("parent", 600, first=True)
        return await store.claim("run", "parent")

    claim = asyncio.run(claim())

    def child():
        sys.stdin.readline()

    pid = fork(child)
    # It is the owner still.
    asyncio.run(store.commit(claim, [runtime.stores.Put("run", b"parent")]))
    say(child=pid)
    sys.stdin.readline()


def watched(store):
    """What a parent has watched since before a fork is told of changes after it."""
    told = threading.Event()
    asyncio.run(store.set("key", b"0"))
    watch = store.watch(["key"], told.set)
    told.wait(SECONDS)  # it is armed
    code = code_of(fork(lambda: asyncio.run(store.set("other", b"1"))))
    told.clear()
    asyncio.run(store.set("key", b"2"))
    say(code=code, told=told.wait(SECONDS))
    watch.close()


def beginning(_store):
    """A child that is forked while other threads begin runs can begin its own."""
    stop = threading.Event()
    runner = Runner(PlannedAgent("A", "hello"))

    def begin():
        while not stop.is_set():
            runner.query("go").result()

    threads = [threading.Thread(target=begin) for _ in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    for _ in range(FORKS):
        codes.append(code_of(fork(lambda: runner.query("go").result().raise_for_error())))
    stop.set()
    for thread in threads:
        thread.join()
    say(codes=codes)


def making_the_default(_store):
    """A fork waits for the thread that makes the default system, and that thread does not wait for
    the fork.
    """
    is_making, may_make, codes = threading.Event(), threading.Event(), []
    make = ThreadedSystem.named

    def gated(name):
        is_making.set()
        may_make.wait(SECONDS)
        return make(name)

    def run():
        Runner(PlannedAgent("A", "hello")).query("go").result().raise_for_error()

    ThreadedSystem.named = gated
    making = threading.Thread(target=run)
    making.start()
    is_making.wait(SECONDS)
    ThreadedSystem.named = make
    forking = threading.Thread(target=lambda: codes.append(code_of(fork(run))))
    forking.start()
    while starting.acquire(blocking=False):  # until the fork has begun to take the locks
        starting.release()
    may_make.set()
    for thread in (making, forking):
        thread.join(SECONDS)
    say(codes=codes)


def parents_system(_store):
    """In a child, a Runner with the parent's system, and a run of the parent's, are errors at
    once.
    """
    with ActorSystem.in_thread() as system:
        runner = Runner(PlannedAgent("A", lambda _context: asyncio.Event().wait()), system=system)
        own = Runner(PlannedAgent("A", "hello"))
        run, of_own = runner.query("go"), own.query("go")
        run.start()
        of_own.start()

        def child():
            async def on_a_loop():
                return await runner.query("go")

            attempts = {
                "query": lambda: runner.query("go").result(),
                "detached": lambda: runner.query("go", detached=True),
                "iterated": lambda: list(runner.query("go")),
                "on a loop": lambda: asyncio.run(on_a_loop()),
                "of the parent": run.result,
            }
            said = {}
            for name, attempt in attempts.items():
                try:
                    said[name] = repr(attempt())
                except Exception as error:
                    said[name] = f"{type(error).__name__}: {error}"
            say(said=said, own=own.query("go").result().status.value)

        code = code_of(fork(child))
        run.cancel()
        say(code=code, parent=[run.result().status.value, of_own.result().status.value])


def in_memory(_store):
    """A store in memory is the parent's."""
    store = MemoryStore()
    asyncio.run(store.set("key", b"v"))

    def child():
        try:
            asyncio.run(store.get("key"))
        except Exception as error:
            say(said=f"{type(error).__name__}: {error}")
        store.close()

    say(code=code_of(fork(child)), parent=asyncio.run(store.get("key")).decode())


if __name__ == "__main__":
    # Newer Pythons warn of any fork beside threads.
    warnings.simplefilter("ignore", DeprecationWarning)
    made = None
    if len(sys.argv) > 2:
        kind, args, kwargs = json.loads(sys.argv[2])
        made = getattr(runtime, kind)(*args, **kwargs)
    globals()[sys.argv[1]](made)
    if made is not None:
        made.close()
