"""Shared by all contenders: the message that they send, and the work of each message in a full
mailbox.
"""

from __future__ import annotations

from time import perf_counter

__all__ = ["MESSAGE", "WORK_SECONDS", "work"]

# The message, and the reply: a string costs autogen-core the least, because it does not try to
# serialise one for its log.
MESSAGE = "ping"

# How long the handler of one message in the full mailbox keeps the processor busy.
WORK_SECONDS = 20e-6


def work() -> None:
    """Keep the processor busy."""
    until = perf_counter() + WORK_SECONDS
    while perf_counter() < until:
        pass
