"""What an agent's `run` is given beside its input.

Owns: `AgentContext`, a user's view of one invocation, and `ResumeInfo`. It must never show what only the agents of this package use: that is `AgentDoor`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from ..data.agent_input import AgentInput
from ..data.events import AgentEvent, Interrupted
from ..data.outcome import Outcome
from ..data.run_path import names_of
from .door import AgentDoor
from .options import agent_options
from .run_context import RunContext
from .session_values import SessionValues
from .tree import Definition

__all__ = ["AgentContext", "ResumeInfo", "door_of"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResumeInfo:
    """What an agent that was interrupted learns when it is resumed."""

    was_interrupted: bool = True
    is_target: bool = False
    data: Any = None
    state: Any = None
    streaming: bool = False
    info: Any = None
    """What it has asked, if the interrupt was its own."""


class AgentContext:
    """One invocation of an agent, from the agent's side."""

    __slots__ = ("_door", "resume")

    def __init__(self, door: AgentDoor) -> None:
        self._door = door
        self.resume: ResumeInfo | None = None
        """Set when the agent continues after an interrupt, its own or that of an agent that it has cast."""

    def __repr__(self) -> str:
        return f"<AgentContext of {self.agent_name!r} in run {self.run_id}>"

    # --- what it belongs to ---

    @property
    def session(self) -> SessionValues:
        """The values that all agents of the run share."""
        return self._door.run.session

    @property
    def run(self) -> RunContext:
        """The run, as hooks and callbacks see it: `run.context` is the object that was given to `Runner.run(context=...)`."""
        return self._door.run

    @property
    def run_id(self) -> str:
        return self._door.run.run_id

    @property
    def session_id(self) -> str | None:
        return self._door.run.session_id

    @property
    def invocation_id(self) -> str:
        return self._door.invocation.id

    @property
    def run_path(self) -> tuple[str, ...]:
        """The names of the agents that led here, this agent's last."""
        return names_of(self._door.invocation.run_path)

    @property
    def agent_name(self) -> str:
        return self._door.agent_name

    @property
    def fence(self) -> int:
        """A number that grows each time a process takes the run: a service that has seen a larger one refuses this one's requests. 0: no other process can."""
        lease = self._door.run.lease
        return 0 if lease is None else lease.fence

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that were given to this run for this agent."""
        return agent_options(self._door.options, self._door.agent_name)

    @property
    def state(self) -> dict[str, Any]:
        """This invocation's own state. What msgpack can hold: it is in the checkpoint."""
        return self._door.state

    # --- what it can do ---

    def interrupt(self, info: object = None, *, state: object = None) -> AgentEvent:
        """The event to yield, after which the generator returns: the run waits here for an answer from outside."""
        return AgentEvent.of(action=Interrupted((self._door.note_interrupt(info, state),)))

    async def cast(self, agent: Definition, input: AgentInput | None = None) -> Outcome:  # noqa: A002 -- the contract's
        """Let another agent play, as a child of this one. Its events join the run's. Returns how it ended.

        Without `input` its history policy makes its input. If this agent ends without an event after the cast, it ends as the child did; of several children
        that were cast at once, as the weightiest: one that was interrupted before one that has failed.
        When the run continues after an interrupt or a crash, a child that had ended is not run again, as long as `state` is the same as when it was cast.
        """
        return await self._door.cast(agent, input)

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Do something once in this invocation: when it is started again, the result of the first time is returned."""
        return await self._door.step(name, make)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that blocks in one of the system's worker threads."""
        return await self._door.run_blocking(function, *args, **kwargs)


def door_of(context: AgentContext) -> AgentDoor:
    """The door behind a context. For the agents of this package only."""
    return context._door
