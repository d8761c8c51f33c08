"""What a reply asks for.

Owns: the items of a reply, and the tool or handoff that each call is for. A call that was made before, or stands twice in the reply, is left out. It must never
make a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from openai.types.responses import (
    ResponseComputerToolCall,
    ResponseCustomToolCall,
    ResponseFileSearchToolCall,
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
)
from openai.types.responses.response_code_interpreter_tool_call import ResponseCodeInterpreterToolCall
from openai.types.responses.response_output_item import ImageGenerationCall, LocalShellCall, McpApprovalRequest, McpCall, McpListTools
from openai.types.responses.response_reasoning_item import ResponseReasoningItem

from ...exceptions import ModelBehaviorError
from ...invocation import call_id_of, identity_of, output_identity
from ...items import (
    CompactionItem,
    HandoffCallItem,
    MCPApprovalRequestItem,
    MCPListToolsItem,
    MessageOutputItem,
    ModelResponse,
    ReasoningItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)
from ...items.run_items import without_creator
from ...logger import logger
from ...run_config import RunConfig
from ...run_context.decisions import Decisions
from ...tool import ApplyPatchTool, ComputerTool, CustomTool, FunctionTool, HostedMCPTool, LocalShellTool, ProgrammaticToolCallingTool, ShellTool
from ...tool.decorate import wrapped_tool
from ...tool.function import origin_of
from ...tool_names import call_lookup_key, lookup_map, part, qualified, tool_lookup_key, trace_name
from ...tracing.errors import attach_error
from ..steps import Asked, FunctionRun, HandoffRun, LocalRun, McpRequest, Unknown
from .reading_programs import Programs

__all__ = ["Reader", "without_known"]

_REUSED: Final = "Model reused a tool call ID for a different invocation in one response. Use a unique call ID for each tool invocation."
_NO_ID: Final = "Tool invocations require a non-empty string call ID before execution."


def _refuse(message: str, text: str, **data: Any) -> ModelBehaviorError:
    attach_error(message, **data)
    return ModelBehaviorError(text)


class Reader:
    """Reads the replies of one agent's model, which was shown these tools and handoffs."""

    def __init__(self, agent: Any, tools: Sequence[Any], handoffs: Sequence[Any], config: RunConfig, schema: Any) -> None:
        self._agent = agent
        self._tools = tools
        self._handoffs = {one.tool_name: one for one in handoffs}
        self._config = config
        self._schema = schema
        self._functions = lookup_map(tool for tool in tools if isinstance(tool, FunctionTool)) if tools else {}

    def _tool(self, kind: type[Any]) -> Any:
        return next((tool for tool in self._tools if isinstance(tool, kind)), None)

    def read(self, response: ModelResponse, earlier: Sequence[Any] = ()) -> Asked:
        """What the reply asks for. Raises `ModelBehaviorError`, if it asks for what there is not."""
        asked = Asked()
        programs: Programs | None = None
        for output in response.output:
            # Nearly all replies are messages and calls of functions.
            if type(output) is ResponseOutputMessage and not output.__pydantic_extra__:
                asked.items.append(MessageOutputItem(self._agent, output))
                continue
            if type(output) is ResponseFunctionToolCall and output.caller is None:
                self._function(output, asked)
                continue
            if programs is None:
                programs = Programs(self._tool(ProgrammaticToolCallingTool) is not None, earlier, response.output, self._agent.name)
            kind = part(output, "type")
            if programs.concern(output, kind):
                programs.check(output, kind, asked, self._agent)
                if kind in ("program", "program_output"):
                    continue
            if isinstance(output, ResponseFunctionToolCall):
                self._function(output, asked)
            elif isinstance(output, ResponseOutputMessage):
                asked.items.append(MessageOutputItem(self._agent, output))
            elif isinstance(output, ResponseReasoningItem):
                asked.items.append(ReasoningItem(self._agent, output))
            elif not self._plain(output, kind, asked) and not self._local(output, kind, asked):
                logger.warning("Unexpected output type, ignoring: %s", type(output))
        return asked

    def _function(self, call: ResponseFunctionToolCall, asked: Asked) -> None:
        name, namespace = call.name, getattr(call, "namespace", None)
        asked.used.append(trace_name(name, namespace) or name)
        if not namespace and name in self._handoffs:
            self._allow(call, None, name)
            asked.items.append(HandoffCallItem(self._agent, call))
            asked.handoffs.append(HandoffRun(call, self._handoffs[name]))
            return
        key = call_lookup_key(call)
        tool = None if key is None else self._functions.get(key)
        if tool is None and name == "apply_patch" and self._tool(ApplyPatchTool) is not None:
            self._patch_of(call, asked)
            return
        if tool is None and self._schema is not None and name == "json_tool_call":
            tool = _json_tool(name)
        shown = qualified(name, namespace) or name
        if tool is None:
            attach_error("Tool not found", tool_name=shown)
            if self._config.tool_not_found_behavior != "return_error_to_model":
                msg = f"Tool {shown} not found in agent {self._agent.name}"
                raise ModelBehaviorError(msg)
            asked.items.append(ToolCallItem(self._agent, call))
            asked.unknown.append(Unknown(call, shown))
            return
        self._allow(call, tool.allowed_callers, shown)
        asked.items.append(ToolCallItem(self._agent, call, description=tool.description, title=tool.mcp_title, tool_origin=origin_of(tool)))
        asked.functions.append(FunctionRun(call, tool))

    def _allow(self, call: Any, callers: list[Any] | None, name: str) -> None:
        """Raise, if the caller must not make the call."""
        caller = part(call, "caller")
        if caller is None and not callers:
            return
        caller = part(caller, "type")
        made_by = "programmatic" if caller == "program" else "direct"
        allowed = callers or ["direct"]
        if made_by not in allowed:
            text = f"Tool {name} in agent {self._agent.name} does not allow {made_by} callers."
            raise _refuse("Tool caller not allowed", text, tool_name=name, caller=made_by)

    def _plain(self, output: Any, kind: str | None, asked: Asked) -> bool:
        """What the provider has done itself. Returns whether it was that."""
        agent = self._agent
        if isinstance(output, ResponseFileSearchToolCall | ResponseFunctionWebSearch | ResponseCodeInterpreterToolCall | ImageGenerationCall | McpCall):
            asked.items.append(ToolCallItem(agent, output))
            asked.used.append(str(kind).removesuffix("_call") if kind != "mcp_call" else "mcp")
        elif isinstance(output, McpListTools):
            asked.items.append(MCPListToolsItem(agent, output))
        elif kind == "compaction":
            asked.items.append(CompactionItem(agent, without_creator(output)))
        elif kind == "tool_search_call":
            if part(output, "execution") == "client":
                msg = (
                    "Client-executed tool_search calls are not supported by the standard agent runner. Handle the tool_search_call yourself and return a "
                    "matching tool_search_output item with the same call_id."
                )
                raise ModelBehaviorError(msg)
            asked.items.append(ToolSearchCallItem(agent, output))
            asked.used.append("tool_search")
        elif kind == "tool_search_output":
            asked.items.append(ToolSearchOutputItem(agent, output))
            asked.used.append("tool_search")
        elif kind == "shell_call_output":
            raw = without_creator(output)
            tool = self._tool(ShellTool)
            asked.used.append(tool.name if tool is not None else "shell")
            asked.items.append(ToolCallOutputItem(agent, raw, raw.get("output")))
        elif isinstance(output, McpApprovalRequest):
            self._mcp(output, asked)
        else:
            return False
        return True

    def _mcp(self, request: McpApprovalRequest, asked: Asked) -> None:
        servers = {tool.tool_config.get("server_label"): tool for tool in self._tools if isinstance(tool, HostedMCPTool)}
        if request.server_label not in servers:
            text = f"MCP server label {request.server_label} not found"
            raise _refuse("MCP server label not found", text, server_label=request.server_label)
        asked.items.append(MCPApprovalRequestItem(self._agent, request))
        asked.mcp.append(McpRequest(request, servers[request.server_label]))
        asked.used.append("mcp_approval_request")

    def _local(self, output: Any, kind: str | None, asked: Asked) -> bool:
        """What the program does itself. Returns whether it was that."""
        agent = self._agent
        if isinstance(output, ResponseComputerToolCall):
            tool = self._known(ComputerTool, "Computer tool not found", "Model produced computer action without a computer tool.", "computer", asked)
            raw: Any = output
        elif kind == "shell_call":
            tool = self._known(ShellTool, "Shell tool not found", "Model produced shell call without a shell tool.", "shell", asked)
            raw = without_creator(output)
        elif isinstance(output, LocalShellCall):
            tool = self._tool(LocalShellTool) or self._known(
                ShellTool, "Local shell tool not found", "Model produced local shell call without a local shell tool.", "local_shell", asked
            )
            raw = output
        elif kind == "apply_patch_call":
            text = "Model produced apply_patch call without an apply_patch tool."
            tool = self._known(ApplyPatchTool, "Apply patch tool not found", text, "apply_patch", asked)
            raw = without_creator(output)
        elif isinstance(output, ResponseCustomToolCall):
            return self._custom(output, asked)
        else:
            return False
        self._allow(raw, getattr(tool, "allowed_callers", None), tool.name)
        asked.items.append(ToolCallItem(agent, raw, resolved_name=tool.name))
        asked.used.append(tool.name)
        if not isinstance(tool, ShellTool) or tool.is_local:
            asked.local.append(LocalRun(raw, tool))
        return True

    def _known(self, kind: type[Any], message: str, text: str, name: str, asked: Asked) -> Any:
        tool = self._tool(kind)
        if tool is None:
            asked.used.append(name)
            raise _refuse(message, text)
        return tool

    def _custom(self, call: ResponseCustomToolCall, asked: Asked) -> bool:
        tool = next((one for one in self._tools if isinstance(one, CustomTool) and one.name == call.name), None)
        if tool is None and call.name == "apply_patch":
            self._patch_of(call, asked)
            return True
        asked.items.append(ToolCallItem(self._agent, call))
        if tool is None:
            raise _refuse("Custom tool not found", f"Tool {call.name} not found in agent {self._agent.name}", tool_name=call.name)
        self._allow(call, tool.allowed_callers, tool.name)
        asked.used.append(tool.name)
        asked.local.append(LocalRun(call, tool))
        return True

    def _patch_of(self, call: Any, asked: Asked) -> None:
        """A patch that comes as a call of another kind."""
        from .local_calls import patch_call  # noqa: PLC0415 -- it reads what is wanted

        text = "Model produced apply_patch call without an apply_patch tool."
        tool = self._known(ApplyPatchTool, "Apply patch tool not found", text, "apply_patch", asked)
        raw = patch_call(call)
        asked.items.append(ToolCallItem(self._agent, raw, resolved_name=tool.name))
        asked.used.append(tool.name)
        asked.local.append(LocalRun(raw, tool))


