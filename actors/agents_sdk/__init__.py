"""The spellings of OpenAI's Agents SDK, for programs that were written for it: only the import changes.

    from understudy.actors.agents_sdk import Agent, Runner, handoff

    options         the types of the options that an agent and a run take beside the SDK's own parameters
    agent           `Agent`: a `ChatModelAgent` by the SDK's names, usable wherever one is
    runner          `Runner` by the SDK's names; understudy's own does more: it keeps runs, resumes them, and knows sessions

It must never behave otherwise than the classes that it renames.
"""

from ...runtime.agent.hooks import AgentHooks, RunHooks
from ...runtime.agent.run_context import RunContext as RunContextWrapper
from ...runtime.data.run_result import RunResult
from ...runtime.errors import GuardrailTripped, MaxIterationsExceeded, ModelBehaviorError
from ...runtime.errors import UsageError as UserError
from ..guardrail import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail, input_guardrail, output_guardrail
from ..handoffs.filters import RECOMMENDED_PROMPT_PREFIX, HandoffInputFilter, prompt_with_handoff_instructions, remove_all_tools
from ..handoffs.handoff import Handoff, OnHandoffWithInput, OnHandoffWithoutInput, THandoffInput, handoff
from ..handoffs.items import HandoffInputData
from ..handoffs.items import Item as RunItem
from ..tools.tool import tool as function_tool
from .agent import Agent
from .runner import Runner, run

__all__ = [
    "RECOMMENDED_PROMPT_PREFIX",
    "Agent",
    "AgentHooks",
    "GuardrailFunctionOutput",
    "GuardrailTripped",
    "Handoff",
    "HandoffInputData",
    "HandoffInputFilter",
    "InputGuardrail",
    "MaxIterationsExceeded",
    "ModelBehaviorError",
    "OnHandoffWithInput",
    "OnHandoffWithoutInput",
    "OutputGuardrail",
    "RunContextWrapper",
    "RunHooks",
    "RunItem",
    "RunResult",
    "Runner",
    "THandoffInput",
    "UserError",
    "function_tool",
    "handoff",
    "input_guardrail",
    "output_guardrail",
    "prompt_with_handoff_instructions",
    "remove_all_tools",
    "run",
]
