"""The contenders of `actors.py` (and, in files that begin with agents_, of `agents.py`).

Each file is one library, used as its users would.

    base                    what a contender is
    work                    what all of them do alike
    offbook_actor        offbook's Actor on the event loop: what the others are compared with
    offbook_threads      the same from a plain thread, and ThreadActor
    pykka_threading         pykka
    autogen_core            autogen-core
    asyncio_tasks           bare asyncio, as a floor
    pykka_style             what offbook_threads and pykka_threading share

They differ only in the library: the messages, the replies and the number of actors are the same,
and each is used in the way that it recommends for speed.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable

from benchmarks.contenders.base import Contender

__all__ = ["KEYS", "REFERENCE", "load", "loop_factory"]

_WHERE = {
    "offbook": ("offbook_actor", "OffbookActor"),
    "offbook-from-thread": ("offbook_threads", "OffbookFromThread"),
    "offbook-thread-actor": ("offbook_threads", "OffbookThreadActor"),
    "pykka": ("pykka_threading", "PykkaThreading"),
    "autogen-core": ("autogen_core", "AutogenCore"),
    "asyncio": ("asyncio_tasks", "AsyncioTasks"),
}

KEYS = tuple(_WHERE)

# The one that all ratios are of.
REFERENCE = "offbook"


def loop_factory(*, uvloop: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loops of all contenders. None: asyncio's own."""
    if not uvloop:
        return None
    import uvloop as library

    factory: Callable[[], asyncio.AbstractEventLoop] = library.new_event_loop
    return factory


def load(
    key: str, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> Contender:
    """Import a contender. Raises `ModuleNotFoundError` if its library is not installed."""
    module, name = _WHERE[key]
    contender: Contender = getattr(
        importlib.import_module(f"benchmarks.contenders.{module}"), name
    )(loop_factory)
    return contender
