"""What is measured of a contender, and of offbook alone.

Owns: the questions, each a coroutine that returns its figures in seconds and bytes. It must never
judge one.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

import psutil

from benchmarks.lab.process import as_users_have_it
from benchmarks.of_realtime.contenders import CONTENDERS, offbook_session
from benchmarks.of_realtime.server import CHUNK_MS, ServerProcess, clock_of

__all__ = ["COMMON", "MINE", "percentile"]

_FULL: Final = 1_000  # chunks, from which on figures are to mean something
AUDIO: Final = b"\x02" * (CHUNK_MS * 48)


def percentile(values: list[float], part: float) -> float:
    """The value below which that part of them is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def _spread(values: list[float]) -> dict[str, float]:
    return {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99)}


# --- of each contender ---


async def output(name: str, server: ServerProcess, size: int) -> dict[str, float]:
    """The CPU time of this process for one chunk of audio that comes."""
    async with CONTENDERS[name](server.base_url) as client:
        await client.play(f"chunks {max(10, size // 10)}", len)
        came: list[int] = []
        wall, cpu = perf_counter(), process_time()
        await client.play(f"chunks {size}", lambda audio: came.append(len(audio)))
        figures = {"cpu": (process_time() - cpu) / size, "wall": (perf_counter() - wall) / size}
        assert len(came) == size, f"{name}: {len(came)} of {size} chunks came"
        return figures


