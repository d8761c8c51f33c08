"""A host's report about itself, in answer to a control request.

It is made from plain values in another thread, without touching an actor or waiting for the host's
event loop.
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
    """The answer to one control request."""

    host: str
    incarnation: str
    state: str
    """starting, up, draining, or lost."""
    idle: float
    """Seconds since the last turn of the host's own event loop."""
    pid: int
    node: str
    spec: bytes
    counts: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """The reason it is not up, if known."""


class ControlBoard:
    """The state that the host's event loop writes and the control thread reads.

    Each field is replaced as a whole.
    """

    def __init__(self, host: str, pid: int, node: str, spec: bytes) -> None:
        self._fixed = (host, pid, node, spec)
        self.node = node
        self.incarnation = ""
        self.state = "starting"
        self.problem: str | None = None
        self.counts: dict[str, Any] = {}
        self.ticked = time.monotonic()

    def tick(self) -> None:
        """Record a turn of the event loop."""
        self.ticked = time.monotonic()

    def answer(self) -> bytes:
        host, pid, node, spec = self._fixed
        idle = time.monotonic() - self.ticked
        return pack(
            [host, self.incarnation, self.state, idle, pid, node, spec, self.counts, self.problem],
            binaries=1,
        )


def read_control(data: bytes) -> Control:
    """Parse an answer. Raise `CheckpointError`."""
    try:
        return Control(*unpack(data))
    except TypeError as error:
        msg = (
            f"the status that a host returned is damaged: {error}. Check that all hosts run the "
            "same version of offbook"
        )
        raise CheckpointError(msg) from error
