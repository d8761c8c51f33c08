"""Calls of shells, editors, computers and custom tools.

Owns: what their executors are given, and the items of their results. It must never decide for a program whether such a call is safe.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from openai.types.responses.response_output_item import LocalShellCall

from .....runtime.maybe_await import maybe_await
from ...editor import ApplyPatchOperation, ApplyPatchResult
from ...exceptions import ModelBehaviorError, UserError
from ...items import ItemHelpers, ToolApprovalItem, ToolCallOutputItem
from ...logger import logger
from ...tool import ApplyPatchTool, ComputerTool, CustomTool, LocalShellCommandRequest, LocalShellTool
from ...tool.local_tools import (
    ApplyPatchToolCustomDataContext,
    ComputerToolCustomDataContext,
    ComputerToolSafetyCheckData,
    CustomToolCustomDataContext,
    ShellActionRequest,
    ShellCallData,
    ShellCommandRequest,
    ShellResult,
    resolve_computer,
)
from ...tool_context import ToolContext
from ...tool_names import part
from ...tracing.create import function_span
from ...tracing.errors import attach_to, tool_error_text
from ..hooks import call_hooks
from ..live import LiveRun
from .approvals import rejection, status_of
from .computer_actions import act
from .shell_outputs import shell_entries, truncated

__all__ = ["LocalCall", "patch_call"]


class LocalCall:
    """One call that the program executes."""

    def __init__(self, run: LiveRun, agent: Any, call: Any, tool: Any) -> None:
        self._run = run
        self._agent = agent
        self._call = call
        self._tool = tool

    async def make(self) -> Any:
        """The item of its result; or that of an approval which it waits for."""
        if isinstance(self._call, LocalShellCall) or isinstance(self._tool, LocalShellTool):
            return await self._local_shell()
        if not self._run.traced:
            return await self._made(None)
        with function_span(getattr(self._tool, "trace_name", self._tool.name)) as span:
            item = await self._made(span)
            if self._run.config.trace_include_sensitive_data and not isinstance(item, ToolApprovalItem):
                span.span_data.output = item.output
            return item

    async def _made(self, span: Any) -> Any:
        if isinstance(self._tool, ComputerTool):
            return await self._computer(span)
        given: Any
        if isinstance(self._tool, CustomTool):
            given, kind = self._custom_input(), "custom"
            wanted = [given]
        elif isinstance(self._tool, ApplyPatchTool):
            wanted, kind = _operations(self._call, self._run.context), "apply_patch"
            given = wanted
        else:
            given, kind = _shell_data(self._call), "shell"
            wanted = [given.action]
        if span is not None and self._run.config.trace_include_sensitive_data:
            span.span_data.input = given if isinstance(given, str) else json.dumps(_traced(given), default=str)
        waiting = await self._decided(wanted, kind)
        if waiting is not None:
            return waiting
        await self._begin(self._run.context)
        work: Any = {"custom": self._custom, "apply_patch": self._patch, "shell": self._shell}[kind]
        return await work(given, span)

    async def _begin(self, context: Any) -> None:
        run, agent, tool = self._run, self._agent, self._tool
        run.context.decisions.executed(self._call, name=tool.name)
        if not isinstance(tool, CustomTool):
            await call_hooks(run, agent, "on_tool_start", "on_tool_start", context, agent, tool)

    async def _decided(self, wanted: Sequence[Any], kind: str) -> Any:
        """The item of a call that is refused or has to wait; None for one that may be made."""
        run, tool = self._run, self._tool
        item = ToolApprovalItem(self._agent, self._call, tool.name)
        status, waits = None, False
        for one in wanted:
            status, waits = await status_of(run, item, tool.needs_approval, one, tool.on_approval)
            if status is not None or waits:
                break
        if waits:
            return item
        if status is not False:
            return None
        said = await rejection(run, item, kind)
        call_id = part(self._call, "call_id")
        if kind == "shell":
            raw: dict[str, Any] = {"type": "shell_call_output", "call_id": call_id}
            raw["output"] = [{"stdout": "", "stderr": said, "outcome": {"type": "exit", "exit_code": 1}}]
        else:
            raw = {"type": "custom_tool_call_output" if kind == "custom" else "apply_patch_call_output", "call_id": call_id, "output": said}
            if kind == "apply_patch":
                raw["status"] = "failed"
        return ToolCallOutputItem(self._agent, ItemHelpers.copy_tool_call_caller(self._call, raw), said)

    async def _ended(self, item: ToolCallOutputItem, output: Any, context: Any = None) -> ToolCallOutputItem:
        run = self._run
        run.context.decisions.completed(item.raw_item)
        await call_hooks(run, self._agent, "on_tool_end", "on_tool_end", context or run.context, self._agent, self._tool, output)
        return item

    async def _data(self, item: ToolCallOutputItem, make: Any) -> None:
        extract = getattr(self._tool, "custom_data_extractor", None)
        if extract is not None:
            found = await maybe_await(extract(make()))
            if found is not None and not isinstance(found, Mapping):
                msg = "custom_data_extractor must return a mapping or None."
                raise UserError(msg)
            item.custom_data = dict(found) if found else None

    def _failed(self, span: Any, error: Exception) -> str:
        said = str(error) or type(error).__name__
        if span is not None:
            attach_to(span, "Error running tool", {"tool_name": self._tool.name, "error": tool_error_text(self._run.config, said)})
        logger.error("Tool %s failed: %s", self._tool.name, type(error).__name__)
        return said

    # --- shells ---

    async def _local_shell(self) -> ToolCallOutputItem:
        await self._begin(self._run.context)
        output = await maybe_await(self._tool.executor(LocalShellCommandRequest(self._run.context, self._call)))
        raw = {"type": "local_shell_call_output", "call_id": part(self._call, "call_id"), "output": output}
        return await self._ended(ToolCallOutputItem(self._agent, raw, output), output)

    async def _shell(self, data: ShellCallData, span: Any) -> ToolCallOutputItem:
        status, entries, more, most = "completed", None, None, data.action.max_output_length
        most = None if most is None else max(most, 0)
        try:
            result = await maybe_await(self._tool.executor(ShellCommandRequest(self._run.context, data)))
            if isinstance(result, ShellResult):
                limits = [one for one in (most, result.max_output_length) if one is not None]
                most = max(min(limits), 0) if limits else None
                entries, text = shell_entries(result.output, most)
                more = dict(result.provider_data or {})
            else:
                text = str(result)
        except Exception as error:
            status, text = "failed", self._failed(span, error)
        if most is not None:
            text = text[:most]
        if not entries:
            outcome = "success" if status == "completed" else "failure"
            entries = [{"stdout": text, "stderr": "", "status": status, "outcome": outcome}] if text else []
        raw: dict[str, Any] = {"type": "shell_call_output", "call_id": data.call_id, "output": truncated(entries), "status": status}
        ItemHelpers.copy_tool_call_caller(self._call, raw)
        named = {"max_output_length": most, "shell_output": entries or None, "provider_data": more or None}
        raw.update((name, value) for name, value in named.items() if value is not None)
        return await self._ended(ToolCallOutputItem(self._agent, raw, text), text)

    # --- patches ---

    async def _patch(self, operations: list[ApplyPatchOperation], span: Any) -> ToolCallOutputItem:
        said: list[str] = []
        status: Literal["completed", "failed"] = "completed"
        try:
            for operation in operations:
                result = await maybe_await(getattr(self._tool.editor, operation.type)(operation))
                if isinstance(result, Mapping):
                    result = ApplyPatchResult(result.get("status"), None if result.get("output") is None else str(result["output"]))
                elif result is not None and not isinstance(result, ApplyPatchResult):
                    result = ApplyPatchResult(output=str(result))
                if result is not None:
                    status = "failed" if "failed" in (status, result.status) else "completed"
                    said += [result.output] if result.output else []
            text = "\n".join(said)
        except Exception as error:
            status, text = "failed", self._failed(span, error)
        raw: dict[str, Any] = {"type": "apply_patch_call_output", "call_id": part(self._call, "call_id"), "status": status}
        ItemHelpers.copy_tool_call_caller(self._call, raw)
        if text:
            raw["output"] = text
        item = ToolCallOutputItem(self._agent, raw, text)
        context = self._run.context
        await self._data(item, lambda: ApplyPatchToolCustomDataContext(context, self._tool, operations, text, status, copy.deepcopy(raw)))
        return await self._ended(item, text)

    # --- custom tools ---

    def _custom_input(self) -> str:
        call_id, given = part(self._call, "call_id"), part(self._call, "input")
        if not isinstance(call_id, str) or not call_id:
            msg = "Custom tool call is missing a non-empty call_id."
            raise ModelBehaviorError(msg)
        if not isinstance(given, str):
            msg = "Custom tool call is missing input."
            raise ModelBehaviorError(msg)
        return given

    async def _custom(self, given: str, span: Any) -> ToolCallOutputItem:
        run, agent, tool = self._run, self._agent, self._tool
        context = ToolContext.from_agent_context(
            run.context, part(self._call, "call_id"), agent=agent, tool_name=tool.name, tool_arguments=given, run_config=run.config
        )
        await call_hooks(run, agent, "on_tool_start", "on_tool_start", context, agent, tool)
        try:
            output = await maybe_await(tool.on_invoke_tool(context, given))
        except Exception as error:
            self._failed(span, error)
            raise
        raw = {"type": "custom_tool_call_output", "call_id": part(self._call, "call_id"), "output": output if isinstance(output, str) else str(output)}
        item = ToolCallOutputItem(agent, ItemHelpers.copy_tool_call_caller(self._call, raw), output)
        await self._data(item, lambda: CustomToolCustomDataContext(context, tool, given, str(raw["output"]), copy.deepcopy(raw)))
        return await self._ended(item, output, context)

    # --- computers ---

    async def _computer(self, span: Any) -> ToolCallOutputItem:
        run, agent, tool, call = self._run, self._agent, self._tool, self._call
        acknowledged = []
        for check in call.pending_safety_checks or () if tool.on_safety_check is not None else ():
            if not await maybe_await(tool.on_safety_check(ComputerToolSafetyCheckData(run.context, agent, call, check))):
                msg = "Computer tool safety check was not acknowledged"
                raise UserError(msg)
            acknowledged.append({"id": check.id, "code": check.code, "message": check.message})
        computer = await resolve_computer(tool=tool, run_context=run.context)
        run.model_tools = [*run.model_tools, tool]
        await self._begin(run.context)
        try:
            shot = await act(computer, call)
        except Exception as error:
            self._failed(span, error)
            raise
        url = f"data:image/png;base64,{shot}" if shot else ""
        raw: dict[str, Any] = {"call_id": call.call_id, "output": {"type": "computer_screenshot", "image_url": url}, "type": "computer_call_output"}
        raw["acknowledged_safety_checks"] = acknowledged or None
        item = ToolCallOutputItem(agent, raw, url)
        await self._data(item, lambda: ComputerToolCustomDataContext(run.context, tool, call, url, copy.deepcopy(raw)))
        await self._ended(item, shot)
        return item


def _traced(given: Any) -> Any:
    if isinstance(given, list):
        return [{"type": one.type, "path": one.path, "diff": one.diff} for one in given]
    return asdict(given.action)


def _shell_data(call: Any) -> ShellCallData:
    call_id, action = part(call, "call_id"), part(call, "action")
    if not call_id:
        msg = "Shell call is missing call_id."
        raise ModelBehaviorError(msg)
    if action is None:
        msg = "Shell call is missing an action payload."
        raise ModelBehaviorError(msg)
    commands = part(action, "commands")
    if isinstance(commands, str | bytes) or not isinstance(commands, Sequence):
        msg = "Shell call action commands must be a sequence of command strings."
        raise ModelBehaviorError(msg)
    commands = [str(one) for one in commands if one is not None]
    if not commands:
        msg = "Shell call action must include at least one command."
        raise ModelBehaviorError(msg)
    timeout = next((value for name in ("timeout_ms", "timeoutMs", "timeout") if (value := part(action, name))), None)
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int) or timeout < 0):
        msg = "Shell call action timeout must be a positive integer in milliseconds, zero, or None."
        raise ModelBehaviorError(msg)
    most = part(action, "max_output_length")
    most = part(action, "maxOutputLength") if most is None else most
    request = ShellActionRequest(commands, timeout, int(most) if isinstance(most, int | float) else None)
    status = str(part(call, "status") or "").lower()
    return ShellCallData(str(call_id), request, status if status in ("in_progress", "completed") else None, call)  # type: ignore[arg-type]  # one of them


def patch_call(call: Any) -> dict[str, Any]:
    """A patch that comes as a call of a function or of a custom tool."""
    text, label = (call.arguments, "arguments") if call.type == "function_call" else (call.input, "input")
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        msg = f"Invalid apply_patch {label} JSON: {error}"
        raise ModelBehaviorError(msg) from error
    if not isinstance(found, dict):
        msg = f"Apply patch {label} must be a JSON object."
        raise ModelBehaviorError(msg)
    raw = {"type": "apply_patch_call", "call_id": call.call_id}
    caller = getattr(call, "caller", None)
    if caller is not None:
        raw["caller"] = caller
    key = "operations" if "operations" in found else "operation"
    raw[key] = found.get(key, found)
    return raw


def _operations(call: Any, context: Any) -> list[ApplyPatchOperation]:
    several, one = part(call, "operations"), part(call, "operation")
    if isinstance(several, list) and not several:
        msg = "Apply patch call includes no operations."
        raise ModelBehaviorError(msg)
    if not isinstance(several, list) and one is None:
        msg = "Apply patch call is missing an operation payload."
        raise ModelBehaviorError(msg)
    return [_operation(raw, context) for raw in (several if isinstance(several, list) else [one])]


def _operation(raw: Any, context: Any) -> ApplyPatchOperation:
    kind, path, diff, move_to = str(part(raw, "type")), part(raw, "path"), part(raw, "diff"), part(raw, "move_to")
    problem = None
    if kind not in ("create_file", "update_file", "delete_file"):
        problem = f"Unknown apply_patch operation: {kind}"
    elif not isinstance(path, str) or not path:
        problem = "Apply patch operation is missing a valid path."
    elif kind != "delete_file" and (not isinstance(diff, str) or not diff):
        problem = f"Apply patch operation {kind} is missing the required diff payload."
    elif move_to is not None and (not isinstance(move_to, str) or not move_to):
        problem = "Apply patch operation move_to must be a non-empty path."
    if problem is not None:
        raise ModelBehaviorError(problem)
    return ApplyPatchOperation(kind, path, None if kind == "delete_file" else diff, context, move_to)  # type: ignore[arg-type]  # it was checked
