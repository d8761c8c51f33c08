"""What an invocation of a remote agent has to know to go on with the task that it has begun, in this process or in another one.

Owns: the names under which it is kept among the notes of the invocation, which are in its checkpoint. It must never hold what the task says.
"""

from __future__ import annotations

from typing import Any

from ...runtime.agent.door import AgentDoor
from ...runtime.data.chat import new_id

__all__ = ["TaskNotes"]

_KEY = "remote task"


class TaskNotes:
    """A view of the notes. What is set is in the next record of the invocation; `save` waits for that."""

    def __init__(self, door: AgentDoor) -> None:
        self._door = door

    @property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._door.notes.setdefault(_KEY, {})
        return values

    async def save(self) -> None:
        await self._door.save()

    def forget(self) -> None:
        """The next task is another one."""
        self._door.notes[_KEY] = {}

    @property
    def message_id(self) -> str | None:
        """Of the message that begins the task; set before it is sent."""
        return self._values.get("message_id")

    def will_send(self) -> str:
        """The id of the message that begins the task."""
        known = self.message_id
        if known is None:
            known = self._values["message_id"] = new_id()
        return known

    @property
    def task_id(self) -> str | None:
        return self._values.get("task_id")

    @property
    def context_id(self) -> str | None:
        return self._values.get("context_id")

    def began(self, task_id: str, context_id: str) -> None:
        self._values["task_id"] = task_id
        self._values["context_id"] = context_id

    @property
    def ask(self) -> str | None:
        """The name of what the task waits for; None when it was answered, or asks nothing."""
        return self._values.get("ask")

    def asks(self) -> None:
        self._values["ask"] = new_id()
        self._values.pop("reply", None)

    def answered(self) -> None:
        self._values.pop("ask", None)
        self._values.pop("reply", None)

    @property
    def reply(self) -> str | None:
        """The id of the answer that may be on its way."""
        return self._values.get("reply")

    def will_reply(self, message_id: str) -> None:
        self._values["reply"] = message_id

    def was_shown(self, artifact_id: str, digest: str) -> bool:
        """Whether that artifact was shown as it is."""
        return bool(self._values.get("shown", {}).get(artifact_id) == digest)

    def shows(self, artifact_id: str, digest: str) -> None:
        self._values.setdefault("shown", {})[artifact_id] = digest

    def was_said(self, kind: str, digest: str) -> bool:
        """Whether the last of that kind was the same."""
        return bool(self._values.get(kind) == digest)

    def says(self, kind: str, digest: str) -> None:
        self._values[kind] = digest
