"""The base class of every agent definition.

All agents have a name, a description and sub-agents. A definition holds no run state and does not
know its parent, so it may run any number of times at once, in any number of trees.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, TypeVar, Unpack

from ..runtime.actor.supervision import Restart
from ..runtime.agent.context import AgentContext
from ..runtime.agent.history import HistoryPolicy, HistoryRewriter, check_history
from ..runtime.agent.hooks import AgentHooks, check_hooks
from ..runtime.agent.invocation import Invocation
from ..runtime.agent.options import Options, OptionsLike, as_options
from ..runtime.agent.relations import tell_relations
from ..runtime.agent.tree import Node
from ..runtime.data.agent_input import AgentInput
from ..runtime.data.chat import Message
from ..runtime.data.events import AgentEvent
from ..runtime.errors import UsageError
from ..runtime.option_names import refuse_unknown

if TYPE_CHECKING:
    from .tools.tool import Tool

__all__ = ["Agent", "AgentOptions", "check_option_names", "set_sub_agents"]

A = TypeVar("A", bound="Agent")


class AgentOptions(TypedDict, total=False):
    """The options that every kind of agent accepts besides its name, description and sub-agents.

    Write `**options: Unpack[AgentOptions]` in an agent class that passes them to `Agent`.
    """

    disallow_transfer_to_parent: bool
    history: HistoryPolicy | HistoryRewriter | None
    hooks: AgentHooks | None
    on_failure: Restart | None


def check_option_names(kind: type[Agent], options: Mapping[str, object]) -> None:
    """Raise if an option that `kind` passes on to `Agent` is unknown, and suggest a name."""
    if options.keys() - AgentOptions.__annotations__.keys():
        own = (name for name in inspect.signature(kind).parameters if name != "agent_options")
        refuse_unknown(kind.__name__, options, (*own, *AgentOptions.__annotations__))


class Agent:
    """An agent. For a custom one, subclass it and write `run`, an async generator of events.

        class Greeter(Agent):
            async def run(self, input, context):
                yield AgentEvent.say("hello")

    Do not change a definition after it is made, and store no run state in it: the same definition
    serves many runs at once.
    """

    # Not ClassVars: otherwise pyright would reject an Agent as a `Definition`.
    allows_transfer: bool = True
    has_handoffs: bool = False
    skips_transfers: bool = False
    followers: Sequence[Agent] = ()
    unique_children: bool = True
    wrapped: Agent | None = None
    has_told: bool = False
    calls_own_hooks: bool = False
    """Whether the agent calls its `hooks` itself. If so, the runtime does not call them."""
    fixed_options: tuple[Options, ...] = ()
    """The options fixed by `with_options(options=...)`, for all runs of this agent."""
    interrupt_info: ClassVar[str | None] = None
    """The `info` of an interrupt context for this agent, if it encloses the interrupted one."""

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        sub_agents: Sequence[Agent] = (),
        disallow_transfer_to_parent: bool = False,
        history: HistoryPolicy | HistoryRewriter | None = None,
        hooks: AgentHooks | None = None,
        on_failure: Restart | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            msg = (
                f"{type(self).__name__}(name={name!r}): name must be a non-empty string. Other "
                "agents hand off to it by name, and its events carry the name. Pass "
                "name='weather', for example."
            )
            raise UsageError(msg)
        _check_options(name, history, hooks, on_failure)
        self.name = name
        self.description = description
        self.sub_agents = _checked(name, sub_agents)
        self.disallow_transfer_to_parent = disallow_transfer_to_parent
        # Annotated here: otherwise pyright would infer a plain string.
        self.history: HistoryPolicy | HistoryRewriter | None = history
        self.hooks = hooks
        self.on_failure = on_failure

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', None)!r}>"

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        """Run the agent: yield events one after the other. Write it as `async def` with `yield`."""
        msg = (
            f"{type(self).__name__} must have a method run(). Write `async def run(self, input, "
            "context)` with `yield AgentEvent.say(...)`."
        )
        raise UsageError(msg, agent=self.name)

    # A custom agent may override the next three methods to learn about the agents around it.
    # `set_sub_agents` calls them. For sub-agents passed to the constructor, they are called each
    # time a tree is built, as a Runner does. Their exceptions surface there as a `UsageError` with
    # the agent's name. An agent may belong to several trees, so store only facts that hold in all
    # of them.

    def on_set_sub_agents(self, sub_agents: Sequence[Agent]) -> None:
        """Called with the agents that this one may transfer to, or that are its steps."""

    def on_set_as_sub_agent(self, parent: Agent) -> None:
        """Called with this agent's parent."""

    def on_disallow_transfer_to_parent(self) -> None:
        """Called after `on_set_as_sub_agent` if this agent may not transfer back to its parent.

        The reason is either its own option, or that it is a step of a workflow.
        """

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        """Return why an interrupted invocation cannot resume with this definition, or None."""
        del node, invocation
        return None

    def answer_of(self, node: Node, message: Message) -> Any:
        """Return the message as the agent's typed answer, or None without an output type."""
        del node, message

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        """Return the tree of the agent that the tool of that name calls."""
        del node, tool_name
        return None

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, object] | type | None = None,
        full_history: bool = False,
        emit_events: bool = False,
        background: bool = False,
        background_after: float | None = None,
        controls: bool = True,
    ) -> Tool:
        """Return this agent as a tool of another agent.

        The tool sends this agent a request; the agent's last message is the result. With
        `background`, the call is answered at once with a receipt, and the agent works as a run of
        its own, whose end is posted to the caller's session. With `background_after`, that happens
        if it has not ended after so many seconds. The model then also gets the tools `task_status`,
        `task_send`, `task_wait` and `task_stop`, unless `controls` is False.
        """
        from .handoffs.agent_tool import AgentTool  # noqa: PLC0415 -- a circular import

        if background or background_after is not None:
            from .handoffs.background import background_tool  # noqa: PLC0415 -- a circular import

            return background_tool(
                self,
                name=name,
                description=description,
                parameters=parameters,
                full_history=full_history,
                emit_events=emit_events,
                after=background_after,
                controls=controls,
            )
        return AgentTool(
            self,
            name=name,
            description=description,
            parameters=parameters,
            full_history=full_history,
            emit_events=emit_events,
        )

    def with_sub_agents(self, sub_agents: Sequence[Agent]) -> Self:
        """Return a copy with those sub-agents instead of its own."""
        twin = self._twin()
        twin.sub_agents = _checked(self.name, sub_agents)
        twin.has_told = True
        tell_relations(twin)
        return twin

    def with_options(self, *, options: OptionsLike = None, **changes: Unpack[AgentOptions]) -> Self:
        """Return a copy with these changes: options of every agent, and `options` of its runs.

        `options` are run options, such as `ModelOptions(temperature=0)`. Options passed to a run
        override them.
        """
        unknown = sorted(changes.keys() - AgentOptions.__optional_keys__)
        if unknown:
            msg = (
                f"agent {self.name!r}: with_options({unknown[0]}=...) is not an option of an "
                "agent. The options are: options, "
                f"{', '.join(sorted(AgentOptions.__optional_keys__))}."
            )
            raise UsageError(msg, agent=self.name)
        _check_options(
            self.name, changes.get("history"), changes.get("hooks"), changes.get("on_failure")
        )
        twin = self._twin()
        for name, value in changes.items():
            setattr(twin, name, value)
        twin.fixed_options = (*self.fixed_options, *as_options(options))
        return twin

    def _twin(self) -> Self:
        """Return a copy, to be changed before any other code sees it."""
        return copy.copy(self)


