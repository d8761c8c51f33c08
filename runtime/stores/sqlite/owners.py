"""What is in the file of a `SQLiteStore` of owners and claims, and how each operation looks at them.

An owner's row is looked at in the transaction that writes for it, under the lock that lets one connection write at a time: between the look and the write there
is no instant in which another one could take the key.

Owns: those tables, and when an owner is dead. It must never begin or end a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .tables import IS_THERE, behind, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..threaded_store import EncodedWrite
    from ..writes import Ending
    from .files import Proofs
    from .state import State
    from .tables import Tables

__all__ = ["NeedsToWrite", "Owners"]

# A lease that has longer to go than it was given for is of an earlier start of a machine that does not say which start it is.
_IN_TIME: Final = "until > :machine AND until - :machine <= seconds + 1 AND (boot = :boot OR boot = '' OR :boot = '')"

_OF_CLAIM: Final = (
    "SELECT claims.owner, epoch, attempts, until, seconds, boot, file, inode FROM claims LEFT JOIN owners ON name = claims.owner WHERE claims.key = ?"
)

# The keys come from the index, a range of it, whatever else there is.
_ORPHANS: Final = f"""
    SELECT items.key FROM items CROSS JOIN contents ON contents.entry = items.id
    LEFT JOIN claims ON claims.key = items.key
    LEFT JOIN owners ON owners.name = claims.owner AND {_IN_TIME}
    WHERE items.key >= :first AND items.key < :behind AND {IS_THERE.replace("?", ":now")} AND owners.name IS NULL
    ORDER BY coalesce(claims.attempts, 0), items.key LIMIT :limit
