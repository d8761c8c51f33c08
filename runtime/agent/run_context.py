"""What belongs to one run, and all of its agents, tools and hooks may see.

Owns: the ids of the run, its session values, its options, and what it has cost so far. It must never hold an actor.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any, ClassVar, Final, Protocol

from ..data.chat import Usage
from ..models import model_for_run
from ..telemetry.watch import RunWatch
from .history import HistoryPolicy, HistoryRewriter
from .hooks import RunHooks
from .options import Options
from .override import Override
from .run_messages import CancelMode
from .session_values import SessionValues

__all__ = ["RunContext", "RunLease"]

_NO_USAGE: Final = Usage()


class RunLease(Protocol):
    """The right of this process to work on a run that is kept."""

    @property
    def fence(self) -> int: ...
    def is_sure(self) -> bool: ...
    def is_fresh(self) -> bool: ...
    async def make_sure(self) -> None: ...


class RunContext:
    """One run, as hooks and callbacks see it."""

    __slots__ = (
        "context",
        "continues_elsewhere",
        "handoff_input_filter",
        "history",
        "hooks",
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
        skip_transfers: bool = False,  # noqa: FBT001, FBT002 -- for speed, as those behind it
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
        self.null_answer: str | None = None  # the message whose answer, in the form that was asked for, is None
        self.skip_transfers = skip_transfers
        """Whether agents are given what others have said without the transfers among them."""
        self.keeps = False
        """Whether the run may have to go on from where it stands some day: what is in it has to be such as can be kept."""
        self.lease: RunLease | None = None
        """Under which everything begins that the run begins; None if no other process can continue it."""
        self.stopping: CancelMode | None = None
        """Set, when the run is to end, at the next safe point of that kind: "immediate" if agents are to begin nothing more."""
        self.continues_elsewhere = False
        """Set when it ends here for another process to continue it: what its agents have begun outside of this process is not to be ended with it."""
        self.handoff_input_filter: Any = handoff_input_filter
        """What changes the input of agents that take over by a handoff which has no filter of its own."""
        self.history: HistoryPolicy | HistoryRewriter | None = history
        """What agents are given of what was said that do not choose for themselves."""
        self.override: Override | None = override
        """What a test has replaced."""
        self.context: Any = None
        """The user's own object, if one was given."""
        self.watch: RunWatch | None = None
        """What looks on at the run: spans, measures, lines about starts and ends. None: nothing does."""
        self.models: dict[int, Any] | None = None  # what `for_run()` of a model gave for this run, by the model's id

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # `RunContext[MyContext]`, for annotations: of what type `context` is

    def rename(self, run_id: str) -> None:
        """It is that run."""
        self.run_id = self.session.run_id = run_id

    def get(self, key: str, default: object = None) -> Any:
        """The session value of that name."""
        return self.session.get(key, default)

    def set(self, key: str, value: object) -> None:
        """Put a session value."""
        self.session[key] = value

    def delete(self, key: str) -> None:
        """Remove a session value, if it is there."""
        self.session.delete(key)

    def model_for_run(self, model: Any) -> Any:
        """The model as this run uses it: one that remembers something over a run, such as which of several answers, is made anew for each."""
        if getattr(model, "for_run", None) is None:
            return model
        found = None if self.models is None else self.models.get(id(model))
        if found is not None:
            return found[1]
        view = model_for_run(model)
        if view is not model:
            self.models = self.models or {}
            self.models[id(model)] = (model, view)  # with the model, so that no other object has its id meanwhile
        return view
