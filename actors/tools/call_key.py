"""The idempotency key of a tool call.

A store that was restored from a backup lacks the last minutes. Its runs repeat that work, with new
replies from the models. Random values differ then, such as the ids of invocations and the ids that
providers assign to calls. So a key is computed only from facts that are the same in the repetition:
the run's id, the agent's place in the run, the tool, the arguments, and the number of equal calls
that the agent made before.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...runtime.data.run_path import names_of

if TYPE_CHECKING:
    from ...runtime.agent.invocation import Invocation
    from ...runtime.data.chat import ToolCall

__all__ = ["key_of"]


def key_of(run_id: str, invocation: Invocation, call: ToolCall) -> str:
    """Return the key of a call by an invocation. It is unique within the run."""
    from hashlib import blake2b  # noqa: PLC0415 -- rarely needed

    parts = [*_place_of(invocation), _identity_of(invocation, call.id, call)]
    packed = json.dumps(parts).encode("utf-8", "surrogatepass")
    return f"{run_id}:{blake2b(packed, digest_size=16).hexdigest()}"


def _place_of(invocation: Invocation) -> list[list[Any]]:
    """Return the path from the root of the run to an invocation.

    Each agent call contributes its key in its parent, its number of transfers, and the last target.
    """
    place: list[list[Any]] = []
    at: Invocation | None = invocation
    while at is not None:
        agent_call, parent = at.agent_call, at.agent_call.parent
        cast: list[Any] = [agent_call.cast_key]
        if parent is not None and agent_call.tool is not None:
            # The key of an agent run by a tool starts with the call's id, which the provider
            # assigns.
            number = str(agent_call.cast_key).rpartition("#")[2]
            cast = ["tool", number, *_identity_of(parent, agent_call.tool.call_id, None)]
        place.append([cast, len(at.names), names_of(at.names)[-1]])
        at = parent
    place.reverse()
    return place


def _identity_of(invocation: Invocation, call_id: str | None, call: ToolCall | None) -> list[Any]:
    """Return the tool, its arguments and the number of equal calls before it, a unique triple."""
    made = [one for message in invocation.messages for one in message.tool_calls]
    place = next((index for index, one in enumerate(made) if one.id == call_id), None)
    if place is None:  # a custom agent may call a tool without a reply that contains the call
        return [
            "unsaid",
            call_id,
            "" if call is None else call.name,
            "" if call is None else _canonical(call.arguments),
        ]
    name, arguments = made[place].name, _canonical(made[place].arguments)
    return [
        name,
        arguments,
        sum(one.name == name and _canonical(one.arguments) == arguments for one in made[:place]),
    ]


def _canonical(arguments: str) -> str:
    """Return the same text for equal arguments, whatever their formatting."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
