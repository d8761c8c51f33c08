"""A final output.

Owns: whether a turn has found one, what a program's error handlers put in its place, and its form. It must never end the run.
"""

from __future__ import annotations

import json
from typing import Any

from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from ....runtime.maybe_await import maybe_await
from ..agent import ToolsToFinalOutputResult
from ..agent_output import AgentOutputSchema, AgentOutputSchemaBase
from ..exceptions import ModelBehaviorError, ModelRefusalError, UserError
from ..items import ItemHelpers, MessageOutputItem
from ..items.history import run_items_to_input
from ..logger import logger
from ..run_context import AgentHookContext
from ..run_error_handlers import RunErrorData, RunErrorHandlerInput, RunErrorHandlerResult
from .hooks import call_hooks
from .live import LiveRun

__all__ = ["end_hooks", "from_reply", "from_tools", "handled", "handler_output", "message_item", "schema_of"]


def schema_of(agent: Any) -> AgentOutputSchemaBase | None:
    """The form of an agent's final output; None for any text."""
    kind = agent.output_type
    if kind is None or kind is str:
        return None
    if isinstance(kind, AgentOutputSchemaBase):
        return kind
    known = agent.__dict__.get("kept_schema")
    if known is None or known[0] is not kind:
        known = agent.__dict__["kept_schema"] = (kind, AgentOutputSchema(kind))
    schema: AgentOutputSchemaBase = known[1]
    return schema


async def from_tools(run: LiveRun, agent: Any, results: list[Any]) -> tuple[bool, Any]:
    """Whether the results of tools are the final output, and what it is."""
    behavior = agent.tool_use_behavior
    if not results or behavior == "run_llm_again":
        return False, None
    if behavior == "stop_on_first_tool":
        found = ToolsToFinalOutputResult(True, results[0].output)
    elif isinstance(behavior, dict):
        names = behavior.get("stop_at_tool_names", [])
        first = next((one for one in results if one.tool.name in names or one.tool.qualified_name in names), None)
        found = ToolsToFinalOutputResult(first is not None, None if first is None else first.output)
    elif callable(behavior):
        found = await maybe_await(behavior(run.context, results))
    else:
        msg = f"Invalid tool_use_behavior: {behavior}"
        raise UserError(msg)
    if not found.is_final_output:
        return False, None
    output = found.final_output
    if agent.output_type is None or agent.output_type is str:
        output = str(output)
    if output is None:
        logger.error("Model returned a final output of None. Not raising an error because we assume you know what you're doing.")
    return True, output


async def from_reply(run: LiveRun, agent: Any, response: Any, before: list[Any], new: list[Any]) -> tuple[bool, Any]:
    """Whether the last message is the final output, and what it is."""
    last = next((item.raw_item for item in reversed(new) if isinstance(item, MessageOutputItem)), None)
    if agent.output_type is None and last is not None and len(last.content) == 1 and type(last.content[0]) is ResponseOutputText:
        return True, last.content[0].text or ""  # nearly all of them
    refusal, text = ItemHelpers.extract_refusal(last), ItemHelpers.extract_text(last)
    data = RunErrorData(run.state.original_input, [*before, *new], [], [], [response], agent)
    if refusal:
        error = ModelRefusalError(refusal)
        result = await handled(run, "model_refusal", error, data)
        if result is None:
            raise error
        return True, _put(agent, result, new)
    schema = schema_of(agent)
    if schema is None or schema.is_plain_text():
        return True, text or ""
    if text:
        try:
            return True, schema.validate_json(text)
        except ModelBehaviorError as problem:
            result = await handled(run, "invalid_final_output", problem, data)
            if result is None:
                raise
            return True, _put(agent, result, new)
    missing = ModelBehaviorError("Model returned no final output for the structured output type.")
    result = await handled(run, "invalid_final_output", missing, data)
    return (False, None) if result is None else (True, _put(agent, result, new))


def _put(agent: Any, result: RunErrorHandlerResult, new: list[Any]) -> Any:
    output = handler_output(agent, result.final_output)
    if result.include_in_history:
        new.append(message_item(agent, output))
    return output


async def handled(run: LiveRun, kind: str, error: Exception, data: RunErrorData) -> RunErrorHandlerResult | None:
    """What a program's handler for that kind of failure puts in its place; None if there is none, or it leaves it."""
    handler = (run.error_handlers or {}).get(kind)
    if handler is None:
        return None
    data.output = run_items_to_input(data.new_items, without_ids=run.state.omits_reasoning_ids)
    data.history = [*ItemHelpers.input_to_new_input_list(data.input), *data.output]
    found = await maybe_await(handler(RunErrorHandlerInput(error, run.context, data)))
    if found is None or isinstance(found, RunErrorHandlerResult):
        return found
    if isinstance(found, dict) and "final_output" in found:
        if set(found) - {"final_output", "include_in_history"}:
            msg = "Invalid run error handler result."
            raise UserError(msg)
        return RunErrorHandlerResult(**found)
    return RunErrorHandlerResult(found)


def _text(agent: Any, output: Any) -> str:
    """An output as the text that a model would have given."""
    schema = schema_of(agent)
    if schema is None or schema.is_plain_text():
        return str(output)
    return schema.text_of(output) if isinstance(schema, AgentOutputSchema) else json.dumps(output, ensure_ascii=False)


def handler_output(agent: Any, output: Any) -> Any:
    """A handler's output, in the form that the agent's has."""
    schema = schema_of(agent)
    if schema is None or schema.is_plain_text():
        return output
    try:
        return schema.validate_json(_text(agent, output))
    except (TypeError, ValueError, ModelBehaviorError) as error:
        msg = "Invalid run error handler final_output for structured output."
        raise UserError(msg) from error


def message_item(agent: Any, output: Any) -> MessageOutputItem:
    """An output as if the model had said it."""
    try:
        text = _text(agent, output)
    except (TypeError, ValueError):
        text = str(output)
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return MessageOutputItem(agent, ResponseOutputMessage(id="__fake_id__", type="message", role="assistant", status="completed", content=[content]))


async def end_hooks(run: LiveRun, agent: Any, output: Any) -> None:
    """Tell the hooks of the final output."""
    if run.hooks is not None or agent.hooks is not None:
        own = run.context
        context = AgentHookContext(own.context, own.usage, own.turn_input, own.tool_input, own.decisions, own.understudy)
        await call_hooks(run, agent, "on_agent_end", "on_end", context, agent, output)
