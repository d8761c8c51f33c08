"""The delay before the next attempt, as data.

It serves the restarts of an actor and the attempts of a model call. The module does not wait
itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import UsageError

__all__ = ["Backoff", "jittered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The delay before the next attempt.

    It starts at `initial` seconds and grows by `factor` each time, up to `maximum`. `jitter` is the
    random share of the delay, so that a thousand callers that failed together do not retry
    together: with 0.2, a delay of one second becomes 0.8 to 1.2 seconds.
    """

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        # `not >=` instead of `<`, so that nan is refused as well.
        if not (self.initial >= 0 and self.maximum >= 0):
            msg = (
                "Backoff: initial and maximum must be numbers of seconds, 0 or more, got "
                f"initial={self.initial} and maximum={self.maximum}."
            )
            raise UsageError(msg)
        if not self.factor >= 1:
            msg = f"Backoff: factor must be 1 or more, got {self.factor}."
            raise UsageError(msg)
        if not 0 <= self.jitter <= 1:
            msg = f"Backoff: jitter must be a share of the delay, from 0 to 1, got {self.jitter}."
            raise UsageError(msg)

    def delay(self, attempt: int, *, chance: float | None = None) -> float:
        """Return the seconds to wait before attempt number `attempt`, counted from 0.

        `chance`, from 0 to 1, replaces the random number.
        """
        try:
            plain = min(self.maximum, self.initial * self.factor**attempt)
        except OverflowError:
            plain = self.maximum
        return jittered(plain, self.jitter, chance)


def jittered(seconds: float, share: float, chance: float | None = None) -> float:
    """Return a wait that is randomly longer or shorter by up to `share`."""
    if chance is None:
        chance = random.random()  # noqa: S311 -- spreads load, guards no secret
    return max(0.0, seconds * (1 + share * (2 * chance - 1)))
