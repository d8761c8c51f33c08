"""The base of every agent's definition.

Owns: what all agents have: a name, a description, a place for sub-agents, and how they are set. A definition holds no state of any run, and knows no parent:
it may be run any number of times at once, in any number of trees.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self, TypedDict, TypeVar, Unpack

from ..runtime.actor.supervision import Restart
from ..runtime.agent.context import AgentContext
from ..runtime.agent.history import HistoryPolicy, HistoryRewriter, check_history
from ..runtime.agent.hooks import AgentHooks, check_hooks
from ..runtime.agent.invocation import Invocation
from ..runtime.agent.options import Options, OptionsLike, as_options
from ..runtime.agent.relations import tell_relations
from ..runtime.agent.tree import Node
from ..runtime.data.agent_input import AgentInput
from ..runtime.data.events import AgentEvent
from ..runtime.errors import UsageError
from ..runtime.option_names import meant

if TYPE_CHECKING:
    from .tools.tool import Tool

__all__ = ["Agent", "AgentOptions", "check_option_names", "set_sub_agents"]

A = TypeVar("A", bound="Agent")


class AgentOptions(TypedDict, total=False):
    """What every kind of agent takes beside its name, description and sub-agents. Write `**options: Unpack[AgentOptions]` where yours passes them on."""

    disallow_transfer_to_parent: bool
    history: HistoryPolicy | HistoryRewriter | None
    hooks: AgentHooks | None
    on_failure: Restart | None


def check_option_names(kind: type[Agent], options: Mapping[str, object]) -> None:
    """Raise, if one of these options, which `kind` passes on to `Agent`, is none; and say which one is meant."""
    for name in options:
        if name not in AgentOptions.__annotations__:
            known = [*inspect.signature(kind).parameters, *AgentOptions.__annotations__]
            hint = meant(name, (one for one in known if one != "agent_options"))
            msg = f"{kind.__name__}() got an unexpected keyword argument {name!r}. {hint}"
            raise TypeError(msg)


class Agent:
    """An agent. Subclass it and write `run`, an async generator of events, for one of your own.

        class Greeter(Agent):
            async def run(self, input, context):
                yield AgentEvent.say("hello")

    Do not change a definition after it was made, and keep nothing of a run in it: the same one plays in many runs at once.
    """

    allows_transfer: bool = True  # none of these is a ClassVar: pyright would not take an Agent for a `Definition` then
    has_handoffs: bool = False
    followers: Sequence[Agent] = ()
    unique_children: bool = True
    wrapped: Agent | None = None
    has_told: bool = False
    calls_own_hooks: bool = False
    """Whether the agent itself calls its `hooks`, at moments of its own: the runtime leaves them alone then."""
    fixed_options: tuple[Options, ...] = ()
    """What `with_options(options=...)` has fixed: for all runs of this agent."""
    interrupt_info: ClassVar[str | None] = None
    """What an interrupt says of this agent, where it encloses the one that was interrupted."""

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
            msg = f"{type(self).__name__}(name={name!r}): an agent needs a name: by it others hand over to it, and its events are told apart."
            raise UsageError(msg)
        _check_options(name, history, hooks, on_failure)
        self.name = name
        self.description = description
        self.sub_agents = _checked(name, sub_agents)
        self.disallow_transfer_to_parent = disallow_transfer_to_parent
        self.history: HistoryPolicy | HistoryRewriter | None = history  # said here: pyright would take it for a plain text
        self.hooks = hooks
        self.on_failure = on_failure

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', None)!r}>"

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        """Play: yield events, one after the other. Write it as `async def` with `yield`."""
        msg = f"{type(self).__name__} has no run(): write `async def run(self, input, context)` with `yield AgentEvent.say(...)`."
        raise UsageError(msg, agent=self.name)

    # What an agent of your own may want to know of those around it. They are called by `set_sub_agents`; and for sub-agents that were given when an agent was
    # made, each time when a tree is made of it, as a Runner does. What they raise is raised there, as a `UsageError` with the agent's name. An agent may stand
    # in several trees: keep only what is the same in all of them.

    def on_set_sub_agents(self, sub_agents: Sequence[Agent]) -> None:
        """Called with the agents to which this one may hand over, or which are its steps."""

    def on_set_as_sub_agent(self, parent: Agent) -> None:
        """Called with the agent under which this one stands."""

    def on_disallow_transfer_to_parent(self) -> None:
        """Called behind `on_set_as_sub_agent`, if this agent must not hand back: because it was made so, or because it is a step of a workflow."""

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        """Why an invocation that was interrupted cannot go on with this definition; None if it can."""
        del node, invocation
        return None

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        """The tree of the agent that is called by the tool of that name."""
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
    ) -> Tool:
        """This agent as a tool of another: it is given a request, and its last message is the result."""
        from .handoffs.agent_tool import AgentTool  # noqa: PLC0415 -- built on agents

        return AgentTool(self, name=name, description=description, parameters=parameters, full_history=full_history, emit_events=emit_events)

    def with_sub_agents(self, sub_agents: Sequence[Agent]) -> Self:
        """A copy with those sub-agents in place of its own."""
        twin = self._twin()
        twin.sub_agents = _checked(self.name, sub_agents)
        twin.has_told = True
        tell_relations(twin)
        return twin

    def with_options(self, *, options: OptionsLike = None, **changes: Unpack[AgentOptions]) -> Self:
        """A copy in which these are fixed: what every agent is made with, and `options` of its runs, such as `ModelOptions(temperature=0)`.

        Options that a run is given itself go before those.
        """
        unknown = sorted(changes.keys() - AgentOptions.__optional_keys__)
        if unknown:
            msg = f"agent {self.name!r}: with_options({unknown[0]}=...) is unknown. Known are options, {', '.join(sorted(AgentOptions.__optional_keys__))}."
            raise UsageError(msg, agent=self.name)
        _check_options(self.name, changes.get("history"), changes.get("hooks"), changes.get("on_failure"))
        twin = self._twin()
        for name, value in changes.items():
            setattr(twin, name, value)
        twin.fixed_options = (*self.fixed_options, *as_options(options))
        return twin

    def _twin(self) -> Self:
        """A copy, to be changed before anything else sees it."""
        return copy.copy(self)


def set_sub_agents(agent: A, sub_agents: Sequence[Agent]) -> A:
    """A copy of the agent, with those sub-agents: it may hand over to them, and they to it."""
    if not isinstance(agent, Agent):
        msg = f"set_sub_agents({agent!r}, ...): give an Agent."
        raise UsageError(msg)
    return agent.with_sub_agents(sub_agents)


def _check_options(name: str, history: object, hooks: object, on_failure: object) -> None:
    check_history(history, f"agent {name!r}", name)
    if hooks is not None:
        check_hooks(hooks, AgentHooks, f"agent {name!r}")
    if on_failure is not None and not isinstance(on_failure, Restart):
        msg = f"agent {name!r}: on_failure={on_failure!r}: give Restart(...) of understudy.runtime, or leave it out: then a failure ends the agent."
        raise UsageError(msg, agent=name)


def _checked(name: str, sub_agents: Iterable[Agent]) -> tuple[Agent, ...]:
    if not sub_agents:
        return ()
    if isinstance(sub_agents, Agent):
        msg = f"agent {name!r}: sub_agents is one agent; give a list: sub_agents=[{sub_agents.name}]."
        raise UsageError(msg, agent=name)
    given = tuple(sub_agents)
    for one in given:
        if not isinstance(one, Agent):
            msg = f"agent {name!r}: the sub-agent {one!r} is no agent. Give instances of Agent, such as ChatModelAgent(...)."
            raise UsageError(msg, agent=name)
    return given
