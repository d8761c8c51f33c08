"""Runs that are cancelled, drained or left at awkward moments: while they are opened or kept,
twice, with a consumer that does not read, with tools under way.
"""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    MemoryStore,
    Message,
    RunHooks,
    Runner,
    ScriptedModel,
    StoreError,
    ToolCall,
)
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import Echo, Gate, HeldStore, beside, echoing, soon, turns


async def ended(play):
    """How it has ended: its status, or what was raised."""
    try:
        return (await soon(play)).status
    except StoreError as error:
        return type(error)


# --- while it is opened ---


@pytest.mark.parametrize("how", ["cancel", "timeout", "drain"])
@pytest.mark.parametrize("when", ["before it fails", "while it is given back"])
def test_one_that_cannot_begin_ends_though_it_is_cancelled_as_well(run, how, when):
    async def main():
        store, clock = HeldStore(), ManualClock()
        system = beside(clock)
        if when == "before it fails":
            gate = store.hold("claim")
            store.fail("append", "journal")
        else:
            store.fail("append", "journal")
            gate = store.hold("claim")
        play = Runner(echoing(), system=system, store=store, durability="step").query(
            "x", timeout=60
        )
        await soon(gate.reached.wait())
        draining = None
        if how == "cancel":
            play.cancel()
        elif how == "timeout":
            clock.advance(61)
        else:
            draining = asyncio.create_task(system.drain(5))
        await turns()
        gate.open()
        assert await ended(play) in ("drained" if how == "drain" else "cancelled", StoreError)
        if draining is not None:
            assert (await soon(draining)).drained
        await turns()
        assert (store.leases(), store.open_keys()) == ([], [])
        assert system.stats().actors == 0

    run(main())


@pytest.mark.parametrize(
    "held", ["append journal", "open open", "remove journal", "close open", "leave open"]
)
@pytest.mark.parametrize("session", [False, True], ids=["alone", "in a session"])
def test_one_that_is_cancelled_twice_before_it_has_begun_leaves_nothing(run, held, session):
    """The second time must not cut short what is done to leave nothing."""

    async def main():
        store = HeldStore()
        begin, end = (
            store.hold("append", "journal"),
            store.hold(*held.split()) if not held.startswith("append") else None,
        )
        runner = Runner(echoing(), store=store, durability="step")
        play = (runner.session("s") if session else runner).query("x")
        await turns()
        play.cancel()
        await turns()
        play.cancel()
        await turns()
        begin.open()
        if end is not None:
            end.open()
        assert await ended(play) == "cancelled"
        await turns()
        assert (store.leases(), store.open_keys()) == ([], [])
        assert await runner.recover() == []

    run(main())


# --- with a consumer that does not read ---


class Talks(Agent):
    def __init__(self):
        super().__init__(name="A")

    async def run(self, input, context):
        number = 0
        while True:
            yield AgentEvent.say(str(number))
            number += 1


@pytest.mark.parametrize("mode", ["after_model", "after_tools"])
def test_a_deadline_counts_though_nobody_reads(run, mode):
    async def main():
        clock = ManualClock()
        play = Runner(Talks(), system=beside(clock), event_buffer=2).query("go")
        async for _ in play:
            await turns()  # it waits for room by now
            handle = play.cancel(mode, timeout=10)
            await turns(4)
            clock.advance(11)
            assert await soon(handle)
        assert clock.pending == ()

    run(main())


def test_one_that_is_left_leaves_no_timer(run):
    async def main():
        clock, model = ManualClock(), Echo()
        async with ActorSystem(clock=clock) as system:
            play = (
                Runner(echoing(model), system=system, store=MemoryStore(), durability="step")
                .session("s")
                .query("wait", timeout=500)
            )
            await model.asked.wait()
            play.cancel("after_tools", timeout=100)
            await turns()
        assert (await soon(play)).status == "cancelled", (
            "it had not come to a safe point, and its caller wanted it to end"
        )
        assert clock.pending == ()

    run(main())


def test_who_is_told_of_the_end_and_raises_costs_nobody_else_that(run, caplog):
    async def main():
        model = Echo()
        play = Runner(echoing(model), store=MemoryStore()).session("s").query("wait")
        await soon(model.asked.wait())
        play.when_finished(lambda: 1 / 0)
        model.gate.set()
        assert (await soon(play)).status == "completed"
        assert "ZeroDivisionError" in caplog.text

    run(main())


# --- with tools under way ---


class Inner:
    """The model of an agent that is called as a tool: it waits before it answers."""

    def __init__(self):
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def generate(self, request):
        if any(message.role == "tool" for message in request.messages):
            return Message.assistant("inner done")
        self.asked.set()
        await self.gate.wait()
        return Message.assistant("", (ToolCall("i1", "look", "{}"),))


