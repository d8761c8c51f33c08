"""autogen-core's `SingleThreadedAgentRuntime`, used from its loop.

The quickest of its public ways is taken each time: `BaseAgent` instead of `RoutedAgent` (whose
dispatch by message type takes 10 µs more an ask, and 33 µs more a spawn), no tracing,
`runtime.register_agent_instance` instead of a factory (10 µs more) or of
`BaseAgent.register_instance` (which also adds a subscription that is not needed here, and searches
all subscriptions).
"""

# ruff: noqa: ARG002 -- autogen-core sets the signature of a handler

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter_ns as now
from typing import Any, ClassVar

from autogen_core import (
    AgentId,
    BaseAgent,
    MessageContext,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
)
from opentelemetry.trace import NoOpTracerProvider

from benchmarks.contenders.base import AsyncContender, Load, Probe
from benchmarks.contenders.work import MESSAGE, work
from benchmarks.lab.measure import Stopwatch

__all__ = ["AutogenCore"]

STOP = "stop"


class Echo(BaseAgent):
    async def on_message_impl(self, message: Any, ctx: MessageContext) -> Any:
        return message


class AwaitingEcho(BaseAgent):
    async def on_message_impl(self, message: Any, ctx: MessageContext) -> Any:
        await asyncio.sleep(0)
        return message


class Counter(BaseAgent):
    """Says when it has handled a burst."""

    def __init__(self, burst: int, done: asyncio.Event) -> None:
        super().__init__("counter")
        self.burst = self.left = burst
        self.done = done

    async def on_message_impl(self, message: Any, ctx: MessageContext) -> None:
        self.left -= 1
        if not self.left:
            self.left = self.burst
            self.done.set()


class Parent(BaseAgent):
    """Asks all its children at once."""

    def __init__(self, children: list[AgentId]) -> None:
        super().__init__("parent")
        self.children = children

    async def on_message_impl(self, message: Any, ctx: MessageContext) -> Any:
        return await asyncio.gather(*(self.send_message(message, child) for child in self.children))


class Worker(BaseAgent):
    """Works, until it is told to stop."""

    def __init__(self) -> None:
        super().__init__("worker")
        self.stopped = False

    async def on_message_impl(self, message: Any, ctx: MessageContext) -> None:
        if message == STOP:
            self.stopped = True
        elif not self.stopped:
            work()


@asynccontextmanager
async def running() -> AsyncIterator[SingleThreadedAgentRuntime]:
    runtime = SingleThreadedAgentRuntime(tracer_provider=NoOpTracerProvider())
    runtime.start()
    try:
        yield runtime
    finally:
        await runtime.close()


async def register(
    runtime: SingleThreadedAgentRuntime, agent: BaseAgent, key: object = "default"
) -> AgentId:
    return await runtime.register_agent_instance(agent, AgentId(type(agent).__name__, str(key)))


class AutogenCore(AsyncContender):
    key = "autogen-core"
    title = "autogen-core"
    what = "BaseAgent in a SingleThreadedAgentRuntime, used from its loop"
    distribution = "autogen-core"
    cannot: ClassVar = {"stop": "it cannot stop one agent"}
    differs: ClassVar = {
        "shutdown": "close() calls each agent's close() and keeps the agents",
        "control": "a message in the one queue is all that reaches one agent",
    }

    async def spawn(self, load: Load, watch: Stopwatch) -> None:
        async with running() as runtime:
            ids = []
            with watch as lap:
                for number in range(load.times):
                    ids.append(
                        await runtime.register_agent_instance(
                            Echo("echo"), AgentId("Echo", str(number))
                        )
                    )
                    lap(now())
                await asyncio.sleep(0)

    async def ask(self, load: Load, watch: Stopwatch) -> None:
        async with running() as runtime:
            agent = await register(runtime, Echo("echo"))
            with watch as lap:
                for _ in range(load.times):
                    await runtime.send_message(MESSAGE, agent)
                    lap(now())

    async def ask_awaiting(self, load: Load, watch: Stopwatch) -> None:
        async with running() as runtime:
            agent = await register(runtime, AwaitingEcho("echo"))
            with watch as lap:
                for _ in range(load.times):
                    await runtime.send_message(MESSAGE, agent)
                    lap(now())

    async def tell(self, load: Load, watch: Stopwatch) -> None:
        """Its only message without a reply is one that is published: here to a topic that one agent
        has subscribed to.
        """
        async with running() as runtime:
            done = asyncio.Event()
            agent = await register(runtime, Counter(load.width, done))
            await runtime.add_subscription(
                TypeSubscription(topic_type="work", agent_type=agent.type)
            )
            topic = TopicId("work", agent.key)
            with watch as lap:
                for _ in range(load.times):
                    done.clear()
                    for _ in range(load.width):
                        await runtime.publish_message(MESSAGE, topic)
                        lap(now())
                    await done.wait()

    async def fan_out(self, load: Load, watch: Stopwatch) -> None:
        async with running() as runtime:
            parent = await register(
                runtime,
                Parent(
                    [await register(runtime, Echo("echo"), number) for number in range(load.width)]
                ),
            )
            await runtime.send_message(MESSAGE, parent)
            with watch as lap:
                for _ in range(load.times):
                    await runtime.send_message(MESSAGE, parent)
                    lap(now())

    async def shutdown(self, load: Load, watch: Stopwatch) -> None:
        """`close` calls `close` of each agent. It keeps the agents, and stops nothing of them."""
        async with running() as runtime:
            for number in range(load.times):
                await register(runtime, Echo("echo"), number)
            with watch:
                await runtime.close()
                watch.operations += load.times
            runtime.start()  # so that it can be closed once more

    async def control(self, load: Load, watch: Stopwatch) -> None:
        """A message is all that reaches one agent, and waits in the one queue behind all others."""
        async with running() as runtime:
            await runtime.add_subscription(TypeSubscription(topic_type="work", agent_type="Worker"))
            for number in range(load.times):
                agent = await register(runtime, Worker(), number)
                topic = TopicId("work", agent.key)
                for _ in range(load.width):
                    await runtime.publish_message(MESSAGE, topic)
                await asyncio.sleep(0)  # it begins to work
                with watch as lap:
                    await runtime.send_message(STOP, agent)
                    lap(now())

    async def idle(self, load: Load, probe: Probe) -> None:
        async with running() as runtime:
            await runtime.send_message(MESSAGE, await register(runtime, Echo("echo")))
            with probe:
                ids = [
                    await register(runtime, Echo("echo"), number) for number in range(load.times)
                ]
            probe.all_idle()
            del ids