async def input_(name: str, server: ServerProcess, size: int) -> dict[str, float]:
    """The CPU time for one chunk that is sent."""
    async with CONTENDERS[name](server.base_url) as client:
        await client.feed(AUDIO, max(10, size // 10))
        wall, cpu = perf_counter(), process_time()
        await client.feed(AUDIO, size)
        return {"cpu": (process_time() - cpu) / size, "wall": (perf_counter() - wall) / size}


async def latency(name: str, server: ServerProcess, size: int) -> dict[str, float]:
    """From the server's clock in a chunk to its consumer, at real time."""
    late: list[float] = []
    async with CONTENDERS[name](server.base_url) as client:
        await client.play(
            f"paced {max(20, size // 10)}",
            lambda audio: late.append(perf_counter() - clock_of(audio)),
        )
    return _spread(late)


async def idle(name: str, server: ServerProcess, size: int) -> dict[str, float]:
    """The memory of one open connection of so many, the tasks and threads that each has, and how
    long it takes to close all.
    """
    count = 1_000 if size >= _FULL else 15
    me = psutil.Process()
    async with CONTENDERS[name](server.base_url):
        pass  # what is imported and made once
    gc.collect()
    before, tasks, threads = (
        me.memory_info().rss,
        len(asyncio.all_tasks()),
        threading.active_count(),
    )
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(CONTENDERS[name](server.base_url))
        gc.collect()
        found = {
            "bytes": (me.memory_info().rss - before) / count,
            "tasks": (len(asyncio.all_tasks()) - tasks) / count,
            "threads": float(threading.active_count() - threads),
            "count": float(count),
        }
        opened = stack.pop_all()
    began = perf_counter()
    await opened.aclose()
    return {**found, "close": perf_counter() - began}


# --- of offbook alone ---


async def crowd(server: ServerProcess, size: int) -> dict[str, float]:
    """200 sessions at real time both ways: how late a chunk is at its consumer, and how much of a
    core this process takes.
    """
    count = 200 if size >= _FULL else 10
    chunks = max(25, size // 50)
    late: list[float] = []
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(offbook_session(server.base_url)) for _ in range(count)
        ]

        async def talk(client: Any) -> None:
            playing = asyncio.ensure_future(
                client.play(
                    f"paced {chunks}", lambda audio: late.append(perf_counter() - clock_of(audio))
                )
            )
            while not playing.done():
                await client.session.send_audio(AUDIO)
                await asyncio.sleep(CHUNK_MS / 1000)
            await playing

        wall, cpu = perf_counter(), process_time()
        await asyncio.gather(*map(talk, clients))
        return {
            **_spread(late),
            "core": (process_time() - cpu) / (perf_counter() - wall),
            "count": float(count),
        }


async def barge_in(server: ServerProcess, size: int) -> dict[str, float]:
    """From the server's `speech_started` to the event at the consumer, and to the truncation at the
    server, with 60 s of audio queued.
    """
    from offbook.actors.realtime.local import silence, speech

    shown, cut = [], []
    queued = 3_000 if size >= _FULL else 200
    for _ in range(max(3, size // 200)):
        async with offbook_session(server.base_url) as client:
            session = client.session
            await session.send_message(f"chunks {queued}")
            async for event in session:
                if event.type == "audio" and event.item_id:
                    break  # the first is heard, the others wait
            server.marks()
            await session.send_audio(speech("stop"))
            async for event in session:
                if event.type == "audio_interrupted":
                    shown.append(perf_counter())
                    break
            await session.send_audio(silence())
            async for event in session:
                # It was truncated before: the server has answered behind it.
                if event.type == "agent_start":
                    break
            marks = dict(server.marks())
            shown[-1] -= marks["input_audio_buffer.speech_started"]
            cut.append(
                marks["conversation.item.truncate"] - marks["input_audio_buffer.speech_started"]
            )
    return {
        "shown": percentile(shown, 0.99),
        "cut": percentile(cut, 0.99),
        "count": float(len(cut)),
    }


async def tools(server: ServerProcess, size: int) -> dict[str, float]:
    """From a call that the server has sent to the output that it has, and from a handoff to the
    update of the session.
    """
    from offbook.actors import tool
    from offbook.actors.realtime import RealtimeAgent

    @tool
    def now() -> str:
        """What time it is."""
        return "noon"

    first = RealtimeAgent("first", "Be short.", tools=[now])
    second = RealtimeAgent("second", "Be short.", handoffs=[first])
    first.handoffs = [second]
    call, hand = [], []
    done = "response.output_item.done"
    async with offbook_session(
        server.base_url, first, config={"max_handoffs": 1_000_000}
    ) as client:
        for _ in range(max(10, size // 20)):
            for text, measured, until in (
                ("call", call, "output"),
                ("transfer second", hand, "session.update"),
                ("transfer first", None, ""),
            ):
                server.marks()
                await client.play(text, len)
                await client.play_on()
                if measured is not None:
                    marks = dict(server.marks())
                    measured.append(marks[until] - marks[done])
    return {
        "call": percentile(call, 0.5),
        "hand": percentile(hand, 0.5),
        "call_p99": percentile(call, 0.99),
        "hand_p99": percentile(hand, 0.99),
    }


async def long_history(server: ServerProcess, size: int) -> dict[str, float]:
    """The CPU time for one chunk with 10 items of history, and with 10,000."""
    from offbook.runtime import Message

    found = {}
    for name, count in (("short", 10), ("long", 10_000 if size >= _FULL else 500)):
        history = [Message.user(f"question {number}") for number in range(count)]
        async with offbook_session(server.base_url, history=history) as client:
            await client.play(f"chunks {max(10, size // 10)}", len)
            cpu = process_time()
            await client.play(f"chunks {size}", len)
            found[name] = (process_time() - cpu) / size
    return found


async def reconnect(server: ServerProcess, size: int) -> dict[str, float]:
    """A connection that is lost with 100 items, until the conversation is in the new one; beside a
    handshake alone.
    """
    from offbook.actors.realtime import Reconnect
    from offbook.runtime import Backoff, Message

    took, shaken = [], []
    settings = Reconnect(backoff=Backoff(initial=0.001, maximum=0.01))
    for _ in range(max(2, size // 500)):
        began = perf_counter()
        async with CONTENDERS["bare"](server.base_url):
            shaken.append(perf_counter() - began)
        history = [Message.user(f"question {number}") for number in range(100)]
        async with offbook_session(
            server.base_url, history=history, config={"reconnect": settings}
        ) as client:
            server.drop()
            async for event in client.session:
                if event.type == "reconnected":
                    assert event.replayed == len(history)
                    took.append(event.seconds)
                    break
    return {"took": percentile(took, 0.5), "handshake": percentile(shaken, 0.5)}


async def kept(server: ServerProcess, size: int) -> dict[str, float]:
    """How late a chunk is at real time, without a store and with SQLite, while messages are
    written.
    """
    from offbook.runtime import SQLiteStore

    found: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for name in ("without", "with"):
            late: list[float] = []
            more = (
                {"store": SQLiteStore(Path(folder) / "calls.db"), "session_id": "caller"}
                if name == "with"
                else {}
            )
            async with offbook_session(server.base_url, **more) as client:

                async def write(session: Any = client.session) -> None:
                    while True:
                        await session.send_message("a note", respond=False)
                        await asyncio.sleep(0.05)

                writing = asyncio.ensure_future(write())
                await client.play(
                    f"paced {max(25, size // 50)}",
                    lambda audio, late=late: late.append(perf_counter() - clock_of(audio)),
                )
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
            found[name] = percentile(late, 0.5)
    return found


async def imported(server: ServerProcess, size: int) -> dict[str, float]:
    """The time of the import beyond `offbook.actors` and pydantic, in a fresh process each, the
    bytecode written.
    """
    del server
    # pydantic imports what it has when it is asked for.
    program = (
        "import time, offbook.actors; from pydantic import BaseModel, Field; t = "
        "time.process_time(); "
    )
    program += "import offbook.actors.realtime; print(time.process_time() - t)"
    took = []
    for _ in range(2 + (3 if size >= _FULL else 0)):
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program],
            env=as_users_have_it(),
            check=True,
            capture_output=True,
            text=True,
        )
        took.append(float(done.stdout))
    return {"took": min(took)}


COMMON: Final = {"idle": idle, "output": output, "input": input_, "latency": latency}
"""Memory first: what was used before hides what is used now."""
MINE: Final = {
    "crowd": crowd,
    "barge_in": barge_in,
    "tools": tools,
    "history": long_history,
    "reconnect": reconnect,
    "store": kept,
    "import": imported,
}
