"""Settings of sessions.

Owns: how much of a conversation is read. It must never read one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..coercion import as_settings

__all__ = ["SessionSettings", "session_limit"]


@dataclass
class SessionSettings:
    """How many items are read: the last ones. None: all."""

    limit: int | None = None

    def resolve(self, override: SessionSettings | dict[str, Any] | None) -> SessionSettings:
        """These settings, with what the other one says in their place."""
        if override is None:
            return self
        other = as_settings(override, SessionSettings, "session_settings")
        return other if other.limit is not None else self

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def session_limit(limit: int | None, settings: SessionSettings | None) -> int | None:
    """How many items are to be read."""
    return limit if limit is not None or settings is None else settings.limit
