"""Support for tasks in a store with `get` and `set` alone.

Each key's value and journal are stored as one value, and a `MemoryStore` does everything else. Two
processes must not use such a store at once, because they would overwrite each other's data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...codec.packing import pack, unpack
from ...maybe_await import maybe_await
from ...stores import MemoryStore
from ...stores.writes import Append, Claim, Ending, Expect, Put, Remove, Write

__all__ = ["MISSING", "PlainStore"]

MISSING: Final = (
    "a2a_app(store=%s): it has only get and set. Tasks are found by their ids, but after a "
    "restart they are not listed, and unfinished ones do not continue. Two processes must not "
    "share it. If you need that, pass SQLiteStore('tasks.db'), RedisStore(url) or "
    "PostgresStore(dsn)."
)
"""The log message about such a store."""


class PlainStore(MemoryStore):
    """A store in memory that also writes each value to the wrapped store."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        self._given = given
        # One write at a time, so that an earlier one cannot overwrite a later one of the same key.
        self._keeping = asyncio.Lock()

    async def get(self, key: str) -> bytes | None:
        await self._bring((key,))
        return await super().get(key)

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        await self._bring((key,))
        return await super().read(key, after)

    async def set(self, key: str, value: bytes) -> None:
        await super().set(key, value)
        await self._keep((key,))

    async def delete(self, key: str) -> None:
        await super().delete(key)
        await self._keep((key,))

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        await self._bring((key,))
        held = await super().append(key, records)
        await self._keep((key,))
        return held

    async def create(self, key: str, value: bytes) -> bool:
        await self._bring((key,))
        is_new = await super().create(key, value)
        if is_new:
            await self._keep((key,))
        return is_new

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = ()) -> Claim | None:
        await self._bring(_keys(writes, Append, Expect))
        claim = await super().claim(key, owner, writes)
        if claim is not None:
            await self._keep(_keys(writes, Put, Remove, Append))
        return claim

    async def commit(
        self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep"
    ) -> None:
        await self._bring(_keys(writes, Append, Expect))
        await super().commit(claim, writes, then=then)
        await self._keep(_keys(writes, Put, Remove, Append))

    async def _bring(self, keys: Iterable[str]) -> None:
        """Load into memory what an earlier process has written."""
        for key in keys:
            if await super().get(key) is None and not await super().read(key):
                data = await maybe_await(self._given.get(key))
                if data:
                    value, records = unpack(data)
                    if value is None or await super().create(key, value):
                        await super().append(key, records)

    async def _keep(self, keys: Iterable[str]) -> None:
        async with self._keeping:
            for key in keys:
                value, records = await super().get(key), await super().read(key)
                # An empty value replaces a removed one: such a store may be unable to remove
                # anything.
                await maybe_await(
                    self._given.set(
                        key, pack([value, records]) if value is not None or records else b""
                    )
                )


def _keys(writes: Sequence[Write], *kinds: type) -> list[str]:
    found = dict.fromkeys(write.key for write in writes if isinstance(write, kinds))
    return list(found)
