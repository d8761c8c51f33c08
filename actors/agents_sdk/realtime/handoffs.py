"""`understudy.actors.realtime.handoffs` by the SDK's name, and with the SDK's errors.

Owns: what a `realtime_handoff` of the SDK says of a callback or of arguments that are wrong. It must never define anything else itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...realtime.agent import RealtimeAgent
from ...realtime.handoffs import RealtimeHandoff as RealtimeHandoff
from ...realtime.handoffs import as_realtime_handoff as as_realtime_handoff
from ...realtime.handoffs import realtime_handoff as _realtime_handoff
from ..agent_output import validated_json
from ..exceptions import ModelBehaviorError
from ..handoffs.handoff import reader_of_input

__all__ = ["realtime_handoff"]


def realtime_handoff(
    agent: RealtimeAgent,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    on_handoff: Callable[..., object] | None = None,
    input_type: Any = None,
    is_enabled: Any = True,
    **others: Any,
) -> RealtimeHandoff:
    """A tool by which the session is handed over to another agent that speaks."""
    adapter = reader_of_input(on_handoff, input_type)
    made = _realtime_handoff(agent, tool_name_override, tool_description_override, on_handoff, input_type, is_enabled, **others)
    if adapter is None:
        return made

    async def invoke(context: Any, input_json: str | None = None) -> Any:
        if input_json is None:
            msg = "Handoff function expected non-null input, but got None"
            raise ModelBehaviorError(msg)
        validated_json(input_json, adapter, strict=True, of_tool=True)  # by the SDK's error, if it is not
        return await made.on_invoke_handoff(context, input_json)

    return replace(made, on_invoke_handoff=invoke)
