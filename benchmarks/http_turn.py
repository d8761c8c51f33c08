"""The framework's share of one model turn over real HTTP: the `openai` client by itself, and a `Runner` with an `OpenAIChatModel` around the same client.

The server is in another process. The two take turns request by request, and each time the other begins, so that the machine's other work slows both alike.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.contenders.agents_base import ANSWER, QUESTION
from benchmarks.lab.measure import percentile

__all__ = ["HttpTurn", "measure_http"]

_MODEL = "gpt-4o"
_WARM_UP = 10


@dataclass(frozen=True, slots=True)
class HttpTurn:
    """Seconds for one request, by the clock and of the processor; `runner` is a whole run, `model` its model alone."""

    requests: int
    client: float
    client_p99: float
    client_cpu: float
    model: float
    model_p99: float
    model_cpu: float
    runner: float
    runner_p99: float
    runner_cpu: float
    beyond: float  # by which a run is slower than the client: the median of neighbours

    @property
    def share(self) -> float:
        """The framework's, of what the client costs."""
        return self.beyond / self.client

    @property
    def share_by_cpu(self) -> float:
        return (self.runner_cpu - self.client_cpu) / self.client_cpu


def measure_http(requests: int) -> HttpTurn:
    """Raises `ModuleNotFoundError` without `openai`."""
    server = subprocess.Popen([sys.executable, str(Path(__file__).parent / "reply_server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        return asyncio.run(_take_turns(f"http://127.0.0.1:{port}/v1", requests))
    finally:
        server.communicate()  # closes its input, which is its end


async def _take_turns(base_url: str, requests: int) -> HttpTurn:
    from openai import AsyncOpenAI

    from understudy.actors import ChatModelAgent
    from understudy.runtime import Message, ModelRequest, OpenAIChatModel, Runner

    async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:
        model = OpenAIChatModel(_MODEL, client=client)
        runner = Runner(ChatModelAgent(name="a", instruction="Be brief.", model=model))

        async def bare() -> str:
            messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
            completion = await client.chat.completions.create(model=_MODEL, messages=messages)  # type: ignore[arg-type]
            return completion.choices[0].message.content or ""

        async def alone() -> str:
            return (await model.generate(ModelRequest((Message.system("Be brief."), Message.user(QUESTION))))).text

        async def run() -> str:
            return str((await runner.query(QUESTION)).final_output)

        ways: dict[str, Callable[[], Awaitable[str]]] = {"client": bare, "model": alone, "runner": run}
        taken = await _measure(ways, requests)

    walls = {way: [wall for wall, _ in pairs] for way, pairs in taken.items()}
    figures = {f"{way}": statistics.median(wall) for way, wall in walls.items()}
    figures |= {f"{way}_p99": percentile(wall, 99) for way, wall in walls.items()}
    figures |= {f"{way}_cpu": statistics.median(cpu for _, cpu in pairs) for way, pairs in taken.items()}
    beyond = statistics.median(whole - part for whole, part in zip(walls["runner"], walls["client"], strict=True))
    return HttpTurn(requests=requests, beyond=beyond, **figures)


async def _measure(ways: dict[str, Callable[[], Awaitable[str]]], requests: int) -> dict[str, list[tuple[float, float]]]:
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    order = list(ways)
    gc.collect()
    for number in range(-_WARM_UP, requests):
        order.append(order.pop(0))
        for way in order:
            wall, cpu = perf_counter(), process_time()
            answer = await ways[way]()
            wall, cpu = perf_counter() - wall, process_time() - cpu
            if answer != ANSWER:
                msg = f"{way}: the answer over HTTP was {answer!r}"
                raise AssertionError(msg)
            if number >= 0:
                taken[way].append((wall, cpu))
    return taken
