"""The counters of a system: for `stats()`, for dead-letter subscribers, and for the log.

The monitor also warns about handlers that block the loop. A subscriber that raises is logged and
removed, so that observing a system never breaks it. Nothing is called under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..actor.actor import Actor
    from ..actor.ref import ActorRef

from ..actor.report import DeadLetter, SlowestHandler
from ..log import loggers
from .loop_meter import LoopMeter

__all__ = ["Monitor"]

# In seconds. A slow handler is usually slow each time: the log needs one warning, not all of them.
_WARN_AGAIN_AFTER = 10.0
_WHEN_COLLECTED = (
    "Python's garbage collector made a full collection meanwhile, which takes long if there are "
    'very many objects: ActorSystem(full_collections="paced") makes that rarer. '
    "If that was not the cause: "
)


class _Subscription:
    """One subscription of a callback, which may have several."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[DeadLetter], object]) -> None:
        self.callback = callback


class Monitor:
    """The counters of one system.

    They are written on the loop's thread, except where a comment says otherwise.
    """

    __slots__ = (
        "_meter",
        "_subscribers",
        "_warned",
        "begin",
        "dead_letters",
        "handled",
        "lock",
        "notable",
        "rest",
        "restarts",
        "slow_after",
        "slowest",
    )

    def __init__(self, slow_after: float) -> None:
        self.lock = threading.Lock()
        self._subscribers: tuple[_Subscription, ...] = ()
        self._warned: dict[
            tuple[type, str], float
        ] = {}  # the time of the last warning about each handler
        self.slow_after = slow_after
        self._meter = LoopMeter(slow_after)
        self.begin = self._meter.begin  # returns the start time of a measurement
        # Nothing is running any more, and nothing will be for long.
        self.rest = self._meter.sampler.stop
        self.notable = 0.0  # handlers that take longer are reported to `took`
        self.handled = 0  # threads of thread actors add to it through `count_handled`
        self.restarts = 0
        self.dead_letters = 0  # any thread
        self.slowest: SlowestHandler | None = None

    # --- handlers ---

    def took(self, actor: str, handler: str, seconds: float) -> None:
        """Record the time for which a handler has blocked its thread.

        The caller has checked that it is longer than `notable`.
        """
        with self.lock:
            if self.slowest is None or seconds > self.slowest.seconds:
                self.slowest = SlowestHandler(actor, handler, seconds)
                self.notable = min(seconds, self.slow_after)

    def blocked_for(
        self, actor: str, actor_class: type[Actor], handler: str, seconds: float
    ) -> None:
        """Warn that a handler blocked the loop.

        The caller has checked that it took longer than `slow_after`, measured from `begin`.
        """
        place = self._meter.sampler.seen_since(perf_counter() - seconds)
        seconds = self._meter.held(seconds)
        if seconds <= self.slow_after:
            return
        now = monotonic()
        last = self._warned.get((actor_class, handler))
        if last is not None and now - last < _WARN_AGAIN_AFTER:
            return
        self._warned[(actor_class, handler)] = now
        where = "" if place is None else f" It was at {place}."
        advice = (
            actor_class.__when_slow__ if place is None or place.advice is None else place.advice
        )
        advice = _WHEN_COLLECTED + advice if self._meter.has_collected else advice
        loggers.system.warning(
            "%s blocked the event loop for %.3f s in %s: nothing else could run meanwhile.%s %s",
            actor,
            seconds,
            handler,
            where,
            advice,
        )

    def count_handled(self) -> None:
        """Count a message that a thread actor has handled, in its thread."""
        with self.lock:
            self.handled += 1

    # --- dead letters ---

    def subscribe(self, callback: Callable[[DeadLetter], object]) -> Callable[[], None]:
        subscription = _Subscription(callback)
        with self.lock:
            self._subscribers = (*self._subscribers, subscription)
        return lambda: self._unsubscribe(subscription)

    def _unsubscribe(self, subscription: _Subscription) -> None:
        with self.lock:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscription)

    def is_watched(self) -> bool:
        """Return True if dead letters have a subscriber."""
        return bool(self._subscribers)

    def count_dead_letters(self, count: int) -> None:
        """Count lost messages, while there is no subscriber."""
        with self.lock:
            self.dead_letters += count

    def dead_letter(self, message: Any, ref: ActorRef[Any], reason: str) -> None:
        """Count a lost message, and notify the subscribers, in the thread that lost it."""
        with self.lock:
            self.dead_letters += 1
            subscribers = self._subscribers
        if not subscribers:
            return
        letter = DeadLetter(message, ref, reason)
        for subscriber in subscribers:
            try:
                subscriber.callback(letter)
            except Exception:  # noqa: BLE001 -- observing a system never breaks it
                loggers.system.exception(
                    "A dead-letter subscriber raised, and is removed: %r", subscriber.callback
                )
                self._unsubscribe(subscriber)
