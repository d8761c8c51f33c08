"""The server of the benchmark, in a process of its own, and what a worker asks it.

Owns: `LocalRealtimeServer` with a clock. What the user says in text is what it does: "chunks 500",
"paced 500", "call", "transfer second". It must never decide what is measured.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import subprocess
import sys
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Self

from benchmarks.lab.catalogue import ROOT
from offbook.actors.realtime.local import Call, LocalRealtimeServer, Reply, Say

__all__ = ["CHUNK_MS", "ServerProcess", "clock_of"]

CHUNK_MS: Final = 20
_REST: Final = b"\x02" * (CHUNK_MS * 48 - 8)
_MARKED: Final = ("conversation.item.truncate", "session.update")


def clock_of(audio: bytes) -> float:
    """When the server sent this chunk, by the clock that all processes of a machine share."""
    found: float = struct.unpack_from("<d", audio)[0]
    return found


class _Pace(asyncio.Event):
    """Lets a chunk through every 20 ms, whatever the others took."""

    def __init__(self) -> None:
        super().__init__()
        self._next = perf_counter()

    async def wait(self) -> Any:
        self._next += CHUNK_MS / 1000
        await asyncio.sleep(max(0.0, self._next - perf_counter()))


class ClockServer(LocalRealtimeServer):
    """Notes when it sent and received what is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.keeps_log = False
        self.marks: list[tuple[str, float]] = []

    def next_reply(self, session: Any, options: dict[str, Any]) -> Reply:
        del options
        self.responses.clear()  # it keeps the whole conversation for each
        last = session.items[-1] if session.items else {}
        said = last["content"][0].get("text") or "" if last.get("role") == "user" else ""
        kind, _, count = said.partition(" ")
        if kind in ("chunks", "paced"):
            return Reply(
                Say(
                    "",
                    ms=int(count) * CHUNK_MS,
                    chunk_ms=CHUNK_MS,
                    gate=_Pace() if kind == "paced" else None,
                )
            )
        if kind in ("call", "transfer"):
            return Reply(Call("now" if kind == "call" else f"transfer_to_{count}"))
        return Reply(Say("Yes.", ms=CHUNK_MS, chunk_ms=CHUNK_MS))

    def note(self, number: int, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "response.output_audio.delta":
            message["delta"] = base64.b64encode(struct.pack("<d", perf_counter()) + _REST).decode()
        elif kind == "input_audio_buffer.speech_started" or (
            kind == "response.output_item.done" and message["item"]["type"] == "function_call"
        ):
            self.marks.append((kind, perf_counter()))
        super().note(number, message)

    def refusal_of(self, message: dict[str, Any]) -> str | None:
        kind = message["type"]
        if kind in _MARKED:
            self.marks.append((kind, perf_counter()))
        elif (
            kind == "conversation.item.create" and message["item"]["type"] == "function_call_output"
        ):
            self.marks.append(("output", perf_counter()))
        return super().refusal_of(message)


async def _serve() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with ClockServer() as server:
        print(json.dumps(server.base_url), flush=True)
        while command := (await reader.readline()).decode().strip():
            if command == "drop":
                for session in server.sessions:
                    if session.peer.is_open:
                        await session.peer.close(1011)
            print(
                json.dumps([*server.marks, *(("error", code) for code, _ in server.errors)]),
                flush=True,
            )
            server.marks.clear()
            server.errors.clear()


class ServerProcess:
    """`with ServerProcess() as server:` it runs, on the last core if there are two."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.of_realtime.server"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.base_url: str = self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def _ask(self, command: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._line()

    def marks(self) -> list[tuple[str, float]]:
        """What it noted since it was asked last.

        What a client has earned by a mistake ends the benchmark.
        """
        found = [tuple(one) for one in self._ask("marks")]
        wrong = [one for kind, one in found if kind == "error"]
        assert not wrong, f"the server has refused something: {wrong}"
        return found

    def drop(self) -> None:
        """Lose all connections."""
        self._ask("drop")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()  # it ends at the end of its input
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    asyncio.run(_serve())
