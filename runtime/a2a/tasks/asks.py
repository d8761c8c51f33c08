"""The messages to a task's actor, and the result of a turn.

They contain the content of a request, and the destination of its answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a.types import a2a_pb2 as pb

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Struct

    from ...run.run import Run
    from .keys import Owner
    from .subscription import Subscription

__all__ = ["Cancel", "Continue", "End", "Follow", "Say", "TurnOver"]


@dataclass(slots=True, eq=False)
class Say:
    """A client's message.

    Its answer is a task that has ended or waits, or a plain message; a subscription receives it,
    too.
    """

    message: pb.Message
    owner: Owner
    metadata: Struct | None = None
    answer: asyncio.Future[pb.Task | pb.Message] | None = None
    shows: Subscription | None = None
    at_once: bool = False  # whether the answer is the task as soon as it exists
    extensions: frozenset[str] = frozenset()
    config: pb.TaskPushNotificationConfig | None = None
    is_counted: bool = False  # whether it counts among the accepted messages of its owner
    question: int | None = None  # the task's question when the message arrived

    @property
    def is_awaited(self) -> bool:
        """True if its client wants to see the task before it ends or waits."""
        return self.at_once or self.shows is not None or self.config is not None

    def refuse(self, error: Exception) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
        if self.shows is not None:
            self.shows.end(error)

    def finish(self, result: pb.Task | pb.Message) -> None:
        """Finish with this result: the answer, and the whole stream."""
        if self.shows is not None:
            self.shows.put(result)
            self.shows.end()
        self.settle(result)

    def settle(self, result: pb.Task | pb.Message) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(result)


@dataclass(slots=True, eq=False)
class Continue:
    """Continue a task that another process has left in progress; or cancel an inactive one.

    `run` is the rest of its run.
    """

    run: Run | None = None


@dataclass(slots=True, eq=False)
class Follow:
    """A client follows the task from now on."""

    shows: Subscription
    extensions: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Cancel:
    """Cancel the task. The answer is the task, which has ended."""

    answer: asyncio.Future[pb.Task]


@dataclass(slots=True, eq=False)
class TurnOver:
    """The turn is over, or was left to another process."""


@dataclass(slots=True)
class End:
    """The result of a turn: the next state of the task; or a plain message, and no task.

    Without either, the task is unchanged.
    """

    state: int | None = None
    message: pb.Message | None = None
    reply: pb.Message | None = None
    checkpoint_id: str | None = None
    pending: dict[str, bool] = field(default_factory=dict)
    error: Exception | None = None
