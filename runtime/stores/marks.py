"""The marks of a store: that it is held, and the environment that it belongs to.

Both are values under reserved keys. They never expire, regardless of the store's `ttl`, and a
`prune()` by age does not remove them: it skips values that last for longer than `AGELESS` seconds.
"""

from __future__ import annotations

from typing import Final

from .writes import Expect, Put, Write

__all__ = ["AGELESS", "ENVIRONMENT", "HELD", "MARKS", "mark"]

HELD: Final = "offbook:held"
ENVIRONMENT: Final = "offbook:environment"
MARKS: Final = (HELD, ENVIRONMENT)

AGELESS: Final = 1e9
"""Thirty years: `prune(older_than=...)` ignores the age of a value that lasts for longer."""

_SECONDS: Final = 9e9
"""Almost three hundred years: the longest span that every backend can represent."""


def mark(key: str, before: bytes | None, value: bytes) -> list[Write]:
    """Return the writes that set the mark, if it still has the value `before`."""
    return [Expect(key, before), Put(key, value, _SECONDS)]
