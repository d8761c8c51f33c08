"""The data that an invocation of a remote agent needs to continue its task.

It is part of the invocation's notes, which are in its checkpoint, so another process can continue
the task. It does not contain the task's output.
"""

from __future__ import annotations

from typing import Any

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.data.chat import new_id

__all__ = ["TaskNotes"]

_KEY = "remote task"


class TaskNotes:
    """A view of an invocation's notes.

    A change is written with the next record of the invocation. `save` waits for the record.
    """

    def __init__(self, door: AgentRuntime) -> None:
        self._door = door

    @property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._door.notes.setdefault(_KEY, {})
        return values

    async def save(self) -> None:
        await self._door.save()

    def forget(self) -> None:
        """Forget the task. The next one is different."""
        self._door.notes[_KEY] = {}

    @property
    def message_id(self) -> str | None:
        """The id of the message that starts the task. It is set before the message is sent."""
        return self._values.get("message_id")

    def will_send(self) -> str:
        """Return the id of the message that starts the task, making it if necessary."""
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
        """The id of the task's open question; None if it was answered, or if there is none."""
        return self._values.get("ask")

    def asks(self) -> None:
        self._values["ask"] = new_id()
        self._values.pop("reply", None)

    def answered(self) -> None:
        self._values.pop("ask", None)
        self._values.pop("reply", None)

    @property
    def reply(self) -> str | None:
        """The id of the answer that may have been sent."""
        return self._values.get("reply")

    def will_reply(self, message_id: str) -> None:
        self._values["reply"] = message_id

    def was_shown(self, artifact_id: str, digest: str) -> bool:
        """Return whether that artifact was shown in this form."""
        return bool(self._values.get("shown", {}).get(artifact_id) == digest)

    def shows(self, artifact_id: str, digest: str) -> None:
        self._values.setdefault("shown", {})[artifact_id] = digest

    def was_said(self, kind: str, digest: str) -> bool:
        """Return whether the last message of that kind was the same."""
        return bool(self._values.get(kind) == digest)

    def says(self, kind: str, digest: str) -> None:
        self._values[kind] = digest