def pair(inner, work, **options):
    """An agent whose model calls two tools at once: one is an agent."""

    @tool
    def look() -> str:
        return "seen"

    helper = ChatModelAgent(name="Helper", model=inner, tools=[look]).as_tool()
    calls = Message.assistant(
        "", (ToolCall("c1", "Helper", '{"request": "help"}'), ToolCall("c2", work.name, "{}"))
    )
    return ChatModelAgent(
        name="A", model=ScriptedModel([calls, "done"]), tools=[helper, work], **options
    )


@pytest.mark.parametrize("end", ["interrupts", "fails", "is held back", "answers"])
@pytest.mark.parametrize("durability", ["none", "interrupt", "step"])
@pytest.mark.parametrize("mode", ["after_model", "after_tools"])
def test_a_run_comes_to_rest_however_its_last_tool_ends(run, end, durability, mode):
    async def main():
        inner, gate, made = Inner(), Gate(), []

        @tool(return_directly=end == "is held back")
        async def work(context: ToolContext) -> str:
            made.append(1)
            await gate.wait()
            if end == "interrupts":
                return f"told {context.interrupt('?')}"
            if end == "fails":
                raise ValueError("no")
            return "worked"

        agent = pair(inner, work, on_tool_error="raise" if end == "fails" else "report")
        store = None if durability == "none" else HeldStore()
        runner = Runner(agent, store=store, durability=durability)
        play = runner.query("go")
        await soon(gate.reached.wait())
        await soon(inner.asked.wait())
        handle = play.cancel(mode)
        inner.gate.set()
        await turns()  # the one that is an agent has come to a safe point
        gate.open()
        await soon(handle)
        if end in ("answers", "is held back") and store is not None:
            assert (await soon(runner.resume(play.id))).status == "completed"
            assert len(made) == 1, "what had completed is done again"

    run(main())


class Casts(Agent):
    """Waits at its gate, then lets another one play."""

    def __init__(self, gate):
        super().__init__(
            name="Helper",
            sub_agents=[ChatModelAgent(name="Below", model=ScriptedModel(["below"] * 2))],
        )
        self.gate = gate

    async def run(self, input, context):
        await self.gate.wait()
        await context.cast(self.sub_agents[0])
        yield AgentEvent.say("helped")


def three(gates, made):
    """An agent whose model calls an agent and two tools at once; each waits at its gate."""

    @tool
    async def work(context: ToolContext) -> str:
        made.append("work")
        await gates["work"].wait()
        return "worked"

    @tool
    async def other() -> str:
        made.append("other")
        await gates["other"].wait()
        return "other"

    helper = Casts(gates["helper"]).as_tool()
    calls = Message.assistant(
        "",
        (
            ToolCall("c1", "Helper", '{"request": "help"}'),
            ToolCall("c2", "work", "{}"),
            ToolCall("c3", "other", "{}"),
        ),
    )
    return ChatModelAgent(
        name="A", model=ScriptedModel([calls, "done"]), tools=[helper, work, other]
    )


def test_a_result_that_is_on_its_way_into_the_store_is_not_lost(run):
    """The run comes to rest while it is: the tool would be called again."""

    async def main():
        gates, made, store = {name: Gate() for name in ("work", "other", "helper")}, [], HeldStore()
        runner = Runner(three(gates, made), store=store, durability="step")
        play = runner.query("go")
        for gate in gates.values():
            await soon(gate.reached.wait())
        handle = play.cancel("after_tools")
        await turns()
        writing = store.hold("append", "journal")
        for name in ("other", "helper", "work"):
            gates[name].open()
            await turns()
        writing.open()
        assert await soon(handle)
        assert (await soon(runner.resume(play.id))).status == "completed"
        assert sorted(made) == ["other", "work"]

    run(main())


@pytest.mark.parametrize("end", ["interrupts", "fails"])
def test_a_run_comes_to_rest_though_an_agent_of_it_could_not_begin_any_more(run, end):
    async def main():
        gates = {name: Gate() for name in ("helper", "work")}

        @tool
        async def helper() -> str:
            return "never"

        @tool
        async def work(context: ToolContext) -> str:
            await gates["work"].wait()
            if end == "interrupts":
                context.interrupt("?")
            raise ValueError("no")

        class Late(RunHooks):
            async def on_tool_start(self, context, agent, tool, call):
                if tool.name == "Helper":
                    await gates["helper"].wait()

        agent = pair(Inner(), work, on_tool_error="raise")
        play = Runner(agent, hooks=Late(), store=MemoryStore()).query("go")
        for gate in gates.values():
            await soon(gate.reached.wait())
        handle = play.cancel("after_tools")
        for gate in gates.values():
            gate.open()
            await turns()
        await soon(handle)

    run(main())
