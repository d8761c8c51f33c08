"""Recovering again and again, for a service that runs for weeks.

Owns: the actor that does it, and how long it waits in between. It must never end a run, nor stop for an error of the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ..actor.actor import Actor
from ..backoff import jittered
from ..errors import UsageError
from ..log import loggers

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..actor.ref import ActorRef
    from ..clock import Timer
    from .run import Run

__all__ = ["RecoveryLoop", "start_at_most"]

_LONGEST_WAIT: Final = 86_400.0  # seconds
_JITTER: Final = 0.2
"""The part of a wait by which it is longer or shorter than the last one."""


def start_at_most(runs: Sequence[Run], at_once: int | None) -> None:
    """Start so many of them now, and each other one when one has ended, or when it is used."""
    waiting = iter(runs)

    def start_next() -> None:
        run = next(waiting, None)
        if run is not None:
            run.when_finished(start_next)
            run.start()

    for _ in range(len(runs) if at_once is None else min(at_once, len(runs))):
        start_next()


class RecoveryLoop:
    """What `Runner.recover_every` returns."""

    def __init__(self, choose_system: Callable[[], Host], recover: Callable[[], Awaitable[Sequence[Run]]], seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_WAIT:
            msg = f"recover_every({seconds!r:.80}): give a number of seconds above 0, and a day at most."
            raise UsageError(msg)
        self._ref: ActorRef[_Recoverer] = choose_system().spawn(_Recoverer, recover, seconds)

    def stop(self) -> None:
        """Recover no more. The runs that were recovered go on."""
        self._ref.stop(block=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()


class _Recoverer(Actor):
    """Recovers, and waits."""

    def __init__(self, recover: Callable[[], Awaitable[Sequence[Run]]], seconds: float) -> None:
        super().__init__()
        self._recover = recover
        self._seconds = seconds
        self._timer: Timer | None = None

    def on_start(self) -> None:
        self.actor_ref.tell(None)

    async def on_receive(self, _message: object) -> None:
        try:
            for run in await self._recover():
                loggers.run.info("Run %s is continued here.", run.id)
        except Exception as error:  # noqa: BLE001 -- the next time the store may answer
            loggers.run.warning("Unfinished runs could not be looked for, and will be in about %g s: %s", self._seconds, error)
        self._timer = self._cell.system.clock.call_later(jittered(self._seconds, _JITTER), self.actor_ref.tell, None)

    def on_stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
