"""What a task is asked for: messages to its actor, and how it ends what it was asked.

Owns: these values. They hold what a request said, and where its answer goes; they must never look at a store.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a.types import a2a_pb2 as pb

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Struct

    from ...run.run import Run
    from .owner import Owner
    from .subscription import Subscription

__all__ = ["Cancel", "Continue", "End", "Follow", "Say", "TurnOver"]


@dataclass(slots=True, eq=False)
class Say:
    """A message of the client's. Its answer is a task at rest, or a plain message; with a subscription, it is shown there."""

    message: pb.Message
    owner: Owner
    metadata: Struct | None = None
    answer: asyncio.Future[pb.Task | pb.Message] | None = None
    shows: Subscription | None = None
    at_once: bool = False  # whether the answer is the task as soon as it is there
    extensions: frozenset[str] = frozenset()
    config: pb.TaskPushNotificationConfig | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether its client wants to see the task before it is at rest."""
        return self.at_once or self.shows is not None or self.config is not None

    def refuse(self, error: Exception) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
        if self.shows is not None:
            self.shows.end(error)

    def settle(self, result: pb.Task | pb.Message) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(result)


@dataclass(slots=True, eq=False)
class Continue:
    """A task that another process has left at work goes on here; or one at rest is to be cancelled. `run` is what is left of its run."""

    run: Run | None = None


@dataclass(slots=True, eq=False)
class Follow:
    """A client looks on from now on."""

    shows: Subscription
    extensions: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Cancel:
    """The task is to end. Its answer is the task, which has."""

    answer: asyncio.Future[pb.Task]


@dataclass(slots=True, eq=False)
class TurnOver:
    """What was worked on is at rest, or was left to another process."""


@dataclass(slots=True)
class End:
    """How a turn has ended: the state into which the task comes; or a plain message, and no task. Without either, the task is left as it is."""

    state: int | None = None
    message: pb.Message | None = None
    reply: pb.Message | None = None
    checkpoint_id: str | None = None
    pending: dict[str, bool] = field(default_factory=dict)
    error: Exception | None = None
