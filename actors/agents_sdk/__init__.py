"""The spellings of OpenAI's Agents SDK, for whoever comes from there: change the import, and go on.

    from understudy.actors.agents_sdk import Agent, Runner, handoff

An `Agent` of here is a `ChatModelAgent`, and may stand wherever one may; a `Runner` of understudy's does more than the one of here: it keeps runs,
resumes them, and knows sessions.
"""

from ...runtime.errors import GuardrailTripped, MaxIterationsExceeded, ModelBehaviorError
from ...runtime.errors import UsageError as UserError
from ...runtime.hooks import AgentHooks, RunHooks
from ...runtime.run_context import RunContext as RunContextWrapper
from ...runtime.run_result import RunResult
from ..guardrail import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail, input_guardrail, output_guardrail
from ..handoff import Handoff, handoff
from ..handoff_filters import RECOMMENDED_PROMPT_PREFIX, HandoffInputFilter, prompt_with_handoff_instructions, remove_all_tools
from ..handoff_items import HandoffInputData
from ..handoff_items import Item as RunItem
from ..tool import tool as function_tool
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
    "OutputGuardrail",
    "RunContextWrapper",
    "RunHooks",
    "RunItem",
    "RunResult",
    "Runner",
    "UserError",
    "function_tool",
    "handoff",
    "input_guardrail",
    "output_guardrail",
    "prompt_with_handoff_instructions",
    "remove_all_tools",
    "run",
]
