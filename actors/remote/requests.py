"""Messages to the other agent: a task's first message, and answers to its questions.

If the conversation has continued since the other agent's last message, only newer messages are
sent. Its own context contains the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...runtime.a2a import A2AMessage, A2APart, DataPart, RemoteInterrupt, TextPart
from ...runtime.a2a.conversion import message_to_wire
from ...runtime.a2a.data.parts import as_parts
from ...runtime.data.chat import Message
from ...runtime.errors import UsageError
from ..tools.approval import Approve, Deny

__all__ = ["answer_message", "first_message", "news_since"]


def news_since(messages: Sequence[Message], last_id: str | None) -> Sequence[Message] | None:
    """Return the messages after that message, or None if it is not among them."""
    if last_id is None:
        return None
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].id == last_id:
            return messages[index + 1 :]
    return None


def first_message(messages: Sequence[Message], agent_name: str) -> A2AMessage:
    """Join the messages into one. User messages are copied, the others are quoted as context."""
    parts: list[A2APart] = []
    for message in messages:
        if message.role == "user":
            parts += as_parts(message.content)
        elif message.text and not _is_transfer(message):
            who = (
                f"{agent_name}, you,"
                if message.role == "assistant"
                else f"[{message.tool_name or message.role}]"
            )
            parts.append(TextPart(f"For context: {who} said: {message.text}"))
    parts = [part for part in parts if not isinstance(part, TextPart) or part.text]
    if not parts:
        msg = (
            f"agent {agent_name!r} has no message to send to the remote agent. Pass a message "
            "with text, or an input_converter=."
        )
        raise UsageError(msg, agent=agent_name)
    return A2AMessage("user", tuple(parts))


def _is_transfer(message: Message) -> bool:
    return message.role == "tool" and (message.tool_name or "").startswith("transfer_to_")


def answer_message(data: object, asked: object, ask: str, agent_name: str) -> A2AMessage:
    """Make the answer to a task's question.

    Equal answers have the same id, so that an answer that was already sent can be found.
    """
    try:
        message = _answer(data, asked)
        wire = message_to_wire(replace(message, message_id=""))
    except UsageError as error:
        msg = f"agent {agent_name!r}: the answer cannot be sent to the remote agent: {error}"
        raise UsageError(msg, agent=agent_name) from error
    digest = hashlib.sha256(wire.SerializeToString(deterministic=True)).hexdigest()
    return replace(message, message_id=f"{ask}-{digest[:16]}")


def _answer(data: object, asked: object) -> A2AMessage:
    match data:
        case A2AMessage():
            return data
        case str() | Message():
            return A2AMessage("user", as_parts(data if isinstance(data, str) else data.content))
        case [*several] if several and all(isinstance(one, str | Message) for one in several):
            return A2AMessage(
                "user",
                tuple(
                    part
                    for one in several
                    for part in as_parts(one.content if isinstance(one, Message) else str(one))
                ),
            )
    ids = (
        [question.id for question in asked.questions] if isinstance(asked, RemoteInterrupt) else []
    )
    if isinstance(data, Mapping) and data and all(key in ids for key in data):
        return A2AMessage("user", tuple(_named(key, value) for key, value in data.items()))
    if ids:
        return A2AMessage("user", tuple(_named(key, data) for key in ids))
    return A2AMessage(
        "user", (TextPart("continue"),) if data is None else (DataPart(_plain(data)),)
    )


def _named(interrupt_id: object, data: object) -> DataPart:
    return DataPart({"interruptId": interrupt_id, "answer": _plain(data)})


def _plain(data: object) -> object:
    """Convert an answer to the data that is sent."""
    match data:
        case Approve(arguments) if arguments is None:
            return True
        case Approve(arguments):
            return {"approved": True, "arguments": arguments}
        case Deny(reason):
            return {"approved": False, "reason": reason} if reason else False
        case Message():
            return data.text
    return data
