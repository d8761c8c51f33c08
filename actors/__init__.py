"""What plays: everything that a user composes.

Files, each importing only from those above it:

    signature, docstrings               what can be read off a function, without pydantic and with docstring_parser
    strict_schema, function_schema      JSON schemas as models want them; validation of arguments
    tool_context, tool, tool_result     what a tool is given; what an agent can call; what the model is told of a result
    approval                            calls that somebody has to approve first
    agent                               the base of every definition
    workflow                            Sequential, Loop, Parallel
    transfer                            handing over: the tool, its instruction, DeterministicTransfer; the exit tool
    middleware, tools_step              what stands around model and tools; one round of tool calls
    answer                              the form that a final answer must have
    setup, react, chat_model_agent      what a model is shown; the loop; the agent that a chat model plays
    agent_tool                          an agent as a tool
    prebuilt                            Supervisor, PlanExecute

A definition holds no state of a run. How runs are run is `understudy.runtime`.
"""

from ..runtime.context import AgentContext
from ..runtime.definition import AgentInput
from .agent import Agent, set_sub_agents
from .approval import ApprovalRequest, Approve, Deny
from .chat_model_agent import ChatModelAgent
from .middleware import Middleware
from .prebuilt import PlanExecute, Supervisor, make_executor, make_planner, make_replanner
from .strict_schema import ensure_strict_json_schema
from .tool import Tool, tool
from .tool_context import ToolContext
from .transfer import DeterministicTransfer, exit_tool, transfer_tool
from .workflow import Loop, Parallel, Sequential

__all__ = [
    "Agent",
    "AgentContext",
    "AgentInput",
    "ApprovalRequest",
    "Approve",
    "ChatModelAgent",
    "Deny",
    "DeterministicTransfer",
    "Loop",
    "Middleware",
    "Parallel",
    "PlanExecute",
    "Sequential",
    "Supervisor",
    "Tool",
    "ToolContext",
    "ensure_strict_json_schema",
    "exit_tool",
    "make_executor",
    "make_planner",
    "make_replanner",
    "set_sub_agents",
    "tool",
    "transfer_tool",
]
