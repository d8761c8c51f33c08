"""The facts of one run that all of its agents, tools and hooks may see.

They include its ids, session values, options and usage so far. It never holds an actor.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from ..data.chat import Message, Usage
from ..models import model_for_run
from ..telemetry.run_telemetry import RunTelemetry
from .history import HistoryPolicy, HistoryRewriter
from .hooks import RunHooks
from .options import Options
from .override import Override
from .run_messages import CancelMode
from .session_values import SessionValues

__all__ = ["RunContext", "RunInbox", "RunLease", "RunTasks"]

if TYPE_CHECKING:
    from asyncio import Lock

    from ..data.posts import Post, Posted
    from ..stores.writes import Write

_NO_USAGE: Final = Usage()
_NO_IDS: Final[frozenset[str]] = frozenset()


class RunLease(Protocol):
    """This process's claim on a stored run."""

    @property
    def fence(self) -> int: ...
    def is_sure(self) -> bool: ...
    def is_fresh(self) -> bool: ...
    async def make_sure(self) -> None: ...


class RunTasks(Protocol):
    """The background tasks of the run's Runner."""

    async def start(
        self,
        agent: Any,
        text: str,
        call_key: str,
        session_id: str,
        run_id: str,
        seconds: float = 0.0,
        /,
    ) -> str: ...
    async def wait(self, task_id: str, seconds: float, /) -> Any: ...
    async def result_in_time(self, task_id: str, seconds: float, /) -> Any: ...
    async def info(self, task_id: str, /) -> Any: ...
    async def require(self, task_id: str, session_id: str, /) -> None: ...
    def task(self, task_id: str, /) -> Any: ...


class RunInbox(Protocol):
    """The posts to a run or its session."""

    @property
    def hearing(self) -> Lock: ...
    async def at_safe_point(self) -> list[Post] | None: ...
    def posted(self, post: Post) -> Posted: ...
    def hear(self, posted: Posted) -> None: ...
    def writes(self) -> list[Write]: ...
    def written(self, writes: Sequence[Write]) -> None: ...


class RunContext:
    """One run, as hooks and callbacks see it."""

    __slots__ = (
        "background",
        "checkpoint_id",
        "context",
        "continues_elsewhere",
        "counted",
        "handoff_input_filter",
        "history",
        "hooks",
        "inbox",
        "keeps",
        "lease",
        "models",
        "null_answer",
        "options",
        "override",
        "run_id",
        "session",
        "session_id",
        "skip_transfers",
        "stopping",
        "usage",
        "watch",
    )

    def __init__(
        self,
        run_id: str,
        session_id: str | None,
        session: SessionValues,
        options: tuple[Options, ...],
        hooks: tuple[RunHooks, ...],
        *,
        skip_transfers: bool = False,
        handoff_input_filter: Any = None,
        history: HistoryPolicy | HistoryRewriter | None = None,
        override: Override | None = None,
    ) -> None:
        self.run_id = session.run_id = run_id
        self.session_id = session.session_id = session_id
        self.session = session
        self.options = options
        self.hooks = hooks
        self.usage = _NO_USAGE
        # Replies that are counted in `usage` although they are not recorded yet.
        self.counted: frozenset[str] = _NO_IDS
        self.null_answer: str | None = None  # the message whose structured answer is None
        self.skip_transfers = skip_transfers
        """True if agents see other agents' messages without transfers."""
        self.keeps = False
        """True if the run may later continue from here, so all its data must be storable."""
        self.checkpoint_id: str | None = None
        """The id of its checkpoint, if it is stored."""
        self.background: RunTasks | None = None
        """Starts background tasks; None without a Runner that has a store."""
        self.inbox: RunInbox | None = None
        """The posts to the run or its session; None if it has no inbox."""
        self.lease: RunLease | None = None
        """The claim required to start anything; None if no other process can continue the run."""
        self.stopping: CancelMode | None = None
        """Set when the run will end at the next safe point of that kind.

        With "immediate", agents start nothing more.
        """
        self.continues_elsewhere = False
        """Set when the run ends here so that another process can continue it.

        External work of its agents must then keep running.
        """
        self.handoff_input_filter: Any = handoff_input_filter
        """The input filter for handoffs that have none."""
        self.history: HistoryPolicy | HistoryRewriter | None = history
        """The history policy for agents that have none."""
        self.override: Override | None = override
        """The replacements made by a test."""
        self.context: Any = None
        """The user's own object, if one was passed."""
        self.watch: RunTelemetry | None = None
        """The observer of the run: spans, metrics, log records about starts and ends.

        None: nobody observes it.
        """
        # Results of the models' `for_run()` for this run, by model id.
        self.models: dict[int, Any] | None = None

    # `RunContext[MyContext]`, an annotation for the type of `context`
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def count(self, reply: Message) -> None:
        """Add a reply's usage before the reply is recorded, as it may never be recorded."""
        if reply.usage is not None:
            self.usage += reply.usage
            self.counted |= {reply.id}

    def count_recorded(self, reply: Message) -> None:
        """Add a reply's usage when the reply is recorded."""
        if reply.id in self.counted:
            self.counted -= {reply.id}
        elif reply.usage is not None:
            self.usage += reply.usage

    def rename(self, run_id: str, checkpoint_id: str | None = None) -> None:
        """Take over another run's id and checkpoint id."""
        self.checkpoint_id = checkpoint_id
        self.run_id = self.session.run_id = run_id

    def get(self, key: str, default: object = None) -> Any:
        """Return a session value."""
        return self.session.get(key, default)

    def set(self, key: str, value: object) -> None:
        """Set a session value."""
        self.session[key] = value

    def delete(self, key: str) -> None:
        """Remove a session value, if present."""
        self.session.delete(key)

    def model_for_run(self, model: Any) -> Any:
        """Return the model for this run.

        A model with state per run, such as which of several replies comes next, is created anew for
        each run.
        """
        if getattr(model, "for_run", None) is None:
            return model
        found = None if self.models is None else self.models.get(id(model))
        if found is not None:
            return found[1]
        view = model_for_run(model)
        if view is not model:
            self.models = self.models or {}
            self.models[id(model)] = (
                model,
                view,
            )  # with the model, so that its id stays unique
        return view
