"""Plan, do the first step, look again at the plan: until there is an answer.

Owns: `PlanExecute`, and the three roles that are made for it. How plain agents play them is in `plain_roles.py`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeGuard, Unpack

from ...runtime.agent.context import AgentContext, door_of
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
from .plain_roles import PlainExecutor, PlainPlanner, PlainReplanner
from .plan import note_step, situation, task

__all__ = ["ExecutorOptions", "PlanExecute", "make_executor", "make_planner", "make_replanner"]

_PLAN: Final = ToolSpec(
    "plan",
    "Plan the steps that lead to the objective, in their order.",
    {
        "type": "object",
        "properties": {"steps": {"type": "array", "items": {"type": "string"}, "description": "the steps to take, in order, each one clear by itself"}},
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

_PLANNER: Final = """You are an expert planner. Break the objective down into a plan of simple steps, each of which can be carried out by itself.
Leave out what is not needed. The result of the last step is the answer. Answer only by calling the tool 'plan'."""

_EXECUTOR: Final = """You are a diligent executor. Carry out the given step of a plan with the tools that you have, and report the result in full."""

_REPLANNER: Final = """You look after a plan that is being carried out. Compare what has been done with the objective.
If it has been reached, call the tool 'respond' with the complete answer.
Otherwise call the tool 'plan' with the steps that are still to be done, and only those."""


class _Forced(Agent):
    """A role whose model has to answer by a tool call."""

    def __init__(self, *, name: str, description: str, instruction: str, model: ChatModel | str | None, settings: ModelSettings | None) -> None:
        super().__init__(name=name, description=description, history="input_only")
        self.instruction = instruction
        self.model = as_model(model, name)
        self.settings = settings or ModelSettings()

    async def _ask(self, context: AgentContext, messages: Sequence[Message], tools: tuple[ToolSpec, ...]) -> tuple[str, Message]:
        """The tool that the model calls, and its arguments as a message. Raises if it does anything else."""
        choice = tools[0].name if len(tools) == 1 else "required"
        request = ModelRequest((Message.system(self.instruction), *messages), tools, choice, self.settings)
        door = door_of(context)
        if context.run.stopping is not None:
            await door.pause()
        door.invocation.busy += 1
        try:
            reply = await answer_of(context.run.model_for_run(self.model), request)
        finally:
            door.invocation.busy -= 1
        try:
            name, arguments = self._called(reply, tools, context)
        except ModelBehaviorError:
            if reply.usage is not None:
                context.run.usage += reply.usage  # of no use, but it has cost something
            raise
        return name, Message("assistant", _as_json(arguments), usage=reply.usage)

    def _called(self, reply: Message, tools: tuple[ToolSpec, ...], context: AgentContext) -> tuple[str, dict[str, Any]]:
        known = {tool.name: tool for tool in tools}
        call = next((call for call in reply.tool_calls if call.name in known), None)
        wanted = " or ".join(known)
        if call is None:
            did = ", ".join(one.name for one in reply.tool_calls) or f"answered {reply.text!r}"
            msg = f"agent {self.name!r}: the model was to call {wanted}, and {'called ' if reply.tool_calls else ''}{did}."
            raise ModelBehaviorError(msg, run=context.run_id, agent=self.name, message=reply)
        return call.name, _arguments(call.name, call.arguments, known[call.name], context, self.name)


def _arguments(tool: str, text: str, spec: ToolSpec, context: AgentContext, agent: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    required = spec.parameters["required"]
    assert isinstance(required, list)
    field = required[0]
    value = found.get(field) if isinstance(found, dict) else None
    good = isinstance(value, str) if tool == "respond" else isinstance(value, list) and bool(value) and all(isinstance(step, str) for step in value)
    if not good:
        msg = f"agent {agent!r}: the model called {tool} with arguments that are not valid: {text}"
        raise ModelBehaviorError(msg, run=context.run_id, agent=agent)
    return {field: value}


def _plan_of(said: Sequence[Message]) -> list[str]:
    """The steps that were decided on."""
    steps: list[str] = json.loads(said[0].text)["steps"]
    return steps


def _as_json(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Planner(_Forced):
    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        session, said = context.session, door_of(context).invocation.messages
        if not said:  # else the plan was made before the run went on from here
            session.update(UserInput=list(input.messages), ExecutedSteps=[])
            _, plan = await self._ask(context, input.messages, (_PLAN,))
            yield AgentEvent.of(plan)
        session["Plan"] = _plan_of(said)


class _Replanner(_Forced):
    """Knows, from the loop around it, whether this is the last time that it is asked.

    What others record while it asks its model holds the session's values as they are then, and not how far it is itself. So it puts nothing there that
    it could not put there once more.
    """

    last_iteration: int | None = None

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        session, state, said = context.session, context.state, door_of(context).invocation.messages
        if not said and "response" not in state:
            note_step(context, self.last_iteration)
            last = self.last_iteration is not None and door_of(context).invocation.assignment.loop == self.last_iteration
            asked = situation(session)
            if last:
                asked += "\n\nThere is no time for further steps: call the tool 'respond' with the best answer that these results allow."
            tool, called = await self._ask(context, (Message.user(asked),), (_RESPOND,) if last else (_PLAN, _RESPOND))
            if tool == "respond":
                state["response"] = json.loads(called.text)["response"]
            yield AgentEvent.of(called, BreakLoop() if tool == "respond" else None)
        elif not said:
            yield AgentEvent.of(Message.assistant(_as_json({"response": state["response"]})), BreakLoop())
        if "response" not in state:
            session["Plan"] = _plan_of(said)
        elif len(said) < 2:  # noqa: PLR2004 -- the one that says that it answers, and the answer
            yield AgentEvent.of(Message.assistant(state["response"]))

    def ending_at(self, iteration: int) -> Self:
        """A copy that answers in that round at the latest."""
        twin = self.with_sub_agents(())
        twin.last_iteration = iteration
        return twin


def make_planner(
    model: ChatModel | str | None = None, *, name: str = "planner", instruction: str = _PLANNER, model_settings: ModelSettings | None = None
) -> Agent:
    """The one who makes the plan."""
    return _Planner(name=name, description="plans the steps that lead to an objective", instruction=instruction, model=model, settings=model_settings)


class _Executor(ChatModelAgent):
    """Is asked for the first step of the plan, and has its last message kept as the result."""


class ExecutorOptions(AgentOptions, total=False):
    """What `make_executor` passes on to `ChatModelAgent`."""

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
    """The one who carries out the first step of the plan, with these tools."""

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
    model: ChatModel | str | None = None, *, name: str = "replanner", instruction: str = _REPLANNER, model_settings: ModelSettings | None = None
) -> Agent:
    """The one who decides, after each step, whether to go on, and how."""
    return _Replanner(name=name, description="revises the plan, or answers", instruction=instruction, model=model, settings=model_settings)


class PlanExecute(Sequential):
    """A planner, then a loop of executor and replanner, until the replanner answers; in round `max_iterations` it has to.

    Each is made by `make_planner`, `make_executor` and `make_replanner`, or a plain `ChatModelAgent`, which is given the same objective, plan and results: the
    plan is read from its text, lines or JSON. Agents of your own see to the session values `Plan`, `ExecutedStep` and `ExecutedSteps` themselves.
    """

    def __init__(
        self, *, planner: Agent, executor: Agent, replanner: Agent, max_iterations: int = 10, name: str = "plan_execute_replan", description: str = ""
    ) -> None:
        if max_iterations < 1:
            msg = f"PlanExecute: max_iterations={max_iterations} would carry out nothing; give 1 or more."
            raise UsageError(msg)
        self._problem = _misfit("planner", planner) or _misfit("executor", executor) or _misfit("replanner", replanner)
        if _is_plain(planner):
            planner = PlainPlanner(planner)
        if _is_plain(executor):
            executor = PlainExecutor(executor)
        if isinstance(replanner, _Replanner):
            replanner = replanner.ending_at(max_iterations - 1)
        elif _is_plain(replanner):
            replanner = PlainReplanner(replanner, max_iterations - 1)
        loop = Loop(name="execute_replan", sub_agents=[executor, replanner], max_iterations=max_iterations)
        super().__init__(name=name, description=description, sub_agents=[planner, loop])

    def check(self, node: Node) -> None:
        """Raise, when a Runner is made, if one of them cannot play its part."""
        super().check(node)
        if self._problem is not None:
            raise UsageError(self._problem, agent=self.name)


_MADE_FOR: Final[Mapping[str, type[Agent]]] = MappingProxyType({"planner": _Planner, "executor": _Executor, "replanner": _Replanner})


def _is_plain(agent: Agent) -> TypeGuard[ChatModelAgent]:
    return isinstance(agent, ChatModelAgent) and not isinstance(agent, _Executor)


def _misfit(role: str, agent: Agent) -> str | None:
    """Why an agent cannot play that part; None if it can."""
    if not isinstance(agent, Agent):
        return None  # said where the tree is made
    for other, made in _MADE_FOR.items():
        if other != role and isinstance(agent, made):
            return f"PlanExecute({role}={agent.name!r}): that one is made to be the {other}: give what make_{role}(...) makes, or a ChatModelAgent."
    form = agent.output_type if isinstance(agent, ChatModelAgent) and role != "executor" else None
    if form is None or form is str:
        return None
    schema = AnswerForm(form, agent.name).schema.schema
    fields = schema.get("properties")
    wanted = {"steps", "plan"} if role == "planner" else {"steps", "plan", "response"}
    if isinstance(fields, Mapping) and (wanted & set(fields) or fields.get("response", {}).get("type") == "array"):
        return None
    return f"PlanExecute({role}={agent.name!r}): its output_type {form!r} has none of the fields {sorted(wanted)}, so that no plan can be read from its answer."
