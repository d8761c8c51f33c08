"""Conversion of a client's messages to an agent's messages, or to answers of interrupts.

An invalid answer is reported to the client before anything is resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from .asks import Say
    from .task_log import TaskLog

import json
from collections.abc import Mapping
from typing import Final

from a2a.utils.errors import InvalidParamsError

from ...data.chat import AudioPart, ImagePart, Message, Part
from ...data.chat import FilePart as ChatFile
from ...data.chat import TextPart as ChatText
from ..data.message import A2AMessage
from ..data.parts import A2APart, DataPart, FilePart, TextPart

__all__ = ["Repeated", "admit", "answers_of", "as_user_message"]

_YES: Final = frozenset(("approve", "approved", "yes", "y", "true", "ok"))
_NO: Final = frozenset(("deny", "denied", "no", "n", "false", "reject"))


def as_user_message(said: A2AMessage) -> Message:
    """Convert a message for an agent, with the same id."""
    if len(said.parts) == 1 and isinstance(said.parts[0], TextPart):
        return Message("user", said.parts[0].text, id=said.message_id)
    return Message("user", tuple(_as_part(part) for part in said.parts), id=said.message_id)


def _as_part(part: A2APart) -> Part:
    match part:
        case TextPart(text):
            return ChatText(text)
        case DataPart(data):
            return ChatText(json.dumps(data, ensure_ascii=False))
        case FilePart(url, data, media_type, name):
            kind = (media_type or "").partition("/")[0]
            if data is not None and media_type is None:
                media_type = "application/octet-stream"
            if kind == "image":
                return ImagePart(url, data, media_type)
            if kind == "audio":
                return AudioPart(url, data, media_type)
            return ChatFile(url, data, media_type, name)


def answers_of(
    said: A2AMessage, pending: Mapping[str, bool], *, is_first: bool = True
) -> tuple[dict[str, object] | None, object]:
    """Return the answers in a message, for `resume`: those of named interrupts, or one for all of
    them.

    A data part may be `{"interruptId": id, "answer": ...}`, or map ids to answers. Any other data
    part is the answer itself, and so is the text if there is none. An approval must name its
    interrupt, unless it is the first question of the task (`is_first`): it could have been meant
    for an earlier one.
    """
    targets: dict[str, object] = {}
    data: list[object] = []

    def answer_to(name: object, answer: object) -> None:
        if not isinstance(name, str) or name not in pending:
            msg = (
                f"message: the task does not wait for the interrupt {str(name)[:100]!r}. Read "
                "the task, and answer what it asks now."
            )
            raise InvalidParamsError(msg)
        if name in targets:
            msg = (
                f"message: it answers the interrupt {name[:100]!r} twice. No tool was called. "
                "Send one answer."
            )
            raise InvalidParamsError(msg)
        targets[name] = answer

    for part in said.parts:
        if not isinstance(part, DataPart):
            continue
        found = part.data
        if isinstance(found, Mapping) and "interruptId" in found:
            odd = sorted(map(str, found.keys() - {"interruptId", "answer", "data"}))
            if odd or ("answer" in found and "data" in found):
                what = ", ".join(odd)[:200] or "data as well"
                msg = (
                    f"message: an answer must have only interruptId and answer, got {what}, "
                    "because a call is approved as it was shown. No tool was called."
                )
                raise InvalidParamsError(msg)
            answer_to(found["interruptId"], found.get("answer", found.get("data")))
        elif isinstance(found, Mapping) and found and all(key in pending for key in found):
            for name, said_of_it in found.items():
                answer_to(name, said_of_it)
        else:
            data.append(found)
    if targets:
        if any(pending[name] for name in targets) and (data or (said.text and said.text.strip())):
            msg = (
                "message: an approval by interruptId must not be combined with text or other "
                "data. No tool was called. Send the answer alone."
            )
            raise InvalidParamsError(msg)
        return {
            name: _checked(answer, needs_yes=pending[name]) for name, answer in targets.items()
        }, None
    answer: object = data[0] if data else said.text
    if not data and not said.text and said.parts:
        answer = as_user_message(said)
    if any(pending.values()):
        if not is_first:
            ids = ", ".join(pending)
            msg = (
                "message: the task has asked more than once, so the answer must name the "
                "interrupt. Send a data part "
                f'{{"interruptId": id, "answer": "approve"}} with the id {ids[:500]}.'
            )
            raise InvalidParamsError(msg)
        return {
            name: _checked(answer, needs_yes=needs_yes) for name, needs_yes in pending.items()
        }, None
    return None, answer


def _checked(answer: object, *, needs_yes: bool) -> object:
    """Return the answer; for an approval, a bool."""
    if not needs_yes or isinstance(answer, bool):
        return answer
    word = answer.strip().lower().rstrip(".!") if isinstance(answer, str) else ""
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise InvalidParamsError("message: the task waits for an approval. Answer 'approve' or 'deny'.")


class Repeated(Exception):
    """The task has already received the message."""


def admit(log: TaskLog, ask: Say) -> None:
    """Raise `Repeated`, or the protocol's error, for a message that the task does not accept."""
    task_id = log.task.id
    if log.was_said(ask.message):
        raise Repeated
    if log.is_terminal:
        msg = (
            f"Task {task_id} has ended: {pb.TaskState.Name(log.task.status.state)}. Send a "
            "message without a taskId."
        )
        raise UnsupportedOperationError(msg)
    if log.question is not None and log.question != ask.question:
        msg = (
            f"Task {task_id} has asked a question since this message was sent. Read the task, "
            "and answer what it asks now."
        )
        raise UnsupportedOperationError(msg)
