"""What a host says of itself when it is asked whether it is there.

Owns: that answer, and its form. It is made from plain values in another thread: it must never touch an actor, nor wait for the host's loop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ..codec.packing import pack, unpack
from ..errors import CheckpointError

__all__ = ["Control", "ControlBoard", "read_control"]


@dataclass(frozen=True, slots=True)
class Control:
    """One answer."""

    host: str
    incarnation: str
    state: str
    """starting, up, draining, or lost."""
    idle: float
    """Seconds since the host's own loop has had its last turn."""
    pid: int
    node: str
    spec: bytes
    counts: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """Why it is not up, if that is known."""


class ControlBoard:
    """On which the host's loop writes, and from which the other thread reads: each field is set as a whole."""

    def __init__(self, host: str, pid: int, node: str, spec: bytes) -> None:
        self._fixed = (host, pid, node, spec)
        self.incarnation = ""
        self.state = "starting"
        self.problem: str | None = None
        self.counts: dict[str, Any] = {}
        self.ticked = time.monotonic()

    def tick(self) -> None:
        """The loop has had a turn."""
        self.ticked = time.monotonic()

    def answer(self) -> bytes:
        host, pid, node, spec = self._fixed
        idle = time.monotonic() - self.ticked
        return pack([host, self.incarnation, self.state, idle, pid, node, spec, self.counts, self.problem], binaries=1)


def read_control(data: bytes) -> Control:
    """Raises `CheckpointError`."""
    try:
        return Control(*unpack(data))
    except TypeError as error:
        msg = f"what a host says of itself is damaged: {error}"
        raise CheckpointError(msg) from error
