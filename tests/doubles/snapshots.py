"""A store that remembers what was in it after each step in which something was written: what a
process finds that goes on with a run which ended there.
"""

from offbook.runtime.codec.packing import unpack
from offbook.runtime.stores import RunEntry
from tests.doubles.watched_stores import WatchedStore


class Snapshots(WatchedStore):
    """In memory.

    `taken` holds, for each step that has changed something, what it was and what was in the store
    then.
    """

    def __init__(self, content=None):
        super().__init__()
        for key, (value, records) in (content or {}).items():
            if isinstance(value, RunEntry):
                self._runs.put(value, self._time(), None)
                continue
            entry = self._written(key)
            entry.value, entry.records = value, list(records)
        self.taken = []

    def content(self):
        """All that is in it, but for owners and claims: whoever had them is gone. The row of a run
        that a process has to continue is under its claim; other rows are left out.
        """
        rows = [row for row, *_ in self._runs._entries.values() if row.claim]
        return {
            **{key: (entry.value, tuple(entry.records)) for key, entry in self._entries.items()},
            **{row.claim: (row, ()) for row in rows},
        }

    def copy(self):
        return Snapshots(self.content())

    async def after(self, call):
        if call.is_done:
            self.taken.append((call, self.content()))


def journal_of(content):
    """The changes in the one journal of a content, as lists; nothing, if there is none."""
    journals = [
        records for key, (_value, records) in content.items() if key.startswith("offbook:journal:")
    ]
    assert len(journals) <= 1
    return [change for record in (journals[0] if journals else ()) for change in unpack(record)]


def events_of(content):
    """The events in it, in their order."""
    return [change[2] for change in journal_of(content) if change[0] == "event"]
