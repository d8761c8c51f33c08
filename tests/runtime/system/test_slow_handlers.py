"""A handler or hook that blocks the loop for long: a warning names the actor and the handler, and
says what to do.
"""

import asyncio
import gc
import sys
import time

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    Actor,
    ActorSystem,
    Backoff,
    Restart,
    Runner,
    ScriptedModel,
    Stop,
    ThreadActor,
    ToolCalls,
)
from offbook.runtime.system import loop_meter

LIMIT = 0.01
AT_ONCE = Restart(backoff=Backoff(initial=0))


def block():
    time.sleep(2 * LIMIT)  # this is what it is about


class Blocking:
    """Blocks in the hook that it is told: in the first instance, or in the second one with
    "again".
    """

    def __init__(self, where, made):
        super().__init__()
        made.append(self)
        self.where, self.first = where, len(made) == 1
        self.block_in("__init__")

    def block_in(self, hook):
        if self.where == (hook if self.first else f"{hook} again"):
            block()

    def on_start(self):
        self.block_in("on_start")

    def on_receive(self, message):
        if message == "child":
            self.spawn(type(self), "", [None]).tell("fail")
        elif message == "fail":
            self.block_in("on_receive and fails")
            raise ValueError(message)
        else:
            self.block_in("on_receive")
        return message

    def method(self):
        self.block_in("method")

    def on_stop(self):
        self.block_in("on_stop")

    def on_failure(self, *args):
        self.block_in("on_failure")

    def on_child_failure(self, ref, error):
        self.block_in("on_child_failure")
        return Stop()


class AsyncBlocking(Blocking):
    """Blocks in a step that is not the first, between two waits."""

    async def on_start(self):
        await asyncio.sleep(0)
        super().on_start()
        await asyncio.sleep(0)

    async def on_receive(self, message):
        await asyncio.sleep(0)
        reply = super().on_receive(message)
        await asyncio.sleep(0)
        return reply

    async def method(self):
        await asyncio.sleep(0)
        super().method()
        await asyncio.sleep(0)

    async def on_stop(self):
        await asyncio.sleep(0)
        super().on_stop()
        await asyncio.sleep(0)

    async def on_failure(self, *args):
        await asyncio.sleep(0)
        super().on_failure(*args)
        await asyncio.sleep(0)

    async def on_child_failure(self, ref, error):
        await asyncio.sleep(0)
        directive = super().on_child_failure(ref, error)
        await asyncio.sleep(0)
        return directive


def of(kind, mixin):
    """A class of its own for each test: a handler of one class is warned about once in a while."""
    return type(mixin.__name__, (mixin, kind), {})


async def use(system, actor_class, where):
    """Make the actor come to all its hooks."""
    ref = system.spawn(actor_class, where, [], supervision=AT_ONCE, name="it")
    assert await ref.request("m") == "m"
    await ref.proxy().method()
    await ref.request("child")
    ref.tell("fail")
    assert await ref.request("m") == "m"
    while system.stats().actors > 1:
        await asyncio.sleep(0)
    await ref.stop()


WHERE = {
    "on_receive": "on_receive",
    "on_receive and fails": "on_receive",
    "method": "method",
    "on_start": "on_start",
    "on_start again": "on_start",
    "on_stop again": "on_stop",
    "on_failure": "on_failure",
    "on_child_failure": "on_child_failure",
}


@pytest.mark.parametrize("mixin", [Blocking, AsyncBlocking], ids=lambda mixin: mixin.__name__)
@pytest.mark.parametrize("where", WHERE)
def test_whatever_blocks_the_loop_is_named_in_a_warning(run, warnings, where, mixin):
    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await use(system, of(Actor, mixin), where)

    run(main())
    about = [text for text in warnings() if f" in {WHERE[where]}:" in text]
    assert len(about) == 1, warnings()
    for part in (
        "it blocked the event loop for",
        "0.0",
        "Await instead of blocking",
        "run_blocking",
        "ThreadActor",
    ):
        assert part in about[0]


def test_an_init_that_blocks_the_loop_at_a_restart_is_named_in_a_warning(run, warnings):
    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await use(system, of(Actor, Blocking), "__init__ again")

    run(main())
    assert any("it blocked the event loop" in text and "__init__" in text for text in warnings()), (
        warnings()
    )


