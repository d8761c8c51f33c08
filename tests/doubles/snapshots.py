"""A store that remembers what was in it after each write: what a process finds that goes on with a run which ended there and then."""

from understudy.runtime import MemoryStore
from understudy.runtime.codec.packing import unpack


class Snapshots(MemoryStore):
    """In memory. `taken` holds, for each write, what it was and what was in the store then."""

    def __init__(self, content=None):
        super().__init__()
        for key, (value, records) in (content or {}).items():
            entry = self._written(key)
            entry.value, entry.records = value, list(records)
        self.taken = []

    def content(self):
        """All that is in it, but for leases: whoever had them is gone."""
        return {key: (entry.value, tuple(entry.records)) for key, entry in self._entries.items()}

    def copy(self):
        return Snapshots(self.content())

    def _take(self, call, key):
        self.taken.append((f"{call} {key}", self.content()))

    async def set(self, key, value):
        await super().set(key, value)
        self._take("set", key)

    async def append(self, key, records):
        count = await super().append(key, records)
        self._take("append", key)
        return count

    async def create(self, key, value):
        created = await super().create(key, value)
        self._take("create", key)
        return created

    async def delete(self, key):
        await super().delete(key)
        self._take("delete", key)


def journal_of(content):
    """The changes in the one journal of a content, as lists; nothing, if there is none."""
    journals = [records for key, (_value, records) in content.items() if key.startswith("understudy:journal:")]
    assert len(journals) <= 1
    return [change for record in (journals[0] if journals else ()) for change in unpack(record)]


def events_of(content):
    """The events in it, in their order."""
    return [change[2] for change in journal_of(content) if change[0] == "event"]
