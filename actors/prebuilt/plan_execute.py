"""Plan, execute the first step, revise the plan, and repeat until there is an answer.

`PlanExecute` and its three roles. `plain_roles.py` adapts plain agents to the roles.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeGuard, Unpack

from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.agent.tree import Node
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message
from ...runtime.data.events import AgentEvent, BreakLoop
from ...runtime.errors import ModelBehaviorError, UsageError
from ...runtime.models import ChatModel, ModelRequest, ModelSettings, ToolSpec, answer_of
from ..agent import Agent, AgentOptions
from ..chat_agent.answer import AnswerForm
from ..chat_agent.chat_model_agent import ChatModelAgent, as_model
from ..guardrail import GuardrailFunction, InputGuardrail, OutputGuardrail
from ..handoffs.handoff import Handoff
from ..middleware import Middleware
from ..tools.tool import Tool
from ..workflow import Loop, Sequential
from .plain_roles import PlainExecutor, PlainPlanner, PlainReplanner, note_step, situation, task

__all__ = ["ExecutorOptions", "PlanExecute", "make_executor", "make_planner", "make_replanner"]

_PLAN: Final = ToolSpec(
    "plan",
    "Plan the steps that lead to the objective, in their order.",
    {
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {"type": "string"},
                "description": "the steps to take, in order, each one clear by itself",
            }
        },
        "required": ["steps"],
        "additionalProperties": False,
    },
)
_RESPOND: Final = ToolSpec(
    "respond",
    "Give the answer to the user, when the objective has been reached.",
    {
        "type": "object",
        "properties": {"response": {"type": "string", "description": "the complete answer"}},
        "required": ["response"],
        "additionalProperties": False,
    },
)

_PLANNER: Final = """\
You are an expert planner. Break the objective down into a plan of simple steps, each of which \
can be carried out by itself.
Leave out what is not needed. The result of the last step is the answer. Answer only by calling \
the tool 'plan'."""

_EXECUTOR: Final = """\
You are a diligent executor. Carry out the given step of a plan with the tools that you have, \
and report the result in full."""

_REPLANNER: Final = """\
You look after a plan that is being carried out. Compare what has been done with the objective.
If it has been reached, call the tool 'respond' with the complete answer.
Otherwise call the tool 'plan' with the steps that are still to be done, and only those."""


class _Forced(Agent):
    """A role whose model must answer by a tool call."""

    def __init__(
        self,
        *,
        name: str,
        description: str,
        instruction: str,
        model: ChatModel | str | None,
        settings: ModelSettings | None,
    ) -> None:
        super().__init__(name=name, description=description, history="input_only")
        self.instruction = instruction
        self.model = as_model(model, name)
        self.settings = settings or ModelSettings()

    async def _ask(
        self, context: AgentContext, messages: Sequence[Message], tools: tuple[ToolSpec, ...]
    ) -> tuple[str, Message]:
        """Return the name of the tool that the model calls, and its arguments as a message.

        Raises if the model does anything else.
        """
        choice = tools[0].name if len(tools) == 1 else "required"
        request = ModelRequest(
            (Message.system(self.instruction), *messages), tools, choice, self.settings
        )
        runtime = runtime_of(context)
        if context.run.stopping is not None:
            await runtime.pause()
        runtime.invocation.busy += 1
        try:
            reply = await answer_of(context.run.model_for_run(self.model), request)
        finally:
            runtime.invocation.busy -= 1
        try:
            name, arguments = self._called(reply, tools, context)
        except ModelBehaviorError:
            if reply.usage is not None:
                context.run.usage += reply.usage  # unusable, but it counts towards the usage
            raise
        return name, Message("assistant", _as_json(arguments), usage=reply.usage)

    def _called(
        self, reply: Message, tools: tuple[ToolSpec, ...], context: AgentContext
    ) -> tuple[str, dict[str, Any]]:
        known = {tool.name: tool for tool in tools}
        call = next((call for call in reply.tool_calls if call.name in known), None)
        wanted = " or ".join(known)
        if call is None:
            did = ", ".join(one.name for one in reply.tool_calls) or f"answered {reply.text!r}"
            msg = (
                f"agent {self.name!r}: the model must call {wanted}, but "
                f"{'called ' if reply.tool_calls else ''}{did}. Use a model that follows a "
                "forced tool choice."
            )
            raise ModelBehaviorError(msg, run=context.run_id, agent=self.name, message=reply)
        return call.name, _arguments(
            call.name, call.arguments, known[call.name], context, self.name
        )


def _arguments(
    tool: str, text: str, spec: ToolSpec, context: AgentContext, agent: str
) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    required = spec.parameters["required"]
    assert isinstance(required, list)
    field = required[0]
    value = found.get(field) if isinstance(found, dict) else None
    good = (
        isinstance(value, str)
        if tool == "respond"
        else isinstance(value, list)
        and bool(value)
        and all(isinstance(step, str) for step in value)
    )
    if not good:
        msg = f"agent {agent!r}: the model called {tool} with arguments that are not valid: {text}"
        raise ModelBehaviorError(msg, run=context.run_id, agent=agent)
    return {field: value}


def _plan_of(said: Sequence[Message]) -> list[str]:
    """Return the planned steps."""
    steps: list[str] = json.loads(said[0].text)["steps"]
    return steps


def _as_json(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Planner(_Forced):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        session, said = context.session, runtime_of(context).invocation.messages
        if not said:  # otherwise the plan was made before the run was resumed
            session.update(UserInput=list(input.messages), ExecutedSteps=[])
            _, plan = await self._ask(context, input.messages, (_PLAN,))
            yield AgentEvent.of(plan)
        session["Plan"] = _plan_of(said)


class _Replanner(_Forced):
    """Knows from the enclosing loop whether this is the last round.

    A record made by other agents during the model call contains the current session values, but not
    this agent's progress. So this agent writes only session values that it can safely write again.
    """

    last_iteration: int | None = None

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        session, state, said = (
            context.session,
            context.state,
            runtime_of(context).invocation.messages,
        )
        if not said and "response" not in state:
            note_step(context, self.last_iteration)
            last = (
                self.last_iteration is not None
                and runtime_of(context).invocation.agent_call.loop == self.last_iteration
            )
            asked = situation(session)
            if last:
                asked += (
                    "\n\nThere is no time for further steps: call the tool 'respond' with the "
                    "best answer that these results allow."
                )
            tool, called = await self._ask(
                context, (Message.user(asked),), (_RESPOND,) if last else (_PLAN, _RESPOND)
            )
            if tool == "respond":
                state["response"] = json.loads(called.text)["response"]
            yield AgentEvent.of(called, BreakLoop() if tool == "respond" else None)
        elif not said:
            yield AgentEvent.of(
                Message.assistant(_as_json({"response": state["response"]})), BreakLoop()
            )
        if "response" not in state:
            session["Plan"] = _plan_of(said)
        elif len(said) < 2:  # noqa: PLR2004 -- the message with the call, and the answer
            yield AgentEvent.of(Message.assistant(state["response"]))

    def ending_at(self, iteration: int) -> Self:
        """Return a copy that answers in that round at the latest."""
        twin = self.with_sub_agents(())
        twin.last_iteration = iteration
        return twin


def make_planner(
    model: ChatModel | str | None = None,
    *,
    name: str = "planner",
    instruction: str = _PLANNER,
    model_settings: ModelSettings | None = None,
) -> Agent:
    """Make the agent that writes the plan."""
    return _Planner(
        name=name,
        description="plans the steps that lead to an objective",
        instruction=instruction,
        model=model,
        settings=model_settings,
    )


class _Executor(ChatModelAgent):
    """Receives the first step of the plan; its last message is stored as the result."""


class ExecutorOptions(AgentOptions, total=False):
    """The options that `make_executor` passes on to `ChatModelAgent`."""

    sub_agents: Sequence[Agent]
    handoffs: Sequence[Agent | Handoff]
    exit_tool: bool | Tool
    return_directly: Collection[str]
    output_type: object
    middleware: Sequence[Middleware]
    unknown_tool: Callable[[str, str], object] | None
    on_tool_error: Literal["report", "raise"]
    parallel_tool_calls: bool
    reset_tool_choice: bool
    multiple_handoffs: Literal["first", "last", "error"]
    nest_handoff_history: bool
    input_guardrails: Sequence[InputGuardrail | GuardrailFunction]
    output_guardrails: Sequence[OutputGuardrail | GuardrailFunction]
    model_settings: ModelSettings | None


def make_executor(
    model: ChatModel | str | None = None,
    tools: Sequence[Tool | Callable[..., object]] = (),
    *,
    name: str = "executor",
    instruction: str = _EXECUTOR,
    max_iterations: int = 20,
    **options: Unpack[ExecutorOptions],
) -> ChatModelAgent:
    """Make the agent that executes the first step of the plan, with these tools."""

    def asked(text: str, _given: AgentInput, context: AgentContext) -> list[Message]:
        return [Message.system(text), Message.user(task(context.session, context.run_id, name))]

    return _Executor(
        name=name,
        description="carries out one step of a plan",
        instruction=instruction,
        model=model,
        tools=tools,
        max_iterations=max_iterations,
        make_model_input=asked,
        output_key="ExecutedStep",
        **options,
    )


def make_replanner(
    model: ChatModel | str | None = None,
    *,
    name: str = "replanner",
    instruction: str = _REPLANNER,
    model_settings: ModelSettings | None = None,
) -> Agent:
    """Make the agent that decides after each step whether to continue, and with which plan."""
    return _Replanner(
        name=name,
        description="revises the plan, or answers",
        instruction=instruction,
        model=model,
        settings=model_settings,
    )


class PlanExecute(Sequential):
    """A planner, then a loop of executor and replanner, until the replanner answers.

    In round `max_iterations` it must answer.

    Each role is made by `make_planner`, `make_executor` and `make_replanner`, or is a plain
    `ChatModelAgent`. A plain agent receives the same objective, plan and results, and the plan is
    read from its reply, as lines or JSON. Other custom agents must maintain the session values
    `Plan`, `ExecutedStep` and `ExecutedSteps` themselves.
    """

    def __init__(
        self,
        *,
        planner: Agent,
        executor: Agent,
        replanner: Agent,
        max_iterations: int = 10,
        name: str = "plan_execute_replan",
        description: str = "",
    ) -> None:
        if max_iterations < 1:
            msg = f"PlanExecute: max_iterations must be 1 or more, got {max_iterations}."
            raise UsageError(msg)
        self._problem = (
            _misfit("planner", planner)
            or _misfit("executor", executor)
            or _misfit("replanner", replanner)
        )
        if _is_plain(planner):
            planner = PlainPlanner(planner)
        if _is_plain(executor):
            executor = PlainExecutor(executor)
        if isinstance(replanner, _Replanner):
            replanner = replanner.ending_at(max_iterations - 1)
        elif _is_plain(replanner):
            replanner = PlainReplanner(replanner, max_iterations - 1)
        loop = Loop(
            name="execute_replan", sub_agents=[executor, replanner], max_iterations=max_iterations
        )
        super().__init__(name=name, description=description, sub_agents=[planner, loop])

    def check(self, node: Node) -> None:
        """Raise, when a Runner is made, if an agent does not fit its role."""
        super().check(node)
        if self._problem is not None:
            raise UsageError(self._problem, agent=self.name)


_MADE_FOR: Final[Mapping[str, type[Agent]]] = MappingProxyType(
    {"planner": _Planner, "executor": _Executor, "replanner": _Replanner}
)


def _is_plain(agent: Agent) -> TypeGuard[ChatModelAgent]:
    return isinstance(agent, ChatModelAgent) and not isinstance(agent, _Executor)


def _misfit(role: str, agent: Agent) -> str | None:
    """Return the reason an agent does not fit that role, or None."""
    if not isinstance(agent, Agent):
        return None  # reported where the tree is made
    for other, made in _MADE_FOR.items():
        if other != role and isinstance(agent, made):
            return (
                f"PlanExecute({role}={agent.name!r}): that one is made to be the {other}: give "
                f"what make_{role}(...) makes, or a ChatModelAgent."
            )
    form = agent.output_type if isinstance(agent, ChatModelAgent) and role != "executor" else None
    if form is None or form is str:
        return None
    schema = AnswerForm(form, agent.name).schema.schema
    fields = schema.get("properties")
    wanted = {"steps", "plan"} if role == "planner" else {"steps", "plan", "response"}
    if isinstance(fields, Mapping) and (
        wanted & set(fields) or fields.get("response", {}).get("type") == "array"
    ):
        return None
    return (
        f"PlanExecute({role}={agent.name!r}): its output_type {form!r} has none of the fields "
        f"{sorted(wanted)}, so that no plan can be read from its answer."
    )
