"""Agents with their tools and workflows. `Actor`, which runs any code, is in `offbook.runtime`.

Each module imports only from those listed above it, and a test enforces that:

    tools                             a function as a tool: signature, schema, context, approval
    agent                             the base of every definition
    workflow                          Sequential, Loop, Parallel
    guardrail, middleware             checks that may refuse; wrappers of models and tools
    handoffs                          one agent involves another: transfer, handoff, agent as tool
    chat_agent                        the agent driven by a chat model: setup, loop, one round
                                      of tools
    mcp                               tools of MCP servers
    remote                            remote agents, called over Agent2Agent
    prebuilt                          Supervisor, PlanExecute
    realtime                          agents that listen and speak; imported by its own name
    agents_sdk                        programs of OpenAI's Agents SDK, run by the SDK; imported by
                                      its own name
    swarm                             Swarm's API, for programs that were written for it
    demo                              the agents of `offbook demo`, which that command starts

A definition holds no state of a run. `offbook.runtime` runs the definitions.
"""

from ..runtime.agent.context import AgentContext
from ..runtime.data.agent_input import AgentInput
from ..runtime.sessions.session_policy import keep_last, summarize
from .agent import Agent, set_sub_agents
from .chat_agent.chat_model_agent import ChatModelAgent
from .guardrail import (
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    input_guardrail,
    output_guardrail,
)
from .handoffs.filters import (
    RECOMMENDED_PROMPT_PREFIX,
    compose,
    prompt_with_handoff_instructions,
    redact,
    remove_all_tools,
)
from .handoffs.handoff import Handoff, handoff
from .handoffs.items import HandoffInputData, Item
from .handoffs.transfer import DeterministicTransfer, exit_tool, transfer_tool
from .mcp import McpTools
from .middleware import Middleware
from .prebuilt import PlanExecute, Supervisor, make_executor, make_planner, make_replanner
from .remote.remote_agent import RemoteAgent
from .tools.approval import ApprovalRequest, Approve, Deny
from .tools.strict_schema import ensure_strict_json_schema
from .tools.tool import Tool, tool
from .tools.tool_context import ToolContext
from .tools.tool_guardrail import (
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolOutputGuardrailData,
)
from .workflow import Loop, Parallel, Sequential

__all__ = [
    "RECOMMENDED_PROMPT_PREFIX",
    "Agent",
    "AgentContext",
    "AgentInput",
    "ApprovalRequest",
    "Approve",
    "ChatModelAgent",
    "Deny",
    "DeterministicTransfer",
    "GuardrailFunctionOutput",
    "Handoff",
    "HandoffInputData",
    "InputGuardrail",
    "Item",
    "Loop",
    "McpTools",
    "Middleware",
    "OutputGuardrail",
    "Parallel",
    "PlanExecute",
    "RemoteAgent",
    "Sequential",
    "Supervisor",
    "Tool",
    "ToolContext",
    "ToolGuardrailFunctionOutput",
    "ToolInputGuardrailData",
    "ToolOutputGuardrailData",
    "compose",
    "ensure_strict_json_schema",
    "exit_tool",
    "handoff",
    "input_guardrail",
    "keep_last",
    "make_executor",
    "make_planner",
    "make_replanner",
    "output_guardrail",
    "prompt_with_handoff_instructions",
    "redact",
    "remove_all_tools",
    "set_sub_agents",
    "summarize",
    "tool",
    "transfer_tool",
]
