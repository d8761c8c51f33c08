"""Owners and claims in the file of a `SQLiteStore`, and the operations that check them.

An owner's row is checked in the transaction that writes for it, under the lock that lets one
connection write at a time: no other owner can take the key between the check and the write. This
module never starts or ends a transaction.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ..store_thread import STEP_SECONDS
from .known import PLACES, Owner, Taken, chunks
from .tables import IS_THERE, behind, refused

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..store_thread import SteppedOperation
    from ..threaded_store import EncodedWrite
    from ..writes import Ending
    from .files import Proofs
    from .state import State
    from .tables import Tables

__all__ = ["NeedsToWrite", "Owners"]

# A lease with more time left than it was granted is from an earlier boot of a machine that does not
# identify its boots.
_IN_TIME: Final = (
    "until > :machine AND until - :machine <= seconds + 1 AND (boot = :boot OR boot = '' OR "
    ":boot = '')"
)

_CLAIMS: Final = f"SELECT key, owner, epoch, attempts FROM claims WHERE key IN ({PLACES})"  # noqa: S608 -- a constant

# The keys come from a range of the index, whatever else the file contains.
_ORPHANS: Final = f"""
    SELECT items.key AS found, coalesce(claims.attempts, 0) AS tried FROM items CROSS JOIN contents ON contents.entry = items.id
    LEFT JOIN claims ON claims.key = items.key
    LEFT JOIN owners ON owners.name = claims.owner AND {_IN_TIME}
    WHERE items.key >= :first AND items.key < :behind AND {IS_THERE.replace("?", ":now")} AND owners.name IS NULL
    UNION ALL
    SELECT runs.claim, coalesce(claims.attempts, 0) FROM runs INDEXED BY runs_by_claim
    LEFT JOIN claims ON claims.key = runs.claim
    LEFT JOIN owners ON owners.name = claims.owner AND {_IN_TIME}
    WHERE runs.claim >= :first AND runs.claim < :behind AND {IS_THERE.replace("?", ":now")} AND owners.name IS NULL
    ORDER BY tried, found LIMIT :limit
