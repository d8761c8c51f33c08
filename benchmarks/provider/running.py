"""What starts the provider's process, and asks it for how long it held the turns.

It imports no library that is measured.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.lab.catalogue import ROOT

__all__ = ["Address", "Held", "base_url_of", "held_by", "provider"]


def base_url_of(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the provider is."""

    port: int

    @property
    def base_url(self) -> str:
        return base_url_of(self.port)


@dataclass(frozen=True, slots=True)
class Held:
    """What the provider knows of its requests since it was last asked."""

    seconds: dict[tuple[int, int], float]  # by conversation and turn
    requests: int
    cpu_seconds: float  # of its process, since its start
    most_connections: int


@contextmanager
def provider(*, median: float = 0.0, sigma: float = 0.6, seed: int = 1) -> Iterator[Address]:
    """A provider in a process of its own, which ends with the block."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.provider.server",
        "--median",
        str(median),
        "--sigma",
        str(sigma),
        "--seed",
        str(seed),
    ]
    # In a session of its own: Ctrl-C is the caller's, who closes its input.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            line = process.stdout.readline()
            if not line:
                msg = "the provider's process ended before it served: see what it wrote above"
                raise RuntimeError(msg)
            yield Address(int(line))
        finally:
            process.stdin.close()


def held_by(port: int) -> Held:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/held")
        body: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    seconds = {
        (int(key.partition(":")[0]), int(key.partition(":")[2])): held
        for key, held in body["held"].items()
    }
    return Held(seconds, body["requests"], body["cpu_seconds"], body["most_connections"])
