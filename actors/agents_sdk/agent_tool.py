"""An agent as a tool of another.

Owns: how a call becomes a run, and what of the run becomes the result of the call; and that a run which waits for an approval goes on when it is there. It must
never play the run itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter

from ...runtime.maybe_await import maybe_await
from .agent_tool_input import AgentAsToolInput, StructuredToolInputBuilder, default_tool_input_builder, schema_summary
from .exceptions import ModelBehaviorError
from .items import ItemHelpers, MessageOutputItem, ToolCallOutputItem
from .logger import logger
from .run_config import DEFAULT_MAX_TURNS, as_run_config
from .run_context import RunContextWrapper
from .stream_events import AgentUpdatedStreamEvent
from .strict_schema import ensure_strict_json_schema
from .tool.decorate import Invoker, parsed_arguments, validated, wrapped_tool
from .tool.failure import UNSET
from .tool.outputs import ToolOrigin, ToolOriginType
from .tool_context import ToolContext

if TYPE_CHECKING:
    from .agent import Agent
    from .tool import FunctionTool

__all__ = ["agent_as_tool"]


def agent_as_tool(
    agent: Agent[Any],
    tool_name: str | None = None,
    tool_description: str | None = None,
    custom_output_extractor: Callable[[Any], Any] | None = None,
    is_enabled: Any = True,
    on_stream: Callable[[Any], Any] | None = None,
    run_config: Any = None,
    max_turns: int | None = None,
    hooks: Any = None,
    previous_response_id: str | None = None,
    conversation_id: str | None = None,
    session: Any = None,
    failure_error_function: Any = UNSET,
    needs_approval: Any = False,
    parameters: type[Any] | None = None,
    input_builder: StructuredToolInputBuilder | None = None,
    include_input_schema: bool = False,
) -> FunctionTool:
    """The agent as a tool."""
    if parameters is not None and not (isinstance(parameters, type) and (dataclasses.is_dataclass(parameters) or issubclass(parameters, BaseModel))):
        msg = "Agent tool parameters must be a dataclass or Pydantic model type."
        raise TypeError(msg)
    name = tool_name or re.sub(r"[^a-zA-Z0-9_]", "_", agent.name.replace(" ", "_")).lower()
    adapter: TypeAdapter[Any] = TypeAdapter(AgentAsToolInput if parameters is None else parameters)
    schema = ensure_strict_json_schema(adapter.json_schema())
    shown_schema = include_input_schema and parameters is not None
    named = {
        "max_turns": DEFAULT_MAX_TURNS if max_turns is None else max_turns,
        "hooks": hooks,
        "previous_response_id": previous_response_id,
        "conversation_id": conversation_id,
        "session": session,
    }
    call = _AgentCall(agent, adapter, None if run_config is None else as_run_config(run_config), named, custom_output_extractor, on_stream)
    call.builder = input_builder
    if parameters is not None or input_builder is not None:
        call.captures = True
        call.summary, call.schema = schema_summary(schema), schema if shown_schema else None
    return wrapped_tool(
        Invoker(call),
        failure_error_function,
        ToolOrigin(ToolOriginType.AGENT_AS_TOOL, agent_name=agent.name, agent_tool_name=name),
        name=name,
        description=tool_description or "",
        params_json_schema=schema,
        is_enabled=is_enabled,
        needs_approval=needs_approval,
        is_agent_tool=True,
        of_agent=agent,
        default_identity=None if tool_name else (agent.name, name),
    )


class _AgentCall:
    """Runs the agent for one call after the other."""

    def __init__(self, agent: Any, adapter: TypeAdapter[Any], config: Any, named: dict[str, Any], extract: Any, on_stream: Any) -> None:
        self._agent = agent
        self._adapter = adapter
        self._config = config
        self._named = named
        self._extract = extract
        self._on_stream = on_stream
        self.builder: StructuredToolInputBuilder | None = None
        self.captures = False
        """Whether the agent's own context is to have the arguments."""
        self.summary: str | None = None
        self.schema: dict[str, Any] | None = None

    async def __call__(self, context: Any, text: str) -> Any:
        name = getattr(context, "tool_name", self._agent.name)
        given = parsed_arguments(name, text)
        data = validated(name, lambda: self._adapter.validate_python(given))
        params = self._adapter.dump_python(data, mode="json")
        asked = await self._input(params)
        config = self._config if self._config is not None else getattr(context, "run_config", None)
        state = context.nested_states.get(context.tool_call_id) if isinstance(context, ToolContext) else None
        if state is not None:
            state.context.usage = context.usage
        result = await self._run(context, asked if state is None else state, self._context(context, params, config), config, goes_on=state is not None)
        waiting = getattr(result, "interruptions", None)
        if isinstance(context, ToolContext):
            if waiting:
                context.nested = result
                context.nested_states[context.tool_call_id] = _own_state(result)
                return result.final_output
            context.nested_states.pop(context.tool_call_id, None)
        return await self._output(result)

    async def _input(self, params: Any) -> Any:
        """What the agent is asked."""
        if self.builder is not None or self.summary or self.schema is not None:
            build = self.builder or default_tool_input_builder
            asked = await maybe_await(build({"params": params, "summary": self.summary, "json_schema": self.schema}))
        elif isinstance(params, dict) and set(params) == {"input"} and isinstance(params["input"], str):
            asked = params["input"]
        else:
            asked = json.dumps(params)
        if not isinstance(asked, str | list):
            msg = "Agent tool called with invalid input"
            raise ModelBehaviorError(msg)
        return asked

    def _context(self, outer: Any, params: Any, config: Any) -> Any:
        """The context of the run: its decisions are its own, its usage is that of the run that calls it."""
        if isinstance(outer, ToolContext):
            inner: Any = ToolContext(
                outer.context,
                outer.usage,
                outer.tool_name,
                outer.tool_call_id,
                outer.tool_arguments,
                outer.tool_call,
                tool_namespace=outer.tool_namespace,
                agent=outer.agent,
                run_config=config,
            )
        else:
            value = outer.context if isinstance(outer, RunContextWrapper) else outer
            if not self.captures:
                return value
            inner = RunContextWrapper(value)
        if self.captures:
            inner.tool_input = params
        return inner

    async def _run(self, outer: Any, asked: Any, context: Any, config: Any, *, goes_on: bool) -> Any:
        from .run import Runner  # noqa: PLC0415 -- built on agents

        named = dict(self._named)
        if goes_on:
            named["previous_response_id"] = named["conversation_id"] = None
        if self._on_stream is None:
            return await Runner.run(starting_agent=self._agent, input=asked, context=context, run_config=config, **named)
        result = Runner.run_streamed(starting_agent=self._agent, input=asked, context=context, run_config=config, **named)
        await self._show(result, getattr(outer, "tool_call", None))
        return result

    async def _show(self, result: Any, tool_call: Any) -> None:
        """Show the events to the program, which may be slower than the run."""
        events: asyncio.Queue[Any] = asyncio.Queue()

        async def show() -> None:
            while (payload := await events.get()) is not None:
                try:
                    await maybe_await(self._on_stream(payload))
                except Exception:
                    logger.exception("Error while handling on_stream event for agent tool %s", self._agent.name)

        showing = asyncio.ensure_future(show())
        agent = result.current_agent
        try:
            async for event in result.stream_events():
                if isinstance(event, AgentUpdatedStreamEvent):
                    agent = event.new_agent
                events.put_nowait({"event": event, "agent": agent, "tool_call": tool_call})
        except asyncio.CancelledError:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            raise
        finally:
            events.put_nowait(None)
        await showing

    async def _output(self, result: Any) -> Any:
        """What the model is given."""
        if self._extract is not None:
            return await maybe_await(self._extract(result))
        if result.final_output is not None and result.final_output != "":
            return result.final_output
        for item in reversed(result.new_items):
            if isinstance(item, MessageOutputItem) and (text := ItemHelpers.text_message_output(item)):
                return text
            if isinstance(item, ToolCallOutputItem) and isinstance(item.output, str) and item.output:
                return item.output
        return result.final_output


def _own_state(result: Any) -> Any:
    """The state of the run that waits: decisions that are made about its calls are made there."""
    state = getattr(result, "state", None)
    return result.to_state() if state is None else state
