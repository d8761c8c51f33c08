"""What plays: everything that a user composes.

Files, each importing only from those above it:

    signature, docstrings               what can be read off a function, without pydantic and with docstring_parser
    strict_schema, function_schema      JSON schemas as models want them; validation of arguments
    tool_context, tool, tool_result     what a tool is given; what an agent can call; what the model is told of a result
    approval                            calls that somebody has to approve first
    agent                               the base of every definition
    workflow                            Sequential, Loop, Parallel
    transfer                            handing over: the tool, its instruction, DeterministicTransfer; the exit tool
    agent_tool                          an agent as a tool
    handoff_items, handoff_filters      what an input filter is given, and ready-made ones
    handoff, handoff_step               a tool that hands over; from its call to the agent that takes over
    handoff_call                        a handoff that comes back
    guardrail                           what looks on, and may say no
    middleware, tools_step              what stands around model and tools; one round of tool calls
    answer                              the form that a final answer must have
    setup, react, chat_model_agent      what a model is shown; the loop; the agent that a chat model plays
    prebuilt                            Supervisor, PlanExecute
    agents_sdk                          the spellings of OpenAI's Agents SDK
    swarm                               Swarm's API, for programs that were written for it

A definition holds no state of a run. How runs are run is `understudy.runtime`.
"""

from ..runtime.context import AgentContext
from ..runtime.definition import AgentInput
from .agent import Agent, set_sub_agents
from .approval import ApprovalRequest, Approve, Deny
from .chat_model_agent import ChatModelAgent
from .guardrail import (
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolOutputGuardrailData,
    input_guardrail,
    output_guardrail,
)
from .handoff import Handoff, handoff
from .handoff_filters import RECOMMENDED_PROMPT_PREFIX, compose, keep_last, prompt_with_handoff_instructions, redact, remove_all_tools, summarize
from .handoff_items import HandoffInputData, Item
from .middleware import Middleware
from .prebuilt import PlanExecute, Supervisor, make_executor, make_planner, make_replanner
from .strict_schema import ensure_strict_json_schema
from .tool import Tool, tool
from .tool_context import ToolContext
from .transfer import DeterministicTransfer, exit_tool, transfer_tool
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
    "Middleware",
    "OutputGuardrail",
    "Parallel",
    "PlanExecute",
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
