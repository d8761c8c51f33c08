"""A run that goes on in another process, or after an answer.

Owns: what of a run is kept beside the runtime's own record (what it was asked, and its state at each handoff), and the way back. It must never keep what the
runtime's steps have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..tool_names import part
from .live import LiveRun

if TYPE_CHECKING:
    from ....runtime.agent.door import AgentDoor

__all__ = ["KEY", "decide_from_answers", "kept_input", "restored_run", "store_handoff"]

KEY: Final = "agents_sdk"
"""The session value under which a run is kept."""


def kept_input(state: Any) -> dict[str, Any]:
    """What a run was asked, as it is kept."""
    from ..items.history import as_input  # noqa: PLC0415 -- for runs that are kept

    asked = state.original_input
    return {
        "input": asked if isinstance(asked, str) else [as_input(item) for item in asked],
        "max_turns": state.max_turns,
        "conversation_id": state.conversation_id,
        "previous_response_id": state.previous_response_id,
        "auto_previous_response_id": state.auto_previous_response_id,
    }


def store_handoff(run: LiveRun, door: AgentDoor) -> None:
    """Keep the state of the run, from which the next agent goes on."""
    door.run.session[KEY] = {"first": run.state.starting_agent.name, "state": run.state.to_json(context_serializer=lambda _context: {})}


def restored_run(agent: Any, door: AgentDoor) -> LiveRun | None:
    """The run that was kept; None if there is none: then it begins here."""
    kept = door.run.session.get(KEY)
    if not isinstance(kept, Mapping) or door.invocation.assignment.parent is not None:
        return None
    from ..run_config import RunConfig  # noqa: PLC0415 -- for runs that are kept
    from ..run_context import RunContextWrapper  # noqa: PLC0415 -- as above
    from ..run_state import RunState  # noqa: PLC0415 -- as above
    from ..run_state.reading import state_of  # noqa: PLC0415 -- as above

    context: Any = RunContextWrapper(door.run.context)
    if "state" in kept:
        first = door.node.root.named(kept["first"])
        state = state_of(agent if first is None else first.agent, dict(kept["state"]), context)
        state.current_agent = agent
    else:
        state = RunState(context, kept["input"], agent, kept["max_turns"])
        state.conversation_id, state.previous_response_id = kept["conversation_id"], kept["previous_response_id"]
        state.auto_previous_response_id = kept["auto_previous_response_id"]
    run = LiveRun(state, RunConfig())
    run.start_hooks = True
    return run


def decide_from_answers(run: LiveRun, door: AgentDoor) -> None:
    """What `Runner.resume` was given for calls that wait becomes a decision about each: True or an `Approve` lets it be made, all else refuses it."""
    for call_id, answer in (door.invocation.answers or {}).items():
        if call_id is None or not answer.is_target:
            continue
        data = answer.data
        approve = data is True or type(data).__name__ == "Approve" or (isinstance(data, Mapping) and data.get("approve") is True)
        reason = data if isinstance(data, str) else part(data, "reason")
        run.answers[call_id] = (approve, reason if isinstance(reason, str) and reason else None)