def set_sub_agents(agent: A, sub_agents: Sequence[Agent]) -> A:
    """Return a copy of the agent with those sub-agents. They may transfer to each other."""
    if not isinstance(agent, Agent):
        msg = f"set_sub_agents: agent must be an Agent, got {agent!r}."
        raise UsageError(msg)
    return agent.with_sub_agents(sub_agents)


def _check_options(name: str, history: object, hooks: object, on_failure: object) -> None:
    check_history(history, f"agent {name!r}", name)
    if hooks is not None:
        check_hooks(hooks, AgentHooks, f"agent {name!r}")
    if on_failure is not None and not isinstance(on_failure, Restart):
        msg = (
            f"agent {name!r}: on_failure must be a Restart(...) of offbook.runtime, or "
            f"None if a failure ends the agent, got {on_failure!r}."
        )
        raise UsageError(msg, agent=name)


def _checked(name: str, sub_agents: Iterable[Agent]) -> tuple[Agent, ...]:
    if not sub_agents:
        return ()
    if isinstance(sub_agents, Agent):
        msg = (
            f"agent {name!r}: sub_agents must be a list, got one agent. Pass "
            f"sub_agents=[{sub_agents.name}]."
        )
        raise UsageError(msg, agent=name)
    given = tuple(sub_agents)
    for one in given:
        if not isinstance(one, Agent):
            msg = (
                f"agent {name!r}: sub_agents must contain instances of Agent, such as "
                f"ChatModelAgent(...), got {one!r}."
            )
            raise UsageError(msg, agent=name)
    return given