def _json_tool(name: str) -> FunctionTool:
    """What some gateways call in the place of an answer in a form: the arguments are the answer."""
    from ...tool.decorate import Invoker  # noqa: PLC0415 -- few models do

    async def call(_context: Any, text: str) -> Any:
        import json  # noqa: PLC0415 -- as above

        return json.loads(text)

    return wrapped_tool(Invoker(call), None, name=name, description=name, params_json_schema={}, shows_origin=False)


def without_known(asked: Asked, decisions: Decisions, earlier: Sequence[Any]) -> None:
    """Leave out what was asked for twice, and what was done before. Raises, if one id stands for two calls."""
    if not asked.wants_work():
        return
    done = {identity for item in earlier if (identity := output_identity(getattr(item, "raw_item", None))) is not None} if earlier else set()
    history: dict[str, Any] = {}
    for item in earlier if done else ():
        if isinstance(item, ToolCallItem | HandoffCallItem | ToolApprovalItem):
            known = identity_of(item.raw_item, getattr(item, "tool_lookup_key", None), getattr(item, "tool_name", None), _role(item))
            if known is not None and known[:2] in done:
                history[known.call_id] = known
    here: dict[str, Any] = {}

    def keep(raw: Any, key: Any = None, name: str | None = None, role: str | None = None) -> bool:
        known = call_id_of(raw)
        if known is not None and known[1] is None:
            raise ModelBehaviorError(_NO_ID)
        identity = identity_of(raw, key, name, role)
        if identity is None:
            decisions.register(raw, key, name, role)
            return True
        before = history.get(identity.call_id)
        if before is not None and (before.kind, before.fingerprint) == (identity.kind, identity.fingerprint):
            asked.skipped.add(id(raw))
            return False
        twin = here.get(identity.call_id)
        if twin is not None and twin != identity:
            raise ModelBehaviorError(_REUSED)
        if twin is not None:
            asked.skipped.add(id(raw))
            return False
        here[identity.call_id] = identity
        call = decisions.register_known(identity)
        if call.completed:
            asked.skipped.add(id(raw))
            return False
        if call.executed:
            msg = "A tool call already executed, but its output was not committed. Start a new run instead of retrying the invocation."
            raise ModelBehaviorError(msg)
        return True

    if asked.functions:
        asked.functions = [run for run in asked.functions if keep(run.call, tool_lookup_key(run.tool))]
    if asked.handoffs:
        asked.handoffs = [run for run in asked.handoffs if keep(run.call, role="handoff")]
    if asked.unknown:
        asked.unknown = [run for run in asked.unknown if keep(run.call)]
    if asked.local:
        asked.local = [run for run in asked.local if keep(run.call, name=run.tool.name)]
    if asked.mcp:
        asked.mcp = [run for run in asked.mcp if keep(run.request)]
    if asked.skipped:
        asked.items = _without_skipped(asked)


def _role(item: Any) -> str | None:
    return "handoff" if isinstance(item, HandoffCallItem) else None


def _without_skipped(asked: Asked) -> list[Any]:
    """The items without those calls, and without the thoughts that led to them."""
    found: list[Any] = []
    follows = False
    for item in reversed(asked.items):
        if isinstance(item, ReasoningItem):
            if not follows:
                found.append(item)
            continue
        follows = id(item.raw_item) in asked.skipped
        if not follows:
            found.append(item)
    return found[::-1]
