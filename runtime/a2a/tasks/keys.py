"""The keys of tasks, contexts and webhooks in a store.

None of them may ever change: stores outlive the versions of this library. The key of a task's index
entry contains everything that a list filters by, so that one query of the keys finds a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple

from ...durability.store_keys import PREEMPT, RESERVED

__all__ = ["ANONYMOUS", "IndexEntry", "Owner", "TaskKeys", "short_hash"]


@dataclass(frozen=True)
class Owner:
    """A subject of a tenant: both are empty on a server without authentication."""

    tenant: str = ""
    subject: str = ""

    @cached_property
    def key(self) -> str:
        """A short unique text for this owner, which is safe in a key."""
        tenant = self.tenant.encode()
        return blake2b(
            len(tenant).to_bytes(8, "big") + tenant + self.subject.encode(), digest_size=12
        ).hexdigest()


ANONYMOUS: Final = Owner()

_LAST: Final = 10**20 - 1
"""The index has the time that is left until then, so that the newest is first."""


def short_hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=10).hexdigest()


class IndexEntry(NamedTuple):
    """The parsed key of a task's index entry."""

    key: str
    owner: str
    rank: str  # the sort key of the list, the newest first
    task_id: str
    context: str
    state: int

    @property
    def time(self) -> int:
        """The time of its last status change, in nanoseconds."""
        return _LAST - int(self.rank)


class TaskKeys:
    """The keys of one agent's tasks."""

    __slots__ = ("base",)

    def __init__(self, agent_name: str) -> None:
        self.base = f"{RESERVED}a2a:{len(agent_name)}:{agent_name[:200]}:"

    def task(self, task_id: str) -> str:
        """Return the key whose value is the task, and whose journal has its changes.

        The journal has one record for each number.
        """
        return f"{self.base}task:{task_id}"

    def work(self, task_id: str) -> str:
        """Return the key that exists while the task is running.

        The owner that runs the task has claimed this key.
        """
        return self.work_prefix + task_id

    @property
    def work_prefix(self) -> str:
        return f"{self.base}work:"

    def wanted(self, task_id: str) -> str:
        """Return the key that exists while another process wants the task at once, to cancel it."""
        return PREEMPT + self.work(task_id)

    def context(self, context_id: str) -> str:
        """Return the key whose value is the owner of the context."""
        return f"{self.base}context:{short_hash(context_id)}"

    def configs(self, task_id: str) -> str:
        """Return the key of a task's webhooks."""
        return f"{self.base}push:{task_id}"

    @property
    def outbox_prefix(self) -> str:
        return f"{self.base}outbox:"

    def outbox(self, task_id: str) -> str:
        """Return the key that exists while there may be something to send."""
        return self.outbox_prefix + task_id

    def session(self, owner: Owner, context_id: str) -> str:
        """Return the id of the session of a context."""
        return f"a2a:{owner.key}:{context_id}"

    # --- the index ---

    def index_prefix(self, owner: Owner | None = None) -> str:
        return f"{self.base}index:" if owner is None else f"{self.base}index:{owner.key}:"

    def index(self, owner: Owner, time: int, task_id: str, context_id: str, state: int) -> str:
        context = short_hash(context_id)
        return f"{self.index_prefix(owner)}{_LAST - time:020d}:{context}:{state}:{task_id}"

    def entry(self, key: str) -> IndexEntry:
        owner, rank, context, state, task_id = key.removeprefix(self.index_prefix()).split(":", 4)
        return IndexEntry(key, owner, rank, task_id, context, int(state))
