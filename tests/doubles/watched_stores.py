"""Stores of which each call is seen before it is made and after it is done; and what a call is
about.
"""

from offbook.runtime import MemoryStore, RunStatus
from offbook.runtime.durability.store_keys import open_key
from offbook.runtime.stores import (
    Append,
    DropEntry,
    Expect,
    ExpectEntry,
    Put,
    Remove,
    RunEntry,
    RunQuery,
)

KINDS = {
    Append: "append",
    Put: "put",
    Remove: "remove",
    Expect: "expect",
    RunEntry: "entry",
    DropEntry: "drop",
    ExpectEntry: "expect",
}
CHANGES = ("append", "put", "remove", "open", "close")


async def unfinished(store):
    """The claims of the runs that a process has to continue."""
    rows = await store.run_entries(RunQuery(tuple(RunStatus), limit=10_000))
    return sorted(row.claim for row in rows if row.claim)


class Call:
    """One call of a store: its method, and what it is about, as pairs of a word and a key.

    The words are those of the methods; for what it writes, alone or in a claim or commit, "append",
    "put", "remove", "expect", and "entry" and "drop" for the row of a run. A row is also "open", if
    a process has to continue the run, or else "close", with the key that its owner claims. For a
    claim that is given up the word is "leave".
    """

    __slots__ = ("about", "key", "method", "result", "writes")

    def __init__(self, method, key, writes=(), then="keep"):
        self.method = method
        self.key = key
        self.about = list(
            dict.fromkeys([(method, key), *((KINDS[type(write)], write.key) for write in writes)])
        )
        for write in writes:
            if type(write) is RunEntry:
                self.about.append(
                    ("open" if write.claim else "close", open_key(write.agent, write.key))
                )
            elif type(write) is DropEntry and write.claim:
                self.about.append(("close", write.claim))
        if then != "keep":
            self.about.append(("leave", key))
        self.writes = writes
        self.result = None

    def has(self, word, part=""):
        """Whether it does that with a key that has that part."""
        return any(one == word and part in key for one, key in self.about)

    @property
    def changes(self):
        """What it changes of values, journals and rows: the word and the key of each."""
        return [(word, key) for word, key in self.about if word in CHANGES]

    @property
    def is_done(self):
        """Whether it has changed that."""
        return bool(self.changes) and not (self.method == "claim" and self.result is None)

    @property
    def records(self):
        """The records that it adds to journals."""
        return [
            record for write in self.writes if type(write) is Append for record in write.records
        ]

    @property
    def size(self):
        """How many bytes it writes."""
        return sum(map(len, self.records)) + sum(
            len(write.value) for write in self.writes if type(write) is Put
        )

    def __str__(self):
        return " ".join(f"{word} {key}" for word, key in self.about if word != "expect")


class Watched:
    """To be put in front of a store's class: `before` and `after` see each call.

    What `before` raises, the call raises, and is not made.
    """

    async def before(self, call):
        """It is about to be made."""

    async def after(self, call):
        """It was made, and `call.result` is what it returned."""

    async def _watched(self, call, make):
        await self.before(call)
        call.result = await make()
        await self.after(call)
        return call.result

    async def get(self, key):
        return await self._watched(Call("get", key), lambda: super(Watched, self).get(key))

    async def set(self, key, value):
        return await self._watched(
            Call("set", key, (Put(key, value),)), lambda: super(Watched, self).set(key, value)
        )

    async def delete(self, key):
        return await self._watched(
            Call("delete", key, (Remove(key),)), lambda: super(Watched, self).delete(key)
        )

    async def append(self, key, records):
        return await self._watched(
            Call("append", key, (Append(key, tuple(records), 0),)),
            lambda: super(Watched, self).append(key, records),
        )

    async def read(self, key, after=0):
        return await self._watched(Call("read", key), lambda: super(Watched, self).read(key, after))

    async def keys(self, prefix=""):
        return await self._watched(Call("keys", prefix), lambda: super(Watched, self).keys(prefix))

    async def create(self, key, value):
        return await self._watched(
            Call("create", key, (Put(key, value),)), lambda: super(Watched, self).create(key, value)
        )

    async def keep_alive(self, owner, seconds, *, first=False):
        return await self._watched(
            Call("keep_alive", owner),
            lambda: super(Watched, self).keep_alive(owner, seconds, first=first),
        )

    async def revoke(self, owner):
        return await self._watched(
            Call("revoke", owner), lambda: super(Watched, self).revoke(owner)
        )

    async def claim(self, key, owner, writes=()):
        return await self._watched(
            Call("claim", key, writes),
            lambda: super(Watched, self).claim(key, owner, writes),
        )

    async def commit(self, claim, writes, *, then="keep"):
        call = Call(
            "commit", "" if claim is None else claim.key, writes, "keep" if claim is None else then
        )
        return await self._watched(
            call, lambda: super(Watched, self).commit(claim, writes, then=then)
        )

    async def holder(self, key):
        return await self._watched(Call("holder", key), lambda: super(Watched, self).holder(key))

    async def orphans(self, prefix="", limit=None):
        return await self._watched(
            Call("orphans", prefix), lambda: super(Watched, self).orphans(prefix, limit)
        )


class WatchedStore(Watched, MemoryStore):
    """One in memory."""
