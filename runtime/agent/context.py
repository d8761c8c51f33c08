"""The context that an agent's `run` receives with its input.

`AgentContext` is a user's view of one invocation. `AgentRuntime` has the operations for this
library's own agents only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from ..data.agent_input import AgentInput
from ..data.events import AgentEvent, Interrupted
from ..data.interrupt import Due
from ..data.outcome import Outcome
from ..data.run_path import names_of
from .agent_runtime import AgentRuntime
from .options import agent_options
from .run_context import RunContext
from .session_values import SessionValues
from .tree import Definition

__all__ = ["AgentContext", "AgentSleeps", "ResumeInfo", "runtime_of"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResumeInfo:
    """The information that an interrupted agent receives when it resumes."""

    was_interrupted: bool = True
    is_target: bool = False
    data: Any = None
    state: Any = None
    streaming: bool = False
    info: Any = None
    """The info that was passed to the interrupt, if it was this agent's own."""


class AgentSleeps(BaseException):
    """A custom agent pauses its run. Its actor shows the interrupt."""

    def __init__(self, info: str, due: Due) -> None:
        super().__init__(info)
        self.info = info
        self.due = due


class AgentContext:
    """One invocation of an agent, from the agent's side."""

    __slots__ = ("_runtime", "_sleeps", "_tasks", "resume")

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime
        self._sleeps = 0
        self._tasks = 0
        self.resume: ResumeInfo | None = None
        """Set when the agent resumes after an interrupt, its own or one of an agent that it called.
        """

    def __repr__(self) -> str:
        return f"<AgentContext of {self.agent_name!r} in run {self.run_id}>"

    # --- its run ---

    @property
    def session(self) -> SessionValues:
        """The values that all agents of the run share."""
        return self._runtime.run.session

    @property
    def run(self) -> RunContext:
        """The run, as hooks and callbacks see it.

        `run.context` is the object passed to `Runner.run(context=...)`.
        """
        return self._runtime.run

    @property
    def run_id(self) -> str:
        return self._runtime.run.run_id

    @property
    def session_id(self) -> str | None:
        return self._runtime.run.session_id

    @property
    def invocation_id(self) -> str:
        return self._runtime.invocation.id

    @property
    def run_path(self) -> tuple[str, ...]:
        """The names of the agents that led here; this agent's name is last."""
        return names_of(self._runtime.invocation.run_path)

    @property
    def agent_name(self) -> str:
        return self._runtime.agent_name

    @property
    def fence(self) -> int:
        """A fencing token that grows each time a process claims the run.

        A service that has seen a larger token must refuse requests with a smaller one. 0: no other
        process can claim the run.
        """
        lease = self._runtime.run.lease
        return 0 if lease is None else lease.fence

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that this run passed to this agent."""
        return agent_options(self._runtime.options, self._runtime.agent_name)

    @property
    def state(self) -> dict[str, Any]:
        """This invocation's state.

        Values must be msgpack-encodable, as it is part of the checkpoint.
        """
        return self._runtime.state

    # --- operations ---

    def interrupt(
        self,
        info: object = None,
        *,
        state: object = None,
        deadline: timedelta | datetime | None = None,
        default: object = None,
    ) -> AgentEvent:
        """Return the event that pauses the run here until it is answered.

        Yield it, then return from the generator. If nobody answers until `deadline`, a process that
        is `attending` continues the run with `default`.
        """
        due = Due.of("interrupt()", deadline, default)
        return AgentEvent.of(
            action=Interrupted((self._runtime.note_interrupt(info, state, due=due),))
        )

    async def sleep(self, duration: timedelta) -> None:
        """Pause the run for that long. It uses no memory, and outlives its process.

        A process that is `attending` resumes it; then `run` is called again, and this method
        returns at once. An answer to the interrupt wakes it earlier.
        """
        self._sleeps += 1
        until = await self._runtime.sleeps_until(f"sleep {self._sleeps}", duration)
        info = f"sleeps until {until.isoformat()}"
        woken = self.resume is not None and self.resume.is_target and self.resume.info == info
        if datetime.now(UTC) < until and not woken:
            raise AgentSleeps(info, Due(until, None))

    async def start(self, agent: Definition, text: str) -> str:
        """Start an agent in the background, once at this place. Returns the id of the task.

        The agent works as a run of its own, whose end is posted to the session of this run; see
        `Session.task`.
        """
        self._tasks += 1
        key = f"{self.run_id} {self.invocation_id} {self._tasks}"
        tasks, session_id = self._runtime.tasks_for(agent)
        return await tasks.start(agent, text, key, session_id, self.run_id)

    async def cast(self, agent: Definition, input: AgentInput | None = None) -> Outcome:  # noqa: A002 -- the contract's
        """Run another agent as a child of this one, and return its outcome.

        The child's events join the run's. Without `input` the child's history policy builds its
        input. If this agent ends without another event, it ends as the child did. After several
        concurrent children, the most severe outcome counts: an interrupt before a failure. When the
        run resumes after an interrupt or a crash, a child that had ended does not run again, as
        long as `state` is the same as when it was called.
        """
        return await self._runtime.cast(agent, input)

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Run `make` once in this invocation; after a restart, return its first result."""
        return await self._runtime.step(name, make)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function in one of the system's worker threads."""
        return await self._runtime.run_blocking(function, *args, **kwargs)


def runtime_of(context: AgentContext) -> AgentRuntime:
    """Return the interface behind a context. Only for the agents of this library."""
    return context._runtime
