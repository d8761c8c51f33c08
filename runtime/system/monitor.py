"""What happened in a system, counted: for `stats()`, for dead-letter subscribers, and for the log.

Owns: the counters, the subscribers, and the warning about handlers that hold the loop. A subscriber that raises is logged and removed:
watching a system can never break it. It must never call anybody under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..actor.ref import ActorRef

from ..actor.report import DeadLetter, SlowestHandler
from ..log import logger

__all__ = ["Monitor"]

# A handler that is slow is mostly slow each time: say so, but do not fill the log with it.
_WARN_AGAIN_AFTER = 10.0


class _Subscription:
    """One callback, subscribed once: the same one may be so several times."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[DeadLetter], object]) -> None:
        self.callback = callback


class Monitor:
    """The counters of one system. They are written from the loop's thread but where something else is said."""

    __slots__ = ("_subscribers", "_warned", "dead_letters", "handled", "lock", "notable", "restarts", "slow_after", "slowest")

    def __init__(self, slow_after: float) -> None:
        self.lock = threading.Lock()
        self._subscribers: tuple[_Subscription, ...] = ()
        self._warned: dict[tuple[type, str], float] = {}  # when each handler was warned about last; never more than there are handlers
        self.slow_after = slow_after
        self.notable = 0.0  # what takes longer is to be told to `took`
        self.handled = 0  # threads of thread actors add to it through `count_handled`
        self.restarts = 0
        self.dead_letters = 0  # any thread
        self.slowest: SlowestHandler | None = None

    # --- handlers ---

    def took(self, actor: str, handler: str, seconds: float) -> None:
        """Note how long a handler took. The caller has seen that it is longer than `notable`."""
        with self.lock:
            if self.slowest is None or seconds > self.slowest.seconds:
                self.slowest = SlowestHandler(actor, handler, seconds)
                self.notable = min(seconds, self.slow_after)

    def blocked_for(self, actor: str, actor_class: type, handler: str, seconds: float) -> None:
        """Warn that a handler has held the loop. The caller has seen that it is longer than `slow_after`."""
        now = monotonic()
        last = self._warned.get((actor_class, handler))
        if last is not None and now - last < _WARN_AGAIN_AFTER:
            return
        self._warned[(actor_class, handler)] = now
        logger.warning(
            "%s held the event loop for %.3f s in %s: nothing else could run meanwhile. "
            "Await instead of blocking, hand the work to a thread (`await self.actor_system.run_blocking(...)`), or make it a ThreadActor.",
            actor,
            seconds,
            handler,
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
        """Whether anybody wants to see dead letters."""
        return bool(self._subscribers)

    def count_dead_letters(self, count: int) -> None:
        """Count messages that are lost while nobody is watching."""
        with self.lock:
            self.dead_letters += count

    def dead_letter(self, message: Any, ref: ActorRef[Any], reason: str) -> None:
        """Count a message that is lost, and tell the subscribers, in the thread in which it was lost."""
        with self.lock:
            self.dead_letters += 1
            subscribers = self._subscribers
        if not subscribers:
            return
        letter = DeadLetter(message, ref, reason)
        for subscriber in subscribers:
            try:
                subscriber.callback(letter)
            except Exception:  # noqa: BLE001 -- watching a system never breaks it
                logger.exception("A dead-letter subscriber raised, and is removed: %r", subscriber.callback)
                self._unsubscribe(subscriber)
