"""The question of a remote task, as the `info` of an interrupt. All of its texts are untrusted."""

from __future__ import annotations

from dataclasses import dataclass

from ...codec.packing import register_type
from .message import A2AMessage

__all__ = ["RemoteInterrupt", "RemoteQuestion"]


@register_type(name="a2a.RemoteQuestion")
@dataclass(frozen=True, slots=True)
class RemoteQuestion:
    """One question. Its `id` names it in an answer: `{id: answer}`."""

    id: str
    info: object = None
    options: object = None


@register_type(name="a2a.RemoteInterrupt")
@dataclass(frozen=True, slots=True)
class RemoteInterrupt:
    """A remote task waits for an answer.

    `text` is the question for people; `questions` can be answered by their ids.
    """

    text: str
    questions: tuple[RemoteQuestion, ...] = ()
    task_id: str = ""
    context_id: str = ""
    message: A2AMessage | None = None

    def __str__(self) -> str:
        return self.text
