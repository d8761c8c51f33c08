"""A contender of `agents.py`: one library, used as its users would.

Owns the rounds, which are the same for all; a contender says only how it runs.

Every run's answer is checked, so that a library cannot be fast by doing something else.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter_ns as now
from typing import Any, Literal, TypeAlias

from benchmarks.contenders.base import AsyncContender, Load
from benchmarks.lab.measure import Stopwatch
from benchmarks.provider.replies import SIXTY_WORDS

__all__ = [
    "ANSWER",
    "ARGUMENTS",
    "HTTP_LANES",
    "KEYS",
    "MODEL_NAME",
    "MODEL_SECONDS",
    "QUESTION",
    "REFERENCE",
    "AgentContender",
    "Once",
    "What",
    "load_contender",
]

QUESTION = "What is one and two?"
ANSWER = "It is three."
ARGUMENTS = '{"a": 1, "b": 2}'  # of the one tool, `add`

# Over HTTP: the name of the model, and how many turns are under way at once.
MODEL_NAME = "gpt-4o"
HTTP_LANES = 50

# How long each model of the workflows sleeps.
MODEL_SECONDS = 0.05

Once: TypeAlias = Callable[[], Coroutine[Any, Any, str]]
What: TypeAlias = Literal["turn", "giving_way", "tool", "tool_thread", "transfer", "handoff"]

_WHERE = {
    "offbook": ("agents_offbook", "OffbookAgents"),
    "openai-agents": ("agents_openai", "OpenAIAgents"),
    "agno": ("agents_agno", "Agno"),
    "autogen-agentchat": ("agents_autogen", "AutogenAgentChat"),
    "langchain": ("agents_langchain", "LangChain"),
    "pydantic-ai": ("agents_pydantic", "PydanticAI"),
    "google-adk": ("agents_adk", "GoogleADK"),
    "swarm": ("agents_swarm", "SwarmLoop"),
    "bare": ("agents_bare", "BareLoop"),
}

KEYS = tuple(_WHERE)

# The one that all ratios are of.
REFERENCE = "offbook"


class AgentContender(AsyncContender):
    """A library at the start.

    A subclass says how it defines an agent, and how it runs one; measures that it cannot do are in
    `cannot`.
    """

    provider = ""  # the base URL of the server that the turns over HTTP ask

    # --- what a library says ---

    def define(self, index: int, *, own_tool: bool) -> object:
        """A definition of an agent with one tool: one that all share, or a new one, whose name
        contains `index`.
        """
        raise NotImplementedError

    def once(self, what: What) -> Once:
        """A function that makes one run of that kind and returns its answer.

        It prepares beforehand all that can be prepared.
        """
        raise NotImplementedError

    def once_alone(self, what: What) -> Once:
        """The same for runs one after the other: a quicker way, if the library has one."""
        return self.once(what)

    def relay(self, transfers: int) -> Once:
        """The same for two agents that hand over to each other so many times before the answer."""
        raise NotImplementedError

    def handing_off(self, times: int) -> Once:
        """The same by handoffs, where these are not transfers: each agent names the other, and has
        a tool for it.
        """
        raise NotImplementedError

    def sleeping(
        self, seconds: float, on_call: Callable[[], object]
    ) -> Callable[[int], Coroutine[Any, Any, str]]:
        """The same for a model that calls `on_call` and then sleeps.

        The number is the session's.
        """
        raise NotImplementedError

    def sequence(self, agents: int) -> Once:
        """So many agents, one after the other, each model sleeping `MODEL_SECONDS`.

        Here, as for a library without workflows: so many runs.
        """
        one = self.sleeping(MODEL_SECONDS, _nothing)

        async def once() -> str:
            answers = [await one(number) for number in range(agents)]
            return answers[-1]

        return once

    def parallel(self, agents: int) -> Once:
        """The same, all at once."""
        one = self.sleeping(MODEL_SECONDS, _nothing)

        async def once() -> str:
            answers = await asyncio.gather(*(one(number) for number in range(agents)))
            return answers[-1]

        return once

    def resumed(self, file: Path | None) -> tuple[Once, Callable[[], object]]:
        """A function that makes one run whose tool waits for approval, keeps it (in memory, or in
        SQLite's file) and resumes it; and one that closes it.
        """
        raise NotImplementedError

    def over_http(
        self, base_url: str, *, streaming: bool
    ) -> tuple[Once, Callable[[], Awaitable[object]]]:
        """A function that makes one run of one turn whose model is a server, answering whole or
        streamed; and one that closes what it uses.
        """
        raise NotImplementedError

    async def all_at_once(self, works: list[Coroutine[Any, Any, str]]) -> list[str]:
        return await asyncio.gather(*works)

    # --- the rounds ---

    async def define_shared(self, load: Load, watch: Stopwatch) -> None:
        self._define(load, watch, own_tool=False)

    async def define_own(self, load: Load, watch: Stopwatch) -> None:
        self._define(load, watch, own_tool=True)

    def _define(self, load: Load, watch: Stopwatch, *, own_tool: bool) -> None:
        kept = []
        with watch as lap:
            for index in range(load.times):
                kept.append(self.define(index, own_tool=own_tool))
                lap(now())

    async def turn(self, load: Load, watch: Stopwatch) -> None:
        await _one_by_one(self.once_alone("turn"), load, watch)

    async def tool(self, load: Load, watch: Stopwatch) -> None:
        await _one_by_one(self.once_alone("tool"), load, watch)

    async def tool_thread(self, load: Load, watch: Stopwatch) -> None:
        await _one_by_one(self.once_alone("tool_thread"), load, watch)

    async def transfer(self, load: Load, watch: Stopwatch) -> None:
        await _one_by_one(self.once_alone("transfer"), load, watch)

    async def resumes_memory(self, load: Load, watch: Stopwatch) -> None:
        once, close = self.resumed(None)
        try:
            await _one_by_one(once, load, watch)
        finally:
            await _closed(close)

    async def resumes_sqlite(self, load: Load, watch: Stopwatch) -> None:
        with TemporaryDirectory() as folder:
            once, close = self.resumed(Path(folder) / "runs.db")
            try:
                await _one_by_one(once, load, watch)
            finally:
                await _closed(close)

    async def http_whole(self, load: Load, watch: Stopwatch) -> None:
        await self._over_http(load, watch, streaming=False)

    async def http_stream(self, load: Load, watch: Stopwatch) -> None:
        await self._over_http(load, watch, streaming=True)

    async def _over_http(self, load: Load, watch: Stopwatch, *, streaming: bool) -> None:
        """`load.width` lanes, each of which makes one turn after the other until `load.times` of
        them are made in all.
        """
        once, close = self.over_http(self.provider, streaming=streaming)
        left = 0
        taken: list[int] = []

        async def lane() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                started = now()
                answer = await once()
                taken.append(now() - started)
                if answer != SIXTY_WORDS:
                    msg = f"the answer over HTTP was {answer!r}"
                    raise AssertionError(msg)

        try:
            left = load.width  # opens the connections
            await asyncio.gather(*(lane() for _ in range(load.width)))
            left = load.times
            taken.clear()
            with watch:
                await asyncio.gather(*(lane() for _ in range(load.width)))
                watch.operations += load.times
            watch.latencies += taken
        finally:
            await close()

    async def turns_at_once(self, load: Load, watch: Stopwatch) -> None:
        await self._at_once(self.once("turn"), load, watch)

    async def turns_alive(self, load: Load, watch: Stopwatch) -> None:
        await self._at_once(self.once("giving_way"), load, watch)

    async def _at_once(self, once: Once, load: Load, watch: Stopwatch) -> None:
        _check(await once())
        for _ in range(load.times):
            with watch:
                answers = await self.all_at_once([once() for _ in range(load.width)])
                watch.operations += load.width
            for answer in answers:
                _check(answer)

    async def handoff(self, load: Load, watch: Stopwatch) -> None:
        await _one_by_one(self.once_alone("handoff"), load, watch)

    async def transfers_10(self, load: Load, watch: Stopwatch) -> None:
        await self._relay(self.relay(load.width), load, watch)

    async def transfers_200(self, load: Load, watch: Stopwatch) -> None:
        await self._relay(self.relay(load.width), load, watch)

    async def handoffs_10(self, load: Load, watch: Stopwatch) -> None:
        await self._relay(self.handing_off(load.width), load, watch)

    async def handoffs_200(self, load: Load, watch: Stopwatch) -> None:
        await self._relay(self.handing_off(load.width), load, watch)

    async def _relay(self, once: Once, load: Load, watch: Stopwatch) -> None:
        # All runs of a round are on the stopwatch at once: it collects garbage before it starts, so
        # the first run meets cold caches. If each run had a start of its own, each would pay for
        # that.
        _check(await once())
        with watch:
            answers = [await once() for _ in range(load.times)]
            watch.operations += load.times * load.width
        for answer in answers:
            _check(answer)

    async def in_sequence(self, load: Load, watch: Stopwatch) -> None:
        await _beyond(
            self.sequence(load.width), load, watch, model_seconds=load.width * MODEL_SECONDS
        )

    async def in_parallel(self, load: Load, watch: Stopwatch) -> None:
        await _beyond(self.parallel(load.width), load, watch, model_seconds=MODEL_SECONDS)


async def _one_by_one(once: Once, load: Load, watch: Stopwatch) -> None:
    _check(await once())
    with watch as lap:
        for _ in range(load.times):
            if await once() != ANSWER:
                break
            lap(now())
    if watch.operations != load.times:
        msg = "a run had another answer than the first one"
        raise AssertionError(msg)


async def _beyond(once: Once, load: Load, watch: Stopwatch, *, model_seconds: float) -> None:
    """In the end, the stopwatch has the time beyond that of the models."""
    for _ in range(load.times):
        with watch:
            answer = await once()
            watch.operations += 1
        watch.nanoseconds -= round(model_seconds * 1e9)
        _check(answer)


def _check(answer: str) -> None:
    if answer != ANSWER:
        msg = f"the answer of a run was {answer!r}, and should have been {ANSWER!r}"
        raise AssertionError(msg)


async def _closed(close: Callable[[], object]) -> None:
    closing = close()
    if inspect.isawaitable(closing):
        await closing


def _nothing() -> None:
    pass


def load_contender(
    key: str, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> AgentContender:
    """Import a contender. Raises `ModuleNotFoundError` if its library is not installed."""
    module, name = _WHERE[key]
    contender: AgentContender = getattr(
        importlib.import_module(f"benchmarks.contenders.{module}"), name
    )(loop_factory)
    return contender
