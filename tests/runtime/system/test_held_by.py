"""The warning about what has held the loop names the code that did, and what to do about code of
that kind.
"""

import asyncio
import sys
import threading
import time

import pytest

from offbook.actors import ChatModelAgent, input_guardrail, tool
from offbook.actors import GuardrailFunctionOutput as Found
from offbook.runtime import (
    Actor,
    ActorSystem,
    MemoryStore,
    RunHooks,
    Runner,
    ScriptedModel,
    ToolCalls,
)
from offbook.runtime.system.loop_sampler import LoopSampler

LIMIT = 0.02


def block_deep_down():
    time.sleep(10 * LIMIT)  # this is what it is about: long enough to be seen on a busy machine


def in_a_tool():
    @tool
    async def look_up() -> str:
        """Look it up."""
        block_deep_down()
        return "found"

    return ChatModelAgent(
        name="A", tools=[look_up], model=ScriptedModel([ToolCalls(look_up={}), "done"])
    ), None


def in_an_instruction():
    def instruction(context):
        block_deep_down()
        return "Be brief."

    return ChatModelAgent(name="A", instruction=instruction, model=ScriptedModel(["done"])), None


def in_a_hook():
    class Hooks(RunHooks):
        def on_agent_start(self, context, agent):
            block_deep_down()

    return ChatModelAgent(name="A", model=ScriptedModel(["done"])), Hooks()


def in_a_guardrail():
    @input_guardrail(run_in_parallel=False)
    def polite(context, agent, value):
        block_deep_down()
        return Found()

    return ChatModelAgent(name="A", input_guardrails=[polite], model=ScriptedModel(["done"])), None


@pytest.mark.parametrize(
    ("where", "advice"),
    [
        (in_a_tool, "If a tool must block, make it a plain `def`"),
        (in_an_instruction, "An instruction"),
        (in_a_hook, "A hook runs"),
        (in_a_guardrail, "A guardrail"),
    ],
)
def test_the_line_that_held_the_loop_is_named_with_what_to_do_about_such_code(
    run, warnings, where, advice
):
    agent, hooks = where()

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await Runner(agent, system=system, hooks=hooks).query("q")

    run(main())
    (text,) = [text for text in warnings() if "blocked the event loop" in text]
    assert f"It was at block_deep_down ({__file__}:" in text
    assert advice in text


def test_the_handler_of_an_actor_is_named_by_its_line(run, warnings):
    class Slow(Actor):
        def on_receive(self, message):
            block_deep_down()

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await system.spawn(Slow).request("m")

    run(main())
    (text,) = warnings()
    assert "It was at block_deep_down" in text
    assert "ThreadActor" in text


def test_what_a_library_does_is_named_with_the_line_that_has_called_it(run, warnings):
    class Slow(Actor):
        def on_receive(self, message):
            threading.Event().wait(10 * LIMIT)

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await system.spawn(Slow).request("m")

    run(main())
    (text,) = warnings()
    assert "on_receive" in text
    assert "in its call of" in text


def test_without_a_system_of_ones_own_it_is_named_too(run, warnings):
    @tool
    async def look_up() -> str:
        """Look it up."""
        time.sleep(0.5)
        return "found"

    async def main():
        await Runner(
            ChatModelAgent(
                name="A", tools=[look_up], model=ScriptedModel([ToolCalls(look_up={}), "done"])
            )
        ).query("q")

    run(main())
    (text,) = [text for text in warnings() if "blocked the event loop" in text]
    assert "look_up" in text
    assert __file__ in text


def test_the_librarys_own_imports_are_not_warned_about(run, warnings, monkeypatch):
    class Importing(Actor):
        def on_receive(self, message):
            block_deep_down()
            monkeypatch.setitem(sys.modules, "offbook.runtime.imported_meanwhile", sys)

    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await system.spawn(Importing).request("m")

    run(main())
    assert warnings() == []


def test_a_run_leaves_no_thread_and_an_idle_system_has_none(run):
    async def main():
        async with ActorSystem(slow_handler=LIMIT) as system:
            await Runner(
                ChatModelAgent(name="A", model=ScriptedModel(["done"])),
                system=system,
                store=MemoryStore(),
            ).query("q")
            sampler = system.monitor._meter.sampler
            while sampler._is_there:
                await asyncio.sleep(LIMIT)

    run(main())


def test_a_sampler_that_is_stopped_ends_at_once_and_may_be_told_again():
    sampler = LoopSampler(30.0)
    sampler.at_work()
    wake = sampler._wake
    sampler.stop()
    assert wake.is_set()
    assert not sampler._is_there
    sampler.at_work()
    assert sampler._wake is not wake
    sampler.stop()
