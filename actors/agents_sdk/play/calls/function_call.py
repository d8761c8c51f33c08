"""One call of a function.

Owns: its approval, its guardrails, its hooks, its span, and the item of its result. It must never wait for another call.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

from .....runtime.maybe_await import maybe_await
from ...exceptions import AgentsException, ToolInputGuardrailTripwireTriggered, ToolOutputGuardrailTripwireTriggered, UserError
from ...items import ItemHelpers, ToolApprovalItem, ToolCallOutputItem
from ...tool.calling import invoke_function_tool
from ...tool.failure import is_from_program, maybe_invoke_function_tool_failure_error_function
from ...tool.function import FunctionToolCustomDataContext, FunctionToolResult, origin_of
from ...tool_context import ToolContext
from ...tool_guardrails import ToolInputGuardrailData, ToolInputGuardrailResult, ToolOutputGuardrailData, ToolOutputGuardrailResult
from ...tool_names import call_lookup_key, call_namespace, is_deferred, namespace_of, tool_lookup_key, trace_name
from ...tracing.create import function_span
from ...tracing.errors import attach_error, attach_to, tool_error_text
from ..hooks import call_hooks
from ..live import LiveRun
from ..recording import Recorder
from .approvals import error_output, parsed, rejected_function, rejection, status_of

__all__ = ["FunctionCall"]


class FunctionCall:
    """One call, and how far it has come."""

    def __init__(self, run: LiveRun, agent: Any, recorder: Recorder, call: Any, tool: Any) -> None:
        self._run = run
        self._agent = agent
        self._recorder = recorder
        self._raw = call
        self._call = _without_own_namespace(call, tool)
        self._tool = tool
        self.has_returned = False
        """Whether the function has returned: what follows is not cut short because another call has failed."""
        self.given_up = False
        """Whether it is cancelled because another call has failed."""
        self.input_results: list[Any] = []
        self.output_results: list[Any] = []

    async def make(self) -> FunctionToolResult:
        """Make the call."""
        if not self._run.traced:
            return await self._guarded(None)
        with function_span(self._shown_name) as span:
            return await self._guarded(span)

    @property
    def _shown_name(self) -> str:
        return trace_name(self._call.name, call_namespace(self._call)) or trace_name(self._tool.name, namespace_of(self._tool)) or self._tool.name

    async def _guarded(self, span: Any) -> FunctionToolResult:
        config, tool = self._run.config, self._tool
        if span is not None and config.trace_include_sensitive_data:
            span.span_data.input = self._call.arguments
        context = self._context()
        try:
            found = await self._decided(context, span)
            if found is None:
                found = await self._made(context)
        except Exception as error:
            if span is not None:
                attach_to(span, "Error running tool", {"tool_name": tool.name, "error": tool_error_text(config, error)})
            if isinstance(error, AgentsException):
                raise
            msg = f"Error running tool {tool.name}: {error}"
            raise UserError(msg) from error
        if span is not None and config.trace_include_sensitive_data and span.span_data.output is None:
            span.span_data.output = found.output
        return found

    def _context(self) -> ToolContext[Any]:
        run = self._run
        namespace = call_namespace(self._raw) or call_namespace(self._call)
        context = ToolContext.from_agent_context(
            run.context, self._call.call_id, self._raw, self._agent, tool_namespace=namespace, run_config=run.config, tool_name=self._call.name
        )
        context.nested_states = run.state.nested
        return context

    async def _decided(self, context: ToolContext[Any], span: Any) -> FunctionToolResult | None:
        """The result of a call that is refused or has to wait; None for one that may be made."""
        tool, run = self._tool, self._run
        if tool.needs_approval is False and not run.context.decisions.by_key and not run.answers:
            return None
        item = self._approval_item()
        # Arguments that are no JSON object are approved or refused by a person in any case.
        given = parsed(self._call.arguments) if callable(tool.needs_approval) else {}
        status, waits = await status_of(run, item, tool.needs_approval, given)
        if waits and run.config.tool_execution is not None and run.config.tool_execution.pre_approval_tool_input_guardrails:
            said = await self._check_input(context)
            status = run.context.decisions.about(item)
            if status is None and said is not None:
                return FunctionToolResult(tool, said, rejected_function(self._agent, self._call, tool, said))
        if status is None and waits:
            return FunctionToolResult(tool, None, item)
        if status is not False:
            return None
        said = await rejection(run, item, "function")
        run.state.nested.pop(self._call.call_id, None)
        if span is not None:
            error = f"Tool execution for {self._call.call_id} was manually rejected by user."
            attach_to(span, said, {"tool_name": tool.name, "error": error})
            span.span_data.output = said
        return FunctionToolResult(tool, said, rejected_function(self._agent, self._call, tool, said))

    def _approval_item(self) -> ToolApprovalItem:
        tool = self._tool
        deferred = is_deferred(tool)
        return ToolApprovalItem(
            self._agent,
            self._raw,
            tool.name,
            tool_namespace=call_namespace(self._raw) or (tool.name if deferred else None),
            tool_origin=origin_of(tool),
            tool_lookup_key=("deferred_top_level", tool.name) if deferred else call_lookup_key(self._raw),
            allow_bare_name_alias=deferred and not any(
                other is not tool and other.name == tool.name and namespace_of(other) is None and not getattr(other, "defer_loading", False)
                for other in self._run.model_tools
            ),
        )  # fmt: skip

    async def _made(self, context: ToolContext[Any]) -> FunctionToolResult:
        run, agent, tool, call = self._run, self._agent, self._tool, self._call
        goes_on = call.call_id in run.state.nested
        if not goes_on:
            run.context.decisions.executed(call, tool_lookup_key(tool))
            said = await self._check_input(context)
            if said is not None:
                raw = ItemHelpers.tool_call_output_item(call, error_output(call, said, tool.output_json_schema))
                return FunctionToolResult(tool, said, ToolCallOutputItem(agent, raw, said, tool_origin=origin_of(tool)))
            await call_hooks(run, agent, "on_tool_start", "on_tool_start", context, agent, tool)
        output, is_error = await self._invoked(context)
        nested = context.nested
        waiting = list(getattr(nested, "interruptions", None) or ()) if nested is not None else []
        if waiting:
            return FunctionToolResult(tool, output, None, waiting, nested)
        self.has_returned = True
        output, rejected = await self._check_output(context, output)
        item = self._item(output, is_plain=is_error or rejected)
        run.context.decisions.completed(item.raw_item)
        await self._attach_data(context, item, output)
        await call_hooks(run, agent, "on_tool_end", "on_tool_end", context, agent, tool, output)
        return FunctionToolResult(tool, output, item, agent_run_result=nested)

    async def _invoked(self, context: ToolContext[Any]) -> tuple[Any, bool]:
        """What the function has returned, and whether that is a sentence of ours about its failure."""
        tool, call = self._tool, self._call

        async def invoke() -> Any:
            return await invoke_function_tool(function_tool=tool, context=context, arguments=call.arguments)

        try:
            output = await self._recorder.once(f"tool {call.call_id}", invoke, _plain, lambda kept: kept)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self.given_up or (task is not None and task.cancelling()):
                raise
            said = await maybe_invoke_function_tool_failure_error_function(function_tool=tool, context=context, error=error)
            if said is None:
                raise
            attach_error("Tool execution cancelled", tool_name=tool.name, error=tool_error_text(self._run.config, error))
            program = tool.output_json_schema is not None and is_from_program(call)
            return said, context.failure_reported and not program
        return output, context.failure_reported

    async def _check_input(self, context: ToolContext[Any]) -> str | None:
        """What the model is given instead, if a guardrail does not allow the call."""
        for guardrail in self._tool.tool_input_guardrails or ():
            found = await guardrail.run(ToolInputGuardrailData(context, self._agent))
            self.input_results.append(ToolInputGuardrailResult(guardrail, found))
            if found.behavior["type"] == "raise_exception":
                raise ToolInputGuardrailTripwireTriggered(guardrail, found)
            if found.behavior["type"] == "reject_content":
                message: str = found.behavior["message"]
                return message
        return None

    async def _check_output(self, context: ToolContext[Any], output: Any) -> tuple[Any, bool]:
        """The output, or what the model is given instead, and whether it is that."""
        for guardrail in self._tool.tool_output_guardrails or ():
            found = await guardrail.run(ToolOutputGuardrailData(context, self._agent, output))
            self.output_results.append(ToolOutputGuardrailResult(guardrail, found))
            if found.behavior["type"] == "raise_exception":
                raise ToolOutputGuardrailTripwireTriggered(guardrail, found)
            if found.behavior["type"] == "reject_content":
                return found.behavior["message"], True
        return output, False

    def _item(self, output: Any, *, is_plain: bool) -> ToolCallOutputItem:
        tool, call = self._tool, self._call
        if is_plain:
            raw = ItemHelpers.tool_call_output_item(call, error_output(call, output, tool.output_json_schema))
        else:
            raw = ItemHelpers.tool_call_output_item(call, output, output_json_schema=tool.output_json_schema, output_type_adapter=tool.output_type_adapter)
        return ToolCallOutputItem(self._agent, raw, output, tool_origin=origin_of(tool))

    async def _attach_data(self, context: ToolContext[Any], item: ToolCallOutputItem, output: Any) -> None:
        """What the program keeps with the result."""
        extract, found = self._tool.custom_data_extractor, dict(context.custom_data or {})
        if extract is not None:
            more = await maybe_await(extract(FunctionToolCustomDataContext(context, self._tool, output, copy.deepcopy(item.raw_item))))
            if more is not None and not isinstance(more, Mapping):
                msg = "custom_data_extractor must return a mapping or None."
                raise UserError(msg)
            found.update(more or {})
        if found:
            item.custom_data = found


def _without_own_namespace(call: Any, tool: Any) -> Any:
    """A call of a tool that was searched for, without the namespace that is the tool's own name."""
    if is_deferred(tool) and call_namespace(call) == tool.name == call.name:
        return call.model_copy(update={"namespace": None})
    return call


def _plain(output: Any) -> Any:
    """An output as it can be kept."""
    dump = getattr(output, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(output, list | tuple):
        return [_plain(one) for one in output]
    return output if isinstance(output, str | int | float | bool | dict | None) else str(output)
