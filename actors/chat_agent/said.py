"""Readings of an agent's messages in one invocation, from which its next step follows.

They do not change the messages, and do not depend on the agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...runtime.data.chat import Message, ToolCall, new_id
from .tool_round import FAILED, RESULT_LAST

__all__ = ["last_reply", "unanswered", "with_ids"]


def last_reply(said: list[Message]) -> Message:
    """Return the model's last reply."""
    for message in reversed(said):
        if message.role == "assistant":
            return message
    msg = "the model has not replied yet, so there is no last reply"
    raise LookupError(msg)


def unanswered(said: list[Message], notes: Mapping[str, Any]) -> Sequence[ToolCall]:
    """Return the calls of the model's last reply that have no result yet."""
    if said[-1].role == "assistant" and not notes:
        return said[-1].tool_calls  # the reply has just arrived
    answered = {notes[RESULT_LAST][0]} if RESULT_LAST in notes else set()
    if FAILED in notes:
        answered.update(call_id for call_id, _ in notes[FAILED])
    for message in reversed(said):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return (
                [call for call in message.tool_calls if call.id not in answered]
                if message.tool_calls
                else ()
            )
    return ()


def with_ids(reply: Message, said: Sequence[Message]) -> Message:
    """Return the reply with an id for each call that is unique in this invocation.

    Some providers omit ids, or repeat them.
    """
    if not said and len(reply.tool_calls) == 1 and reply.tool_calls[0].id:
        return reply
    seen = {call.id for message in said for call in message.tool_calls}
    calls = []
    for call in reply.tool_calls:
        calls.append(
            call if call.id and call.id not in seen else call.replace(id=f"call_{new_id()}")
        )
        seen.add(calls[-1].id)
    return reply if calls == list(reply.tool_calls) else reply.replace(tool_calls=tuple(calls))
