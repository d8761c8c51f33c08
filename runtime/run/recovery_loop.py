"""Periodic recovery, for a service that runs for weeks.

An actor recovers runs and waits between two attempts. It never ends a run, and a store error does
not stop it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ..actor.actor import Actor
from ..backoff import jittered
from ..errors import ActorDeadError, UsageError
from ..log import loggers

if TYPE_CHECKING:
    from ..actor.future import ActorFuture
    from ..actor.host import Host
    from ..actor.ref import ActorRef
    from ..clock import Timer
    from .run import Run

__all__ = ["RecoveryLoop", "Repeating", "check_interval", "start_at_most"]

_LONGEST_WAIT: Final = 86_400.0  # seconds
_JITTER: Final = 0.2
"""The largest random change of a wait, as a fraction of it."""


def start_at_most(runs: Sequence[Run], at_once: int | None) -> None:
    """Start at most `at_once` runs now, and each other run when one ends or when it is used."""
    waiting = iter(runs)

    def start_next() -> None:
        run = next(waiting, None)
        if run is not None:
            run.when_finished(start_next)
            run.start()

    for _ in range(len(runs) if at_once is None else min(at_once, len(runs))):
        start_next()


class RecoveryLoop:
    """The handle that `Runner.recover_every` returns."""

    def __init__(
        self,
        choose_system: Callable[[], Host],
        recover: Callable[[], Awaitable[Sequence[Run]]],
        seconds: float,
    ) -> None:
        check_interval("recover_every", seconds)
        self._repeating = Repeating(
            choose_system(),
            partial(_recover, recover),
            seconds,
            "Unfinished runs could not be listed",
        )

    def stop(self) -> ActorFuture[bool]:
        """Stop recovering.

        The recovered runs continue. Await the returned future to wait until the current search has
        ended.
        """
        return self._repeating.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


async def _recover(recover: Callable[[], Awaitable[Sequence[Run]]]) -> None:
    for run in await recover():
        loggers.run.info("Run %s is continued here.", run.id)


def check_interval(name: str, seconds: float) -> None:
    """Raise unless `seconds` is a valid interval."""
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= _LONGEST_WAIT
    ):
        msg = f"{name}: seconds must be above 0 and at most a day, got {seconds!r:.80}."
        raise UsageError(msg)


class Repeating:
    """Work that an actor of a system repeats until it is stopped or the system ends."""

    def __init__(
        self,
        system: Host,
        work: Callable[[], Awaitable[object]],
        seconds: float,
        failure: str,
        *,
        at_once: bool = True,
    ) -> None:
        self._ref: ActorRef[_Repeater] = system.spawn(_Repeater, work, seconds, failure, at_once)

    def stop(self) -> ActorFuture[bool]:
        """Stop repeating, from any thread.

        Await the returned future to wait for the current work to end.
        """
        return self._ref.stop(block=False)


class _Repeater(Actor):
    """The actor that works and waits."""

    def __init__(
        self,
        work: Callable[[], Awaitable[object]],
        seconds: float,
        failure: str,
        at_once: bool,  # noqa: FBT001 -- spawned by position
    ) -> None:
        super().__init__()
        self._work = work
        self._seconds = seconds
        self._failure = failure
        self._at_once = at_once
        self._timer: Timer | None = None

    def on_start(self) -> None:
        if self._at_once:
            self._work_again()
        else:
            self._wait()

    async def on_receive(self, _message: object) -> None:
        try:
            await self._work()
        except Exception as error:  # noqa: BLE001 -- the store may answer next time
            loggers.run.warning(
                "%s, and will be in about %g s: %s", self._failure, self._seconds, error
            )
        self._wait()

    def _wait(self) -> None:
        self._timer = self._cell.system.clock.call_later(
            jittered(self._seconds, _JITTER), self._work_again
        )

    def _work_again(self) -> None:
        # the actor is being stopped, and its last hook has not been called
        with suppress(ActorDeadError):
            self.actor_ref.tell(None)

    def on_stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
