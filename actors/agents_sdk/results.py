"""Results from a store, for a named run that is requested again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agents import (
    Agent,
    AgentsException,
    MaxTurnsExceeded,
    ModelBehaviorError,
    RunResult,
    RunState,
    UserError,
)
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from .plain import output_from_plain, output_to_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.result import RunResultStreaming

__all__ = ["error_from_store", "result_from_store", "stored_form_of"]

_ERRORS = {cls.__name__: cls for cls in (MaxTurnsExceeded, ModelBehaviorError, UserError)}


def stored_form_of(result: RunResult | RunResultStreaming) -> dict[str, Any]:
    """Convert a result to plain data: the SDK's own state, and the final output by its type."""
    output_type, output = result.last_agent.output_type, result.final_output
    plain: Any = output_to_plain(output)
    if isinstance(output_type, type) and output_type is not str and isinstance(output, output_type):
        with suppress(PydanticSerializationError):
            plain = ["typed", TypeAdapter(output_type).dump_json(output).decode()]
    return {"state": json.dumps(result.to_state().to_json()), "output": plain}


async def result_from_store(
    agent: Agent[Any], stored: Mapping[str, Any], context: Any
) -> RunResult:
    """Restore a result, with the agents of this process."""
    state: RunState[Any, Any] = await RunState.from_json(
        agent, json.loads(stored["state"]), context_override=context
    )
    last = state._current_agent or agent
    plain = stored["output"]
    if plain[0] == "typed":
        output_type: Any = last.output_type
        output = TypeAdapter(output_type).validate_json(plain[1])
    else:
        output = output_from_plain(plain)
    assert state._context is not None
    result = RunResult(
        input=state._original_input,
        new_items=list(state._session_items),
        raw_responses=list(state._model_responses),
        final_output=output,
        input_guardrail_results=list(state._input_guardrail_results),
        output_guardrail_results=list(state._output_guardrail_results),
        tool_input_guardrail_results=[],
        tool_output_guardrail_results=[],
        context_wrapper=state._context,
        _last_agent=last,
        interruptions=state.get_interruptions(),
    )
    result.to_state = lambda: state  # type: ignore[method-assign]  # the stored state has more than can be rebuilt from the result
    return result


def error_from_store(error: Exception) -> Exception:
    """Convert the error of a stored run to an exception that programs of the SDK handle."""
    name = getattr(error, "type_name", type(error).__name__).rpartition(".")[2]
    text = getattr(error, "text", None) or str(error)
    return _ERRORS.get(name, AgentsException)(text)
