"""The keys under which tasks, contexts and configurations are in a store.

Owns: these keys. None of them may ever change: stores outlive the versions of this library. A task's entry in the index says in its key all that a list
chooses by, so that one look at the keys finds a page.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from ...durability.store_keys import PREEMPT, RESERVED
from .owner import Owner

__all__ = ["IndexEntry", "TaskKeys", "short_hash"]

_LAST: Final = 10**20 - 1
"""Times are in the index as what is left until then: the newest is first."""


def short_hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=10).hexdigest()


class IndexEntry(NamedTuple):
    """What the key of a task in the index says."""

    key: str
    owner: str
    rank: str  # by which the list is sorted, the newest first
    task_id: str
    context: str
    state: int

    @property
    def time(self) -> int:
        """When its status changed last, in nanoseconds."""
        return _LAST - int(self.rank)


class TaskKeys:
    """The keys of one agent's tasks."""

    __slots__ = ("base",)

    def __init__(self, agent_name: str) -> None:
        self.base = f"{RESERVED}a2a:{len(agent_name)}:{agent_name[:200]}:"

    def task(self, task_id: str) -> str:
        """Its value is the task; its journal has the task's changes, one record for each number."""
        return f"{self.base}task:{task_id}"

    def work(self, task_id: str) -> str:
        """It is there while the task is being worked on. The owner that does so has claimed this key."""
        return self.work_prefix + task_id

    @property
    def work_prefix(self) -> str:
        return f"{self.base}work:"

    def wanted(self, task_id: str) -> str:
        """It is there while another process wants the task at once, to cancel it."""
        return PREEMPT + self.work(task_id)

    def context(self, context_id: str) -> str:
        """Its value is whose context that is."""
        return f"{self.base}context:{short_hash(context_id)}"

    def configs(self, task_id: str) -> str:
        """Where a task's updates are to be sent."""
        return f"{self.base}push:{task_id}"

    @property
    def outbox_prefix(self) -> str:
        return f"{self.base}outbox:"

    def outbox(self, task_id: str) -> str:
        """It is there while there may be something to send; its value is how far each configuration has been sent."""
        return self.outbox_prefix + task_id

    def session(self, owner: Owner, context_id: str) -> str:
        """The id of the session that a context is."""
        return f"a2a:{owner.key}:{context_id}"

    # --- the index ---

    def index_prefix(self, owner: Owner | None = None) -> str:
        return f"{self.base}index:" if owner is None else f"{self.base}index:{owner.key}:"

    def index(self, owner: Owner, time: int, task_id: str, context_id: str, state: int) -> str:
        return f"{self.index_prefix(owner)}{_LAST - time:020d}:{short_hash(context_id)}:{state}:{task_id}"

    def entry(self, key: str) -> IndexEntry:
        owner, rank, context, state, task_id = key.removeprefix(self.index_prefix()).split(":", 4)
        return IndexEntry(key, owner, rank, task_id, context, int(state))