"""  # noqa: S608 -- constants


class NeedsToWrite(Exception):
    """A read-only transaction has found a dead owner.

    It must be repeated as one that writes, to remove that owner.
    """


class _Held(NamedTuple):
    """A claim, and its owner."""

    claim: Taken
    owner: Owner | None


class Owners:
    """Owners and claims."""

    def __init__(self, state: State, tables: Tables, proofs: Proofs) -> None:
        self._state = state
        self._connection = state.connection
        self._tables = tables
        self._proofs = proofs
        self._known = tables.known
        self._rows = tables.rows

    def look_for(self, keys: Collection[bytes]) -> None:
        """Load the claims of many keys at once, before each of them is needed."""
        claims = self._known.claims
        for chunk in chunks(keys, claims):
            claims.update(dict.fromkeys(chunk))
            for key, *claim in self._connection.execute(_CLAIMS, chunk):
                claims[key] = Taken(*claim)

    def keep_alive(self, owner: bytes, seconds: float, first: bool) -> bool:  # noqa: FBT001 -- as the operation has it
        self._known.owners.pop(owner, None)
        now = self._state.machine
        times = (now + seconds, seconds, self._state.boot)
        row = self._connection.execute(
            "SELECT file, inode FROM owners WHERE name = ?", (owner,)
        ).fetchone()
        if row is not None:
            self._connection.execute(
                "UPDATE owners SET until = ?, seconds = ?, boot = ? WHERE name = ?", (*times, owner)
            )
        if not first:
            return row is not None
        if row is None or row[0] is None or self._proofs.is_dead(*row):
            proof = self._proofs.make(owner) or (None, None)
            self._connection.execute(
                "INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?, ?)", (owner, *times, *proof)
            )
        return True

    def revoke(self, owner: bytes) -> None:
        row = self._connection.execute(
            "SELECT file FROM owners WHERE name = ?", (owner,)
        ).fetchone()
        if row is not None:
            self._end(owner, row[0])

    def claim(
        self, key: bytes, owner: bytes, writes: Sequence[EncodedWrite]
    ) -> tuple[int, int] | None:
        held = self._held(key)
        if held is not None and held.claim.owner != owner and self._may_be_alive(held):
            return None
        if not self._is_in_time(self._owner(owner)):
            raise refused("owner", key, f"owner {_name(owner)} is not alive")
        self._tables.check(writes)
        epoch, attempts = self._state.next_epoch(), 1 if held is None else held.claim.attempts + 1
        self._put(key, Taken(owner, epoch, attempts))
        self._tables.write(writes)
        return epoch, attempts

    def commit(
        self,
        key: bytes,
        mine: tuple[bytes, int] | None,
        writes: Sequence[EncodedWrite],
        then: Ending,
    ) -> None:
        if mine is not None:
            self._look(key, *mine)
        self._tables.check(writes)
        self._tables.write(writes)
        if mine is None or then == "keep":
            return
        if then == "forget":
            self._rows.before_removal(key)
            self._rows.gone_claims.append((key,))
            self._known.claims[key] = None
            self._known.gone(key)
        else:
            self._put(key, Taken(b"", mine[1], 0))

    def _put(self, key: bytes, claim: Taken) -> None:
        self._rows.claims.append((key, *claim))
        self._rows.touch(key)
        self._known.claims[key] = claim

    def holder(self, key: bytes) -> bytes | None:
        held = self._held(key)
        return held.claim.owner if held is not None and self._may_be_alive(held) else None

    def orphans(self, prefix: bytes, limit: int | None) -> list[bytes]:
        self._rows.write()
        self._end_the_dead()
        state = self._state
        values = {
            "first": prefix,
            "behind": behind(prefix),
            "now": state.now,
            "limit": -1 if limit is None else limit,
        }
        return [
            key
            for key, _ in self._connection.execute(
                _ORPHANS, {**values, "machine": state.machine, "boot": state.boot}
            )
        ]

    def prune(self, operation: SteppedOperation) -> int:
        """Do one step."""
        if operation.progress is None:
            self._end_those_that_are_over()
        until = time.monotonic() + STEP_SECONDS / 2  # the other half is for the transaction
        operation.progress, operation.is_done = self._tables.prune(
            operation.arguments[0], operation.progress, until
        )
        count: int = operation.progress[2]
        return count

    def _end_those_that_are_over(self) -> None:
        self._rows.write()
        self._end_the_dead()
        times = {"machine": self._state.machine, "boot": self._state.boot}
        for owner, file in self._connection.execute(
            f"SELECT name, file FROM owners WHERE NOT ({_IN_TIME})",  # noqa: S608 -- a constant
            times,
        ).fetchall():
            self._end(owner, file)
        self._proofs.sweep(
            {
                file
                for (file,) in self._connection.execute(
                    "SELECT file FROM owners WHERE file IS NOT NULL"
                )
            }
        )

    def _look(self, key: bytes, owner: bytes, epoch: int) -> None:
        """Raise if that claim no longer holds the key, or its owner is not alive.

        Only expiry counts: it is the owner itself that asks.
        """
        held = self._held(key)
        if held is None or held.claim.epoch != epoch or held.claim.owner != owner:
            by = (
                "no owner"
                if held is None or not held.claim.owner
                else f"owner {_name(held.claim.owner)}"
            )
            raise refused("epoch", key, f"its claim now belongs to {by}")
        if not self._is_in_time(held.owner):
            raise refused("owner", key, f"owner {_name(owner)} is not alive")

    def _held(self, key: bytes) -> _Held | None:
        claims = self._known.claims
        claim = claims.get(key)
        if claim is None and key not in claims:
            row = self._connection.execute(
                "SELECT owner, epoch, attempts FROM claims WHERE key = ?", (key,)
            ).fetchone()
            claim = claims[key] = None if row is None else Taken(*row)
        return None if claim is None else _Held(claim, self._owner(claim.owner))

    def _owner(self, name: bytes) -> Owner | None:
        owners = self._known.owners
        owner = owners.get(name)
        if owner is None and name not in owners:
            row = self._connection.execute(
                "SELECT until, seconds, boot, file, inode FROM owners WHERE name = ?", (name,)
            ).fetchone()
            owner = owners[name] = None if row is None else Owner(*row)
        return owner

    def _is_in_time(self, owner: Owner | None) -> bool:
        """Return whether an owner has not expired; the same condition as `_IN_TIME`."""
        if owner is None:
            return False
        return (
            0 < owner.until - self._state.machine <= owner.seconds + 1
            and not self._state.is_over(owner.boot)
        )

    def _may_be_alive(self, held: _Held) -> bool:
        """Return whether the owner of a claim has not expired, and is not proven dead.

        An owner that is proven dead is removed.
        """
        owner = held.owner
        if owner is None or not self._is_in_time(owner):
            return False
        if (
            owner.file is None
            or owner.inode is None
            or not self._proofs.is_dead(owner.file, owner.inode)
        ):
            return True
        self._end(held.claim.owner, owner.file)
        return False

    def _end_the_dead(self) -> None:
        for owner, file, inode in self._connection.execute(
            "SELECT name, file, inode FROM owners WHERE file IS NOT NULL"
        ).fetchall():
            if self._proofs.is_dead(file, inode):
                self._end(owner, file)

    def _end(self, owner: bytes, file: str | None) -> None:
        """Remove an owner for good: without its row, it cannot be renewed."""
        if not self._state.writing:
            raise NeedsToWrite
        self._known.owners.pop(owner, None)
        self._connection.execute("DELETE FROM owners WHERE name = ?", (owner,))
        self._proofs.end(file)


def _name(owner: bytes) -> str:
    return repr(owner.decode("utf-8", "surrogatepass"))