@pytest.mark.parametrize("mixin", [Blocking, AsyncBlocking], ids=lambda mixin: mixin.__name__)
@pytest.mark.parametrize("where", ["on_receive", "on_start", "on_stop again", "on_child_failure"])
def test_a_thread_actor_may_block(run, warnings, where, mixin):
    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await use(system, of(ThreadActor, mixin), where)

    run(main())
    assert not [text for text in warnings() if "it held" in text]


def test_to_wait_is_not_to_block(run, warnings, gate):
    class Patient(Actor):
        async def on_receive(self, message):
            await gate.wait()

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            reply = asyncio.ensure_future(system.spawn(Patient, name="it").request("m"))
            await gate.reached()
            await asyncio.sleep(3 * LIMIT)  # so long that a measure of the whole would see it
            gate.open()
            await reply

    run(main())
    assert not [text for text in warnings() if text.startswith("it ")]


def test_a_limit_that_is_not_reached_warns_of_nothing(run, warnings):
    async def main():
        async with ActorSystem(slow_handler=60) as system:
            await use(system, of(Actor, Blocking), "on_receive")

    run(main())
    assert warnings() == []


def test_a_handler_that_always_blocks_does_not_fill_the_log(run, warnings):
    class Slow(Actor):
        def on_receive(self, message):
            block()

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            for _ in range(3):
                ref = system.spawn(Slow)
                for _ in range(3):
                    await ref.request("m")

    run(main())
    assert len(warnings()) == 1


def test_the_slowest_handler_is_in_the_stats(run, kind):
    async def main():
        async with ActorSystem(slow_handler=60) as system:
            await use(system, of(kind, Blocking), "method")
            slowest = system.stats().slowest_handler
            assert (slowest.actor, slowest.handler) == ("it", "method")
            assert slowest.seconds >= 2 * LIMIT

    run(main())


@pytest.fixture
def without_processor(monkeypatch):
    """What the machine says: for how many seconds the thread has waited for a processor."""
    waited = [0.0]
    monkeypatch.setattr(loop_meter, "seconds_without_processor", lambda: waited[0])
    return waited


@pytest.mark.parametrize("is_async", [False, True])
def test_a_thread_that_waits_for_a_processor_holds_nothing(
    run, warnings, without_processor, is_async
):
    class Unlucky(Actor):
        def on_receive(self, message):
            block()
            without_processor[0] += 60

    class AsyncUnlucky(Unlucky):
        async def on_receive(self, message):
            super().on_receive(message)

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await system.spawn(AsyncUnlucky if is_async else Unlucky).request("m")

    run(main())
    assert warnings() == []


def test_the_rest_of_the_time_is_still_held(run, warnings, without_processor):
    class Slow(Actor):
        def on_receive(self, message):
            block()
            without_processor[0] += LIMIT / 10

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await system.spawn(Slow).request("m")

    run(main())
    assert len(warnings()) == 1


def test_an_import_is_made_once_and_not_warned_about(run, warnings, monkeypatch):
    class Importing(Actor):
        def on_receive(self, message):
            block()
            monkeypatch.setitem(sys.modules, f"imported_in_{message}", sys)

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            ref = system.spawn(Importing, name="it")
            await ref.request("once")
            assert warnings() == []
            await ref.request("once")

    run(main())
    assert len(warnings()) == 1  # nothing was imported any more, and it is slow all the same


@pytest.fixture
def no_collections():
    """None but those that a test asks for."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_is_named_where_it_has_run(run, warnings, no_collections, collects):
    class Slow(Actor):
        def on_receive(self, message):
            block()
            if collects:
                gc.collect()

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await system.spawn(Slow).request("m")

    run(main())
    (text,) = warnings()
    assert ("garbage collector" in text) is collects
    assert "Slow" in text


def test_an_agent_that_blocks_is_named_with_what_to_do_about_it(run, warnings):
    @tool
    async def look_up() -> str:
        """Look it up."""
        block()
        return "found"

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            agent = ChatModelAgent(
                name="Librarian",
                tools=[look_up],
                model=ScriptedModel([ToolCalls(look_up={}), ToolCalls(look_up={}), "done"]),
            )
            await Runner(agent, system=system).query("where?")

    run(main())
    (text,) = [text for text in warnings() if "Librarian" in text]
    assert "`async def`" in text
    assert "a plain `def`" in text
    assert "ThreadActor" not in text
