"""Warnings about server settings that can lose data.

Each is logged once, and again only when it changes, for example after a failover to a server with
other settings.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..log import loggers

__all__ = ["Risks"]


class Risks:
    """The risks of one store that were already logged in this process."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, store: str, found: Sequence[str]) -> None:
        """Log the risks that were not logged yet."""
        for risk in found:
            if risk not in self._told:
                self._told.add(risk)
                loggers.stores.warning("%s can lose data: %s", store, risk)
