"""A contender: one library, used as its users would, at each of the measures."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from benchmarks.lab.measure import Stopwatch

__all__ = ["AsyncContender", "Contender", "Load", "Probe"]


@dataclass(frozen=True, slots=True)
class Load:
    """The size of one round: `times` operations, each `width` wide (children of a fan-out, messages
    of a burst or in a mailbox).
    """

    times: int
    width: int = 1


class Probe(Protocol):
    """`idle` reports to it: the `with` block is the spawning, and `all_idle` is called when all
    actors exist and none has work.
    """

    def __enter__(self) -> None: ...
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...
    def all_idle(self) -> None: ...


class Contender:
    """A library at the start.

    A subclass has a method for each measure of `actors.py`, which is one round of it, and `idle`.
    """

    key: ClassVar[str]  # in the JSON file and on the command line
    title: ClassVar[str]  # in tables and plots
    what: ClassVar[str]  # one sentence: what is measured of it
    distribution: ClassVar[str]  # what pip installs it from
    cannot: ClassVar[Mapping[str, str]] = {}  # measures that it has no natural way to do, and why
    differs: ClassVar[
        Mapping[str, str]
    ] = {}  # measures at which it does less than the others, and what
    most_idle: ClassVar[int | None] = None  # with more actors than this, `idle` is not tried

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self.loop_factory = loop_factory

    @classmethod
    def version(cls) -> str:
        return importlib.metadata.version(cls.distribution)

    def run(self, measure: str, load: Load, watch: Stopwatch | Probe) -> None:
        """One round."""
        self.enter(getattr(self, measure), load, watch)

    def enter(self, method: Callable[..., Any], *args: Any) -> None:
        method(*args)


class AsyncContender(Contender):
    """One whose measures are coroutines. Each round has an event loop of its own."""

    def enter(self, method: Callable[..., Any], *args: Any) -> None:
        with asyncio.Runner(loop_factory=self.loop_factory) as runner:
            runner.run(method(*args))
