"""The definition of the agent driven by a chat model: call the model, run its tools, repeat.

The behaviour is in `loop.py`. Its only state is the list of the agent's messages so far.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, Final, Generic, Literal, Required, Self, TypedDict, Unpack, cast, overload

from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.agent.history import HistoryPolicy, HistoryRewriter
from ...runtime.agent.hooks import RunHooks
from ...runtime.agent.invocation import Invocation
from ...runtime.agent.tree import Node
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, MessageDelta
from ...runtime.data.events import AgentEvent
from ...runtime.data.output_type import OutputT_co
from ...runtime.data.run_result import RunResult, RunStatus
from ...runtime.errors import AgentError, ModelRetry, UsageError
from ...runtime.models import ChatModel, ModelSettings, model_from_env
from ...runtime.models.env import model_named
from ...runtime.run.run_options import RunOptions
from ...runtime.runner import Runner
from ...runtime.stores import Store
from ...runtime.system.system import ActorSystem
from ...runtime.unpicklable import Unpicklable
from ..agent import Agent, AgentOptions, check_option_names
from ..guardrail import GuardrailFunction, InputGuardrail, OutputGuardrail, as_guardrails
from ..handoffs.background import BackgroundAgentTool, control_tools
from ..handoffs.filters import HandoffInputFilter
from ..handoffs.handoff import Handoff, as_handoff
from ..handoffs.transfer import exit_tool as default_exit_tool
from ..middleware import Middleware
from ..tools.tool import Tool, Toolset, tool
from .loop import ChatLoop
from .overridden import overridden, replaced
from .setup import MessageModifier, Setup
from .toolsets import ToolsetPlay

__all__ = ["ChatModelAgent", "GenerateOptions", "as_model"]

_DEFAULT_SETTINGS: Final = ModelSettings()
_LISTED: Final = {"tools": "tools", "middleware": "Middleware"}
_CALLED_WITH: Final = {
    "unknown_tool": "name and arguments",
    "make_model_input": "instruction, input and context",
    "message_modifier": "context and messages",
}


class _RunnerOptions(TypedDict, total=False):
    system: ActorSystem | None
    store: Store | None
    durability: Literal["none", "interrupt", "step"]
    keep: Literal["unfinished", "all"] | float | None
    version: str | None
    app: str | None
    hooks: RunHooks | None
    max_transfers: int
    event_buffer: int
    skip_transfer_messages: bool
    handoff_input_filter: HandoffInputFilter | None
    history: HistoryPolicy | HistoryRewriter | None
    coalesce_deltas: bool


class GenerateOptions(RunOptions, _RunnerOptions, total=False):
    """The options of `generate` and `stream`: those of `Runner` and those of `Runner.run`."""


class ChatModelAgentOptions(AgentOptions, total=False):
    """The options of a `ChatModelAgent` other than `output_type`, for type checkers."""

    name: Required[str]
    description: str
    instruction: str | Callable[[AgentContext], str | Awaitable[str]]
    instructions: str | Callable[[AgentContext], str | Awaitable[str]] | None
    strict_instruction: bool
    model: ChatModel | str | None
    tools: Iterable[Tool | Toolset | Callable[..., object]]
    sub_agents: Sequence[Agent]
    handoffs: Sequence[Agent | Handoff]
    max_iterations: int
    exit_tool: bool | Tool
    return_directly: Collection[str]
    output_key: str | None
    make_model_input: (
        Callable[[str, AgentInput, AgentContext], Sequence[Message] | Awaitable[Sequence[Message]]]
        | None
    )
    message_modifier: MessageModifier | None
    middleware: Sequence[Middleware]
    unknown_tool: Callable[[str, str], object] | None
    on_tool_error: Literal["report", "raise"]
    parallel_tool_calls: bool
    reset_tool_choice: bool
    multiple_handoffs: Literal["first", "last", "error"]
    multiple_handoffs_message: str
    nest_handoff_history: bool
    input_guardrails: Sequence[InputGuardrail | GuardrailFunction]
    output_guardrails: Sequence[OutputGuardrail | GuardrailFunction]
    model_settings: ModelSettings | None


class ChatModelAgent(Unpicklable, Agent, Generic[OutputT_co]):
    """An agent driven by a chat model.

        ChatModelAgent(name="weather", description="knows the weather", instruction="Be brief.",
            model="gpt-4o", tools=[get_weather])

    `instruction` (also spelt `instructions`) is a string or a function of the context. In a string,
    `{name}` is replaced by the session value of that name. A placeholder without a session value
    stays unchanged. A placeholder that nearly matches a session value is an error, unless
    `strict_instruction` is False.

    A `tool_choice` in the settings that forces a tool call applies to the first request only. After
    a round of tools it is "auto", unless `reset_tool_choice` is False.

    `message_modifier` is called with the context and the messages before each request, and returns
    the messages to send instead. They are not recorded.

    `output_type` is the type of the answer: a pydantic model, a dataclass, or any type that
    pydantic supports. To type checkers, the agent is then a `ChatModelAgent[Label]` and
    `result.final_output` a `Label`; without an `output_type` it is a `str`.
    """

    __why_not_pickled__ = (
        "its model and tools belong to this process. Pass a name, and make or import the agent "
        "of that name in each process."
    )

    _runner: Runner | None = None  # of `generate` and `stream`, made at first use

    @overload
    def __init__(
        self: ChatModelAgent[str],
        *,
        output_type: None = None,
        **options: Unpack[ChatModelAgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, *, output_type: type[OutputT_co], **options: Unpack[ChatModelAgentOptions]
    ) -> None: ...
    @overload  # for special forms that type checkers do not accept as `type`: a Literal, a union
    def __init__(
        self: ChatModelAgent[Any], *, output_type: object, **options: Unpack[ChatModelAgentOptions]
    ) -> None: ...
    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        instruction: str | Callable[[AgentContext], str | Awaitable[str]] = "",
        instructions: str | Callable[[AgentContext], str | Awaitable[str]] | None = None,
        strict_instruction: bool = True,
        model: ChatModel | str | None = None,
        tools: Iterable[Tool | Toolset | Callable[..., object]] = (),
        sub_agents: Sequence[Agent] = (),
        handoffs: Sequence[Agent | Handoff] = (),
        max_iterations: int = 20,
        exit_tool: bool | Tool = False,
        return_directly: Collection[str] = (),
        output_key: str | None = None,
        output_type: object = None,
        make_model_input: Callable[
            [str, AgentInput, AgentContext], Sequence[Message] | Awaitable[Sequence[Message]]
        ]
        | None = None,
        message_modifier: MessageModifier | None = None,
        middleware: Sequence[Middleware] = (),
        unknown_tool: Callable[[str, str], object] | None = None,
        on_tool_error: Literal["report", "raise"] = "report",
        parallel_tool_calls: bool = True,
        reset_tool_choice: bool = True,
        multiple_handoffs: Literal["first", "last", "error"] = "first",
        multiple_handoffs_message: str = "Multiple handoffs detected, ignoring this one.",
        nest_handoff_history: bool = False,
        input_guardrails: Sequence[InputGuardrail | GuardrailFunction] = (),
        output_guardrails: Sequence[OutputGuardrail | GuardrailFunction] = (),
        model_settings: ModelSettings | None = None,
        **agent_options: Unpack[AgentOptions],
    ) -> None:
        check_option_names(ChatModelAgent, agent_options)
        super().__init__(name=name, description=description, sub_agents=sub_agents, **agent_options)
        _check_iterables(name, tools=tools, middleware=middleware)
        _check_functions(
            name,
            unknown_tool=unknown_tool,
            make_model_input=make_model_input,
            message_modifier=message_modifier,
        )
        _check(
            name,
            "max_iterations",
            "a whole number, 1 or more",
            isinstance(max_iterations, int) and max_iterations >= 1,
            max_iterations,
        )
        if instructions is not None:
            if instruction:
                msg = (
                    f"{type(self).__name__}({name!r}): instruction= and instructions= are two "
                    "spellings of one parameter. Pass one of them."
                )
                raise UsageError(msg, agent=name)
            instruction = instructions
        _check(
            name,
            "instruction",
            "a string, or a function of the context",
            isinstance(instruction, str) or callable(instruction),
            instruction,
        )
        _check(
            name,
            "output_key",
            "a string",
            output_key is None or isinstance(output_key, str),
            output_key,
        )
        _check(
            name,
            "model_settings",
            "ModelSettings",
            model_settings is None or isinstance(model_settings, ModelSettings),
            model_settings,
        )
        _check(
            name,
            "return_directly",
            "a list of names of tools",
            isinstance(return_directly, Collection),
            return_directly,
        )
        _check(
            name,
            "on_tool_error",
            "'report' or 'raise'",
            on_tool_error in ("report", "raise"),
            on_tool_error,
        )
        self.instruction = instruction
        self.strict_instruction = strict_instruction
        self.model = as_model(model, name)
        self.toolsets, self.tools = _as_tools(tools, name, exit_given=exit_tool)
        self.max_iterations = max_iterations
        self.exit_name = (
            exit_tool.name
            if isinstance(exit_tool, Tool)
            else default_exit_tool.name
            if exit_tool
            else None
        )
        self.return_directly = _direct(return_directly, self.tools, name) | (
            {self.exit_name} if self.exit_name is not None else frozenset()
        )
        self.output_key = output_key
        self.output_type = output_type
        self.make_model_input = make_model_input
        self.message_modifier = message_modifier
        self.middleware = _as_middleware(middleware, name)
        self.unknown_tool = unknown_tool
        self.on_tool_error = on_tool_error
        self.parallel_tool_calls = parallel_tool_calls
        self.reset_tool_choice = reset_tool_choice
        self.input_guardrails = as_guardrails(input_guardrails, InputGuardrail, name)
        self.output_guardrails = as_guardrails(output_guardrails, OutputGuardrail, name)
        self._take_handoffs(handoffs, multiple_handoffs, nests=nest_handoff_history)
        _check(
            name,
            "multiple_handoffs_message",
            "a string",
            isinstance(multiple_handoffs_message, str),
            multiple_handoffs_message,
        )
        self.multiple_handoffs_message = multiple_handoffs_message
        self.model_settings = model_settings or _DEFAULT_SETTINGS

    def _twin(self) -> Self:
        twin = super()._twin()
        twin._runner = None
        return twin

    def _take_handoffs(
        self,
        handoffs: Sequence[Agent | Handoff],
        several: Literal["first", "last", "error"],
        *,
        nests: bool,
    ) -> None:
        _check(
            self.name,
            "multiple_handoffs",
            "'first', 'last' or 'error'",
            several in ("first", "last", "error"),
            several,
        )
        _check(
            self.name,
            "handoffs",
            "a list of agents and handoffs",
            isinstance(handoffs, Iterable) and not isinstance(handoffs, Agent),
            handoffs,
        )
        # A list passed by the user may still grow until a Runner is made, so that agents can hand
        # off in circles.
        self.handoffs: Sequence[Agent | Handoff] = (
            handoffs if isinstance(handoffs, list) else tuple(handoffs)
        )
        self.multiple_handoffs = several
        self.nest_handoff_history = nests
        self.check_handoffs()

    def check_handoffs(self) -> list[Handoff]:
        """Return all handoffs. Raise if two have the same name, or one has the name of a tool."""
        known = {tool.name: f"the tool {tool.name!r}" for tool in self.tools}
        found = [as_handoff(given, self.name) for given in self.handoffs]
        for one in found:
            what = f"the handoff to {one.agent_name!r}"
            if one.tool_name in known:
                msg = (
                    f"agent {self.name!r}: {known[one.tool_name]} and {what} are both named "
                    f"{one.tool_name!r}. Rename one with tool_name=."
                )
                raise UsageError(msg, agent=self.name)
            known[one.tool_name] = what
        return found

    def answer_of(self, node: Node, message: Message) -> OutputT_co | None:
        """Return the message as an object of `output_type`, or None if that fails."""
        form = self.setup(node).answer
        return None if form is None else cast("OutputT_co | None", form.parse(message.text)[0])

    @property
    def has_handoffs(self) -> bool:  # type: ignore[override]  # a read-only property
        return bool(self.handoffs)

    @property
    def followers(self) -> Sequence[Agent]:  # type: ignore[override]  # a read-only property
        found = (as_handoff(one, self.name) for one in self.handoffs)
        return [one.agent for one in found if one.agent is not None and one.mode == "transfer"]

    def check(self, node: Node) -> None:
        """Compute what all runs share when a Runner is made, so that errors surface then."""
        self.setup(node)

    def setup(self, node: Node) -> Setup:
        """Return the setup of this agent in that place of a tree."""
        setup: Setup | None = node.kept
        if setup is None:
            setup = node.kept = Setup(self, node)
        return setup

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        tools = self.setup(node).policy.tools
        for pending in (
            *(invocation.pending or {}).values(),
            *(answer.pending for answer in (invocation.answers or {}).values()),
        ):
            step = pending.context.address[-1] if pending.context.address else None
            if (
                step is not None
                and step.kind == "tool"
                and step.name not in tools
                and not self.toolsets
            ):
                return (
                    f"agent {self.name!r} has no tool {step.name!r} any more, a call of which "
                    f"waits for an answer. Its tools: {sorted(tools)}."
                )
        return None

    @property
    def background_agents(self) -> Sequence[Agent]:
        """The agents that work in the background for this one."""
        return [one.background_agent for one in self.tools if isinstance(one, BackgroundAgentTool)]

    @property
    def asks_approval(self) -> Sequence[str]:
        """The names of the tools that need approval."""
        return [
            *(tool.name for tool in self.tools if tool.needs_approval),
            *(repr(one) for one in self.toolsets if one.asks_approval),
        ]

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        tree: Node | None = getattr(self.setup(node).policy.tools.get(tool_name), "tree", None)
        return tree

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        runtime = runtime_of(context)
        if self.toolsets:
            return ToolsetPlay(self, input, context, runtime)
        if runtime.run.override is not None:
            return ChatLoop(
                *overridden(self, runtime.node, runtime.run.override), input, context, runtime
            )
        node = runtime.invocation.node
        return ChatLoop(self, node.kept or self.setup(node), input, context, runtime)

    def overridden_twin(
        self,
        model: ChatModel | str | None,
        tools: Mapping[str, Callable[..., object]],
        more: Iterable[Tool] = (),
    ) -> Self:
        """Return a copy with another model, with `more` tools added and some tools replaced."""
        twin = self._twin()
        twin.toolsets = ()
        twin.model = self.model if model is None else as_model(model, self.name)
        twin.tools = replaced(
            _as_tools((*self.tools, *more), self.name, exit_given=False)[1], tools
        )
        return twin

    def tools_at(self, node: Node) -> Mapping[str, Node | None]:
        """Return its tools in that place by name, with the tree of the agent that each calls."""
        return {
            name: getattr(one, "tree", None) for name, one in self.setup(node).policy.tools.items()
        }

    # --- without a Runner ---

    async def generate(
        self, messages: str | Message | Sequence[Message], **run_options: Unpack[GenerateOptions]
    ) -> Message:
        """Run this agent, and return its last message.

        Raises the error that the agent failed with. Accepts all options of `Runner` and of
        `Runner.run`.
        """
        runner, options = self._runner_for(run_options)
        result = await runner.run(messages, **options)
        self._check_completed(result)
        if result.final_message is None:
            msg = (
                f"agent {self.name!r} ended without a message. Run it with a Runner, whose "
                "result may have none."
            )
            raise AgentError(msg, agent=self.name)
        return result.final_message

    def _check_completed(self, result: RunResult) -> None:
        result.raise_for_error()
        if result.status is RunStatus.INTERRUPTED:
            msg = (
                f"agent {self.name!r} was interrupted: it waits for an approval or an answer. Run "
                "it with a Runner, which can resume it."
            )
            raise AgentError(msg, agent=self.name)

    async def stream(
        self, messages: str | Message | Sequence[Message], **run_options: Unpack[GenerateOptions]
    ) -> AsyncGenerator[MessageDelta | Message | ModelRetry, None]:
        """Run this agent, and yield the deltas of its messages and the complete messages.

        Raises the error that the agent failed with. A `ModelRetry` is yielded, not raised; it means
        that the deltas of the current message are void.
        """
        runner, options = self._runner_for(run_options)
        options.setdefault("streaming", True)
        run = runner.run(messages, **options)
        try:
            async for event in run:
                if isinstance(event.error, ModelRetry):
                    yield event.error
                elif event.delta is not None:
                    yield event.delta
                elif event.message is not None:
                    yield event.message
            self._check_completed(await run)
        finally:
            await run.aclose()

    def _runner_for(self, options: GenerateOptions) -> tuple[Runner, RunOptions]:
        """Return the Runner for these options, and the options of its run."""
        own = cast(
            "_RunnerOptions",
            {
                name: value
                for name, value in options.items()
                if name in _RunnerOptions.__optional_keys__
            },
        )
        run_options = cast(
            "RunOptions", {name: value for name, value in options.items() if name not in own}
        )
        if own:
            return Runner(self, **own), run_options
        if self._runner is None:
            self._runner = Runner(self)
        return self._runner, run_options


def _check(name: str, parameter: str, wanted: str, good: bool, given: object) -> None:  # noqa: FBT001 -- the condition at the call
    """Raise if the value of a parameter is not `wanted`."""
    if not good:
        msg = f"agent {name!r}: {parameter} must be {wanted}, got {given!r}."
        raise UsageError(msg, agent=name)


def _check_iterables(name: str, **given: object) -> None:
    for parameter, value in given.items():
        _check(
            name,
            parameter,
            f"a list of {_LISTED[parameter]}",
            isinstance(value, Iterable) and not isinstance(value, str),
            value,
        )


def _check_functions(name: str, **given: object) -> None:
    for parameter, value in given.items():
        _check(
            name,
            parameter,
            f"a function of {_CALLED_WITH[parameter]}",
            value is None or callable(value),
            value,
        )


def as_model(model: ChatModel | str | None, name: str) -> ChatModel:
    """Return the `model=` argument as a model."""
    if isinstance(model, str):
        return model_named(model)
    if model is None:
        try:
            return model_from_env()
        except UsageError as problem:
            msg = f"agent {name!r} has no model. Pass model='gpt-4o-mini', for example. {problem}"
            raise UsageError(msg, agent=name) from None
    if not callable(getattr(model, "generate", None)) or isinstance(model, type):
        msg = (
            f"agent {name!r}: model must be a ChatModel with generate(), or the name of an "
            f"OpenAI model, got {model!r:.200}. Pass model='gpt-4o-mini', for example, or in "
            "tests ScriptedModel([...])."
        )
        raise UsageError(msg, agent=name)
    return model


def _as_tools(
    given: Iterable[Tool | Toolset | Callable[..., object]], name: str, *, exit_given: bool | Tool
) -> tuple[tuple[Toolset, ...], tuple[Tool, ...]]:
    """Split them into sets of tools and single tools."""
    found: dict[str, Tool] = {}
    sets: list[Toolset] = []
    for one in (
        *given,
        *((default_exit_tool if exit_given is True else exit_given,) if exit_given else ()),
    ):
        if isinstance(one, Toolset):
            sets.append(one)
            continue
        made = one if isinstance(one, Tool) else _as_tool(one, name)
        if made.name in found:
            msg = (
                f"agent {name!r} has two tools named {made.name!r}. The model cannot tell "
                "them apart. Rename one with @tool(name=...)."
            )
            raise UsageError(msg, agent=name)
        found[made.name] = made
    if any(isinstance(one, BackgroundAgentTool) and one.controls for one in found.values()):
        for control in control_tools():
            found.setdefault(control.name, control)
    return tuple(sets), tuple(found.values())


def _as_tool(given: Callable[..., object], name: str) -> Tool:
    if isinstance(given, Agent):
        msg = (
            f"agent {name!r}: tools must contain tools, got the agent {given.name!r}. Write "
            f"{given.name}.as_tool(), or pass it in sub_agents=."
        )
        raise UsageError(msg, agent=name)
    if not callable(given):
        msg = (
            f"agent {name!r}: tools must contain functions or tools, got {given!r:.200}. Pass a "
            "function without calling it, as in tools=[get_weather]."
        )
        raise UsageError(msg, agent=name)
    return tool(given)


def _direct(names: Collection[str], tools: tuple[Tool, ...], agent_name: str) -> frozenset[str]:
    wanted = frozenset((names,) if isinstance(names, str) else names)
    known = {tool.name for tool in tools}
    if not wanted <= known:
        msg = (
            f"agent {agent_name!r}: return_directly must name tools of the agent, got "
            f"{sorted(wanted - known)}. Its tools: {sorted(known)}."
        )
        raise UsageError(msg, agent=agent_name)
    return wanted | {tool.name for tool in tools if tool.return_directly} if tools else wanted


def _as_middleware(given: Iterable[Middleware], name: str) -> tuple[Middleware, ...]:
    found = tuple(given)
    for one in found:
        if not isinstance(one, Middleware):
            msg = (
                f"agent {name!r}: middleware must contain instances of Middleware, got {one!r}. "
                "Subclass offbook.actors.Middleware, and pass an instance."
            )
            raise UsageError(msg, agent=name)
    return found
