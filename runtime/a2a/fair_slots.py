"""Slots for work on behalf of several owners, who take turns.

An owner waits only for slots that others hold, or because of its own share. For one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable

__all__ = ["FairSlots"]


class FairSlots:
    """A number of slots, with a maximum share for each owner."""

    __slots__ = ("_share", "_taken", "_taken_by", "_total", "_waiting")

    def __init__(self, total: int, share: int) -> None:
        self._total = total
        self._share = share
        self._taken = 0
        self._taken_by: dict[Hashable, int] = {}
        # The owner whose turn is next comes first.
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    def take_now(self, owner: Hashable) -> bool:
        """Take a slot, if one is free and no caller of that owner waits."""
        if owner in self._waiting or not self._has_place(owner):
            return False
        self._add(owner)
        return True

    def wait(self, owner: Hashable) -> asyncio.Future[None]:
        """Queue for a slot. Afterwards `give_up` waiting, or `leave` the slot."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(place)
        return place

    def give_up(self, owner: Hashable, place: asyncio.Future[None]) -> None:
        """Stop waiting; a slot that was granted in the meantime is returned."""
        queue = self._waiting.get(owner)
        if queue is not None and place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[owner]
        elif not place.cancelled():
            self.leave(owner)

    def leave(self, owner: Hashable) -> None:
        """Return the slot, to the next owner."""
        self._taken -= 1
        left = self._taken_by[owner] - 1
        if left:
            self._taken_by[owner] = left
        else:
            del self._taken_by[owner]
        while (
            following := next((one for one in self._waiting if self._has_place(one)), None)
        ) is not None:
            queue = self._waiting.pop(following)
            place = queue.popleft()
            if queue:
                self._waiting[following] = queue  # after all others
            if not place.cancelled():
                self._add(following)
                place.set_result(None)

    def _has_place(self, owner: Hashable) -> bool:
        return self._taken < self._total and self._taken_by.get(owner, 0) < self._share

    def _add(self, owner: Hashable) -> None:
        self._taken += 1
        self._taken_by[owner] = self._taken_by.get(owner, 0) + 1
