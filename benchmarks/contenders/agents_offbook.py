"""offbook's agents: a `Runner` around a definition, `await runner.query(...)`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from time import perf_counter_ns as now
from typing import Any, ClassVar

from benchmarks.contenders.agents_base import (
    ANSWER,
    ARGUMENTS,
    MODEL_NAME,
    MODEL_SECONDS,
    QUESTION,
    AgentContender,
    Once,
    What,
)
from benchmarks.contenders.base import Load
from benchmarks.lab.measure import Stopwatch
from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, Tool, handoff, tool
from offbook.runtime import (
    AgentEvent,
    MemoryStore,
    Message,
    ModelRequest,
    OpenAIChatModel,
    Runner,
    SQLiteStore,
    ToolCall,
)

__all__ = ["OffbookAgents"]


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(name="add")
def add_blocking(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(name="add", needs_approval=True)
async def add_approved(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def new_tool(index: int) -> Tool:
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return tool(name=f"add_{index}")(add)


class Instant:
    """A model that has its answer ready."""

    async def generate(self, request: ModelRequest) -> Message:
        del request
        return Message("assistant", ANSWER)


class GivingWay:
    async def generate(self, request: ModelRequest) -> Message:
        del request
        await asyncio.sleep(0)
        return Message("assistant", ANSWER)


class CallsTool:
    async def generate(self, request: ModelRequest) -> Message:
        if request.messages[-1].role == "tool":
            return Message("assistant", ANSWER)
        return Message("assistant", "", (ToolCall("call_1", "add", ARGUMENTS),))


class HandsOver:
    async def generate(self, request: ModelRequest) -> Message:
        del request
        return Message(
            "assistant", "", (ToolCall("call_1", "transfer_to_agent", '{"agent_name": "b"}'),)
        )


class HandsOff:
    async def generate(self, request: ModelRequest) -> Message:
        del request
        return Message("assistant", "", (ToolCall("call_1", "transfer_to_b", "{}"),))


class Relay:
    """Shared by the two models of a relay: how often they still hand over."""

    def __init__(self, transfers: int) -> None:
        self.transfers = self.left = transfers

    def model(self, to: str) -> RelayModel:
        return RelayModel(self, "transfer_to_agent", f'{{"agent_name": "{to}"}}')

    def handing_off(self, to: str) -> RelayModel:
        return RelayModel(self, f"transfer_to_{to}", "{}")


class RelayModel:
    def __init__(self, relay: Relay, tool_name: str, arguments: str) -> None:
        self.relay = relay
        self.tool_name = tool_name
        self.arguments = arguments

    async def generate(self, request: ModelRequest) -> Message:
        del request
        relay = self.relay
        if not relay.left:
            relay.left = relay.transfers
            return Message("assistant", ANSWER)
        relay.left -= 1
        return Message(
            "assistant", "", (ToolCall(f"call_{relay.left}", self.tool_name, self.arguments),)
        )


class Sleeping:
    def __init__(self, seconds: float, on_call: Callable[[], object] = lambda: None) -> None:
        self.seconds = seconds
        self.on_call = on_call

    async def generate(self, request: ModelRequest) -> Message:
        del request
        self.on_call()
        await asyncio.sleep(self.seconds)
        return Message("assistant", ANSWER)


INSTANT = Instant()


def _agent(what: What) -> Agent:
    if what == "turn":
        return ChatModelAgent(name="a", model=INSTANT)
    if what == "giving_way":
        return ChatModelAgent(name="a", model=GivingWay())
    if what == "transfer":
        return ChatModelAgent(
            name="a",
            model=HandsOver(),
            sub_agents=[ChatModelAgent(name="b", description="adds", model=INSTANT)],
        )
    if what == "handoff":
        return ChatModelAgent(
            name="a",
            model=HandsOff(),
            handoffs=[handoff(ChatModelAgent(name="b", description="adds", model=INSTANT))],
        )
    return ChatModelAgent(
        name="a", model=CallsTool(), tools=[add if what == "tool" else add_blocking]
    )


class OffbookAgents(AgentContender):
    key = "offbook"
    title = "offbook"
    what = "Runner(agent), await runner.query(...), on the loop that is running"
    distribution = "offbook"
    differs: ClassVar[dict[str, str]] = {
        "define_own": (
            "the tool's schema is made when a Runner is made or the tool is asked for it: see "
            "the next row"
        )
    }

    def define(self, index: int, *, own_tool: bool) -> object:
        return ChatModelAgent(
            name=f"agent {index}",
            instruction="Be brief.",
            model=INSTANT,
            tools=[new_tool(index) if own_tool else add],
        )

    def once(self, what: What) -> Once:
        return _once(Runner(_agent(what)))

    def relay(self, transfers: int) -> Once:
        relay = Relay(transfers)
        back = ChatModelAgent(name="b", description="adds", model=relay.model("a"))
        there = ChatModelAgent(
            name="a", description="asks", model=relay.model("b"), sub_agents=[back]
        )
        return _once(Runner(there, max_transfers=transfers))

    def handing_off(self, times: int) -> Once:
        relay = Relay(times)
        circle: list[ChatModelAgent] = []
        back = ChatModelAgent(
            name="b", description="adds", model=relay.handing_off("a"), handoffs=circle
        )
        there = ChatModelAgent(
            name="a", description="asks", model=relay.handing_off("b"), handoffs=[back]
        )
        circle.append(there)
        return _once(Runner(there, max_transfers=times))

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        runner = Runner(ChatModelAgent(name="a", model=Sleeping(seconds, on_call)))

        async def once(number: int) -> str:
            result = await runner.query(QUESTION, session_id=str(number))
            return str(result.final_output)

        return once

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        store = MemoryStore() if file is None else SQLiteStore(file)
        runner = Runner(
            ChatModelAgent(name="a", model=CallsTool(), tools=[add_approved]), store=store
        )

        async def once() -> str:
            (waits,) = (await runner.query(QUESTION)).interrupts
            return str((await runner.approve(waits)).final_output)

        return once, store.close

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        model = OpenAIChatModel(MODEL_NAME, base_url=base_url, api_key="none")
        runner = Runner(
            ChatModelAgent(name="a", instruction="Be brief.", model=model), streaming=streaming
        )

        async def streamed() -> str:
            return "".join(
                [
                    event.delta.content
                    async for event in runner.query(QUESTION)
                    if event.delta is not None
                ]
            )

        async def close() -> None:
            """Its connections end with the event loop."""

        return (streamed if streaming else _once(runner)), close

    def sequence(self, agents: int) -> Once:
        return _once(Runner(Sequential(name="all", sub_agents=_sleepers(agents))))

    def parallel(self, agents: int) -> Once:
        return _once(Runner(Parallel(name="all", sub_agents=_sleepers(agents))))

    async def define_ready(self, load: Load, watch: Stopwatch) -> None:
        kept = []
        with watch as lap:
            for index in range(load.times):
                kept.append(Runner(self.define(index, own_tool=True)))
                lap(now())

    async def event(self, load: Load, watch: Stopwatch) -> None:
        """The work of an agent to yield an event, and of the run supervisor to stamp it with its
        origin and time.
        """
        # No user imports it: a revision that names it otherwise lacks this measure alone.
        from offbook.runtime.data.events import stamp

        message, path = Message("assistant", ANSWER), ("a",)
        with watch as lap:
            for number in range(load.times):
                event = AgentEvent(message=message)
                stamp(
                    event,
                    agent_name="a",
                    run_path=path,
                    action=event.action,
                    error=event.error,
                    seq=number,
                    run_id="run",
                    invocation_id="invocation",
                )
                lap(now())


def _once(runner: Runner) -> Once:
    async def once() -> str:
        result = await runner.query(QUESTION)
        return str(result.final_output)

    return once


def _sleepers(agents: int) -> list[Agent]:
    return [
        ChatModelAgent(name=f"agent {number}", model=Sleeping(MODEL_SECONDS))
        for number in range(agents)
    ]
