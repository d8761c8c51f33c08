"""The list of a cluster's hosts, which the hosts store.

Each version of the list has its own key, written by `create`: if two hosts change the list at once,
one of them retries with the version that the other has written.

The list does not describe which hosts are alive. A host that has died stays in it until it is
drained, because Ray restarts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ..codec.packing import pack, unpack
from ..durability.store_keys import cluster_prefix
from ..errors import CheckpointError
from .placement import Placement

__all__ = ["HostList", "KeepsList", "ListKeeper", "Member"]

_FORMAT: Final = 1
_DIGITS: Final = 12
_OLD: Final = 5
"""The number of old versions retained."""


@dataclass(frozen=True, slots=True)
class Member:
    """A host in the list."""

    name: str
    version: str | None = None
    is_draining: bool = False
    """Whether the host accepts no new work."""


@dataclass(frozen=True, slots=True)
class HostList:
    """One version of the list."""

    number: int = 0
    members: tuple[Member, ...] = ()
    placement: Placement = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "placement", Placement(one.name for one in self.members if not one.is_draining)
        )

    def find(self, name: str) -> Member | None:
        return next((one for one in self.members if one.name == name), None)

    def names(self) -> list[str]:
        return [one.name for one in self.members]

    def put(self, member: Member) -> HostList:
        """Return the list with that host added or replaced."""
        return HostList(
            self.number, (*(one for one in self.members if one.name != member.name), member)
        )

    def without(self, name: str) -> HostList:
        return HostList(self.number, tuple(one for one in self.members if one.name != name))

    def data(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "number": self.number,
            "members": [[one.name, one.version, one.is_draining] for one in self.members],
        }

    @staticmethod
    def of(data: Any) -> HostList:
        """Make a list from the result of `data()`. Raise `CheckpointError`."""
        try:
            if data["format"] > _FORMAT:
                raise CheckpointError(
                    "the list of the cluster's hosts was written by a newer version of offbook. "
                    "Update offbook in this process."
                )
            members = tuple(
                Member(name, version, bool(draining)) for name, version, draining in data["members"]
            )
            return HostList(int(data["number"]), members)
        except (KeyError, TypeError, ValueError) as error:
            msg = (
                f"the list of the cluster's hosts is damaged: {type(error).__name__}: {error}. "
                "Stop the cluster and start it again"
            )
            raise CheckpointError(msg) from error


class KeepsList(Protocol):
    """The methods of a store that are needed here."""

    async def get(self, key: str) -> bytes | None: ...
    async def create(self, key: str, value: bytes) -> bool: ...
    async def keys(self, prefix: str = "") -> list[str]: ...
    async def delete(self, key: str) -> None: ...


class ListKeeper:
    """The list of one cluster in one store."""

    __slots__ = ("_prefix", "_store", "current")

    def __init__(self, store: KeepsList, cluster: str) -> None:
        self._store = store
        self._prefix = f"{cluster_prefix(cluster)}list:"
        self.current = HostList()

    async def read(self) -> HostList:
        """Return the newest version.

        It never goes back: if the store was emptied, the known version stays.
        """
        keys = await self._store.keys(self._prefix)
        while keys:
            data = await self._store.get(keys[-1])
            if data is not None:
                self.learn(HostList.of(unpack(data)))
                break
            keys.pop()  # removed since, because there are newer ones
        return self.current

    def learn(self, found: HostList) -> bool:
        """Use a list if it is newer. Return whether it is."""
        if found.number <= self.current.number:
            return False
        self.current = found
        return True

    async def change(self, change: Callable[[HostList], HostList]) -> HostList:
        """Write a new version, made from the newest one, unless they are equal."""
        while True:
            before = await self.read()
            wanted = change(before)
            if set(wanted.members) == set(before.members) and await self._is_there(before):
                return before
            after = HostList(
                before.number + 1, tuple(sorted(wanted.members, key=lambda one: one.name))
            )
            if await self._store.create(self._key(after.number), pack(after.data())):
                self.learn(after)
                if after.number > _OLD:
                    await self._store.delete(self._key(after.number - _OLD))
                return after

    async def _is_there(self, known: HostList) -> bool:
        """Return whether the store still has a version. Old keys may be pruned."""
        return known.number == 0 or await self._store.get(self._key(known.number)) is not None

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:0{_DIGITS}}"