"""  # noqa: S608 -- constants


class NeedsToWrite(Exception):
    """A transaction that was to read only has found an owner that is dead: it is to be done again as one that writes, and ends that owner."""


class _Held(NamedTuple):
    """What there is of a claim, and of its owner."""

    owner: bytes
    epoch: int
    attempts: int
    until: float | None
    seconds: float
    boot: str
    file: str | None
    inode: str | None


class Owners:
    """Owners and claims."""

    def __init__(self, state: State, tables: Tables, proofs: Proofs) -> None:
        self._state = state
        self._connection = state.connection
        self._tables = tables
        self._proofs = proofs

    def keep_alive(self, owner: bytes, seconds: float, first: bool) -> bool:  # noqa: FBT001 -- as the operation has it
        now = self._state.machine
        times = (now + seconds, seconds, self._state.boot)
        row = self._connection.execute("SELECT file, inode FROM owners WHERE name = ?", (owner,)).fetchone()
        if row is not None:
            self._connection.execute("UPDATE owners SET until = ?, seconds = ?, boot = ? WHERE name = ?", (*times, owner))
        if not first:
            return row is not None
        if row is None or row[0] is None or self._proofs.is_dead(*row):
            proof = self._proofs.make(owner) or (None, None)
            self._connection.execute("INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?, ?)", (owner, *times, *proof))
        return True

    def revoke(self, owner: bytes) -> None:
        row = self._connection.execute("SELECT file FROM owners WHERE name = ?", (owner,)).fetchone()
        if row is not None:
            self._end(owner, row[0])

    def claim(self, key: bytes, owner: bytes, writes: Sequence[EncodedWrite], former: bytes | None) -> tuple[int, int] | None:
        held = self._held(key)
        if held is not None and held.owner != owner and self._may_be_alive(held):
            return None
        if former is not None and self._is_leased(former):
            return None
        query = f"SELECT 1 FROM owners WHERE name = :owner AND {_IN_TIME}"  # noqa: S608 -- a constant
        if self._connection.execute(query, {"owner": owner, "machine": self._state.machine, "boot": self._state.boot}).fetchone() is None:
            raise refused("owner", key, f"owner {_name(owner)} is not alive")
        self._tables.check(writes)
        self._state.epoch += 1
        epoch, attempts = self._state.epoch, 1 if held is None else held.attempts + 1
        self._connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (key, owner, epoch, attempts))
        self._tables.write(writes)
        return epoch, attempts

    def commit(self, key: bytes, mine: tuple[bytes, int] | None, writes: Sequence[EncodedWrite], then: Ending) -> None:
        if mine is not None:
            self._look(key, *mine)
        self._tables.check(writes)
        self._tables.write(writes)
        if mine is None or then == "keep":
            return
        statement = "DELETE FROM claims WHERE key = ?" if then == "forget" else "UPDATE claims SET owner = x'', attempts = 0 WHERE key = ?"
        self._connection.execute(statement, (key,))

    def holder(self, key: bytes) -> bytes | None:
        held = self._held(key)
        return held.owner if held is not None and self._may_be_alive(held) else None

    def orphans(self, prefix: bytes, limit: int | None) -> list[bytes]:
        self._end_the_dead()
        state = self._state
        values = {"first": prefix, "behind": behind(prefix), "now": state.now, "limit": -1 if limit is None else limit}
        return [key for (key,) in self._connection.execute(_ORPHANS, {**values, "machine": state.machine, "boot": state.boot})]

    def prune(self, _key: bytes, older_than: float | None) -> int:
        self._end_the_dead()
        times = {"machine": self._state.machine, "boot": self._state.boot}
        for owner, file in self._connection.execute(f"SELECT name, file FROM owners WHERE NOT ({_IN_TIME})", times).fetchall():  # noqa: S608 -- a constant
            self._end(owner, file)
        self._proofs.sweep({file for (file,) in self._connection.execute("SELECT file FROM owners WHERE file IS NOT NULL")})
        return self._tables.prune(older_than)

    def _look(self, key: bytes, owner: bytes, epoch: int) -> None:
        """Raise, if that claim is no longer what holds the key, or its owner is not alive. By its time: it is the owner that asks."""
        held = self._held(key)
        if held is None or held.epoch != epoch or held.owner != owner:
            by = "no owner" if held is None or not held.owner else f"owner {_name(held.owner)}"
            raise refused("epoch", key, f"it is claimed by {by} by now")
        if not self._is_in_time(held):
            raise refused("owner", key, f"owner {_name(owner)} is not alive")

    def _held(self, key: bytes) -> _Held | None:
        row = self._connection.execute(_OF_CLAIM, (key,)).fetchone()
        return None if row is None else _Held(*row)

    def _is_in_time(self, held: _Held) -> bool:
        """As `_IN_TIME` says it."""
        if held.until is None:
            return False
        return 0 < held.until - self._state.machine <= held.seconds + 1 and not self._state.is_over(held.boot)

    def _may_be_alive(self, held: _Held) -> bool:
        """Whether the owner of a claim is in time, and is not proven dead. One that is ends here and now."""
        if not self._is_in_time(held):
            return False
        if held.file is None or held.inode is None or not self._proofs.is_dead(held.file, held.inode):
            return True
        self._end(held.owner, held.file)
        return False

    def _is_leased(self, key: bytes) -> bool:
        query = "SELECT 1 FROM former_leases WHERE key = ? AND until > ?"
        return self._connection.execute(query, (key, self._state.now)).fetchone() is not None

    def _end_the_dead(self) -> None:
        for owner, file, inode in self._connection.execute("SELECT name, file, inode FROM owners WHERE file IS NOT NULL").fetchall():
            if self._proofs.is_dead(file, inode):
                self._end(owner, file)

    def _end(self, owner: bytes, file: str | None) -> None:
        """For good: it has no row any more, so that nothing prolongs it."""
        if not self._state.writing:
            raise NeedsToWrite
        self._connection.execute("DELETE FROM owners WHERE name = ?", (owner,))
        self._proofs.end(file)


def _name(owner: bytes) -> str:
    return repr(owner.decode("utf-8", "surrogatepass"))
