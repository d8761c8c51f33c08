"""What a client says, as an agent is given it: a message of ours, or the answer to what a run waits for.

Owns: both translations. What is wrong with an answer is said to the client, and nothing has been resumed then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from a2a.utils.errors import InvalidParamsError

from ...data.chat import AudioPart, ImagePart, Message, Part
from ...data.chat import FilePart as ChatFile
from ...data.chat import TextPart as ChatText
from ..data.message import A2AMessage
from ..data.parts import A2APart, DataPart, FilePart, TextPart

__all__ = ["answers_of", "as_user_message"]

_YES: Final = frozenset(("approve", "approved", "yes", "y", "true", "ok"))
_NO: Final = frozenset(("deny", "denied", "no", "n", "false", "reject"))


def as_user_message(said: A2AMessage) -> Message:
    """The message as an agent reads it. It keeps its id."""
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


def answers_of(said: A2AMessage, pending: Mapping[str, bool]) -> tuple[dict[str, object] | None, object]:
    """The answers in a message, for `resume`: those of named interrupts, or one for all of them.

    A data part may be `{"interruptId": id, "answer": ...}`, or map ids to answers. Any other data part is the answer itself, and so is the text if there is
    none.
    """
    targets: dict[str, object] = {}
    data: list[object] = []
    for part in said.parts:
        if not isinstance(part, DataPart):
            continue
        found = part.data
        if isinstance(found, Mapping) and "interruptId" in found:
            name = found["interruptId"]
            if not isinstance(name, str) or name not in pending:
                msg = f"message: the task waits for no interrupt {str(name)[:100]!r}."
                raise InvalidParamsError(msg)
            targets[name] = found.get("answer", found.get("data"))
        elif isinstance(found, Mapping) and found and all(key in pending for key in found):
            targets.update(found)
        else:
            data.append(found)
    if targets:
        return {name: _checked(answer, needs_yes=pending[name]) for name, answer in targets.items()}, None
    answer: object = data[0] if data else said.text
    if not data and not said.text and said.parts:
        answer = as_user_message(said)
    if any(pending.values()):
        return {name: _checked(answer, needs_yes=needs_yes) for name, needs_yes in pending.items()}, None
    return None, answer


def _checked(answer: object, *, needs_yes: bool) -> object:
    """The answer; where yes or no is asked for, that."""
    if not needs_yes or isinstance(answer, bool):
        return answer
    word = answer.strip().lower().rstrip(".!") if isinstance(answer, str) else ""
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise InvalidParamsError("message: the task waits for an approval; answer 'approve' or 'deny'.")
