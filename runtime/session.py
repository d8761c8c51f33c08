"""A stored conversation: the API of a session.

Everything is in the store, so an object of this class may be created for each message, in any
number of processes. The object only keeps its runs that have not ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Unpack, get_args
from weakref import WeakSet

from .data.chat import Message
from .data.events import AgentEvent
from .data.output_type import OutputT_co
from .data.posts import Boundary, Post, Posted
from .durability.leases import Busy
from .durability.store_access import StoreAccess
from .durability.store_keys import session_key
from .errors import UsageError
from .run.background import Background, BackgroundTask, TaskInfo
from .run.run import Run, end_of
from .run.session_events import follow_session
from .sessions.inbox import Inbox
from .sessions.session_log import SessionLog
from .sessions.session_policy import SessionPolicy, SessionPolicyLike, as_policy
from .sessions.turn import Start, Turn
from .system.loop_bridge import LoopBridge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .run.run_options import TurnOptions
    from .run.run_progress import RunProgress
    from .system.system import ActorSystem

__all__ = ["Session", "check_busy", "check_inbox", "check_session_id", "check_start"]

_LONGEST_SETTLE: Final = 3600
_MOST: Final = 1_024
"""The most bytes in a session id, because stores limit their keys."""


def check_session_id(session_id: str) -> str:
    """Raise unless `session_id` is valid: any non-empty text that can be encoded."""
    if not isinstance(session_id, str) or not session_id:
        msg = (
            f"session_id must be a string that is not empty, got {session_id!r}. "
            "Pass the user's id, for example."
        )
        raise UsageError(msg)
    try:
        size = len(session_id.encode())
    except UnicodeEncodeError:
        msg = (
            f"session_id must be valid Unicode, got {session_id!r}, which contains a lone "
            "surrogate and cannot be encoded. Remove it."
        )
        raise UsageError(msg) from None
    if size > _MOST:
        msg = (
            f"session_id must have at most {_MOST} bytes, got {size} bytes: "
            f"{session_id[:40]!r}... Pass a hash of it."
        )
        raise UsageError(msg)
    return session_id


def check_busy(busy: Busy) -> None:
    if busy not in get_args(Busy):
        msg = f"session(): busy must be 'queue', 'reject' or 'preempt', got {busy!r}."
        raise UsageError(msg)


def check_start(start: Start) -> None:
    if start not in get_args(Start):
        msg = f"session(): start must be 'root' or 'last', got {start!r}."
        raise UsageError(msg)


def check_inbox(
    choose: object, settle: object, while_interrupted: object, max_pending: object
) -> None:
    if choose is not None and not callable(choose):
        msg = f"session(): inbox must be a function of the pending posts, got {choose!r:.80}."
        raise UsageError(msg)
    if (
        isinstance(settle, bool)
        or not isinstance(settle, int | float)
        or not 0 <= settle <= _LONGEST_SETTLE
    ):
        msg = (
            f"session(): settle must be a number of seconds from 0 to {_LONGEST_SETTLE}, got "
            f"{settle!r:.80}."
        )
        raise UsageError(msg)
    if while_interrupted not in ("wait", "turn"):
        msg = f"session(): while_interrupted must be 'wait' or 'turn', got {while_interrupted!r}."
        raise UsageError(msg)
    if not isinstance(max_pending, int) or isinstance(max_pending, bool) or max_pending < 1:
        msg = f"session(): max_pending must be 1 or more, got {max_pending!r}."
        raise UsageError(msg)


class BeginsRun(Protocol[OutputT_co]):
    """The function that starts the runs of a session."""

    def __call__(
        self,
        messages: str | Message | Sequence[Message],
        turn: Turn,
        /,
        **options: Unpack[TurnOptions],
    ) -> Run[OutputT_co]: ...


class Session(Generic[OutputT_co]):
    """A conversation. It processes one message at a time, across all callers and processes.

        session = runner.session("user-42")
        result = await session.query("And tomorrow?")

    Between two messages everything is in the store; memory holds only a cache.
    """

    __slots__ = (
        "_access",
        "_attach",
        "_background",
        "_begun",
        "_busy",
        "_choose_system",
        "_closed",
        "_inbox",
        "_policy",
        "_run",
        "_sleeping",
        "_start",
        "id",
        "settle",
    )

    def __init__(
        self,
        store_access: StoreAccess,
        session_id: str,
        busy: Busy,
        policy: SessionPolicyLike,
        run: BeginsRun[OutputT_co],
        choose_system: Callable[[], ActorSystem],
        start: Start,
        inbox: Inbox,
        settle: float,
        background: Background,
        attach: Callable[[str, int], Run[OutputT_co]],
    ) -> None:
        self._attach = attach
        self._background = background
        self.id = session_id
        self._inbox = inbox
        self.settle = settle
        """Seconds without another post after which posts start a turn."""
        self._access = store_access
        self._busy = busy
        self._policy: SessionPolicy = as_policy(policy)
        self._run = run
        self._start: Start = start
        self._choose_system = choose_system
        # Runs that have not ended, by their records, because a run without a consumer must not wait
        # for one.
        self._begun: dict[RunProgress, LoopBridge] = {}
        # Runs that start at their first use. Created with the first, because a session without a
        # turn in progress must cost little.
        self._sleeping: WeakSet[Run] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"

    def query(self, text: str, **run_options: Unpack[TurnOptions]) -> Run[OutputT_co]:
        """Send one user message. The options are those of `Runner.run`, without `session_id`."""
        if not isinstance(text, str):
            msg = f"query(): text must be a string, got {text!r}. Pass messages to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **run_options)

    def run(
        self, messages: str | Message | Sequence[Message], **run_options: Unpack[TurnOptions]
    ) -> Run[OutputT_co]:
        """Send messages.

        The run sees the earlier messages of the session, and its own messages become part of it.
        """
        turn = Turn(self._access, self.id, self._busy, self._policy, self._start, self._inbox)
        return self._send(messages, turn, **run_options)

    def hear(self, **run_options: Unpack[TurnOptions]) -> Run[OutputT_co]:
        """Start a turn with the posts that wait, if the session is not busy.

        It fails with `SessionBusy`, or with `NothingToHear`. `Runner.attending()` calls this.
        """
        turn = Turn(
            self._access,
            self.id,
            "reject",
            self._policy,
            self._start,
            self._inbox,
            starts_with_posts=True,
        )
        return self._send((), turn, **run_options)

    def _send(
        self,
        messages: str | Message | Sequence[Message],
        turn: Turn,
        **run_options: Unpack[TurnOptions],
    ) -> Run[OutputT_co]:
        if self._closed:
            msg = (
                f"this Session object of {self.id!r} is closed. Open it again: "
                f"runner.session({self.id!r})."
            )
            raise UsageError(msg)
        run = self._run(messages, turn, **run_options)
        progress, bridge = end_of(run)
        if bridge is None:
            if self._sleeping is None:
                self._sleeping = WeakSet()
            self._sleeping.add(run)
        else:
            self._begun[progress] = bridge
        run.when_finished(lambda: self._begun.pop(progress, None))
        return run

    async def post(
        self,
        message: str | Message,
        *,
        id: str | None = None,  # noqa: A002 -- the natural name
        when: Boundary = "safe_point",
        sender: str | None = None,
        not_before: timedelta | datetime | None = None,
    ) -> Posted:
        """Store a message for the session, from any process. Returns when it is stored.

        By default, a running turn hears it with its next request to the model; otherwise it starts
        a turn, in a process that is `attending`. `when="turn_end"` leaves it to the next turn;
        `when="preempt"` ends the running turn at its next safe point. The same `id` with the same
        content is the same post. Posts of one `sender` are heard in the order in which they were
        stored. A post with `not_before` is a reminder: its number is that of the moment at which
        its time has come.
        """
        return await self._inbox.post(message, id, when, sender, not_before)

    async def inbox(self) -> list[Post]:
        """Return the posts that no turn has heard, in order."""
        return await self._inbox.pending()

    async def withdraw(self, id: str) -> bool:  # noqa: A002 -- the natural name
        """Remove a post. Returns False if a turn has heard it, or is about to."""
        return await self._inbox.withdraw(id)

    def follow(self, after: tuple[str, int] | None = None) -> AsyncIterator[AgentEvent]:
        """Iterate over the events of all turns of the session, as they happen in any process.

        `after` is the `(run_id, seq)` of the last event that you have; without it, the iteration
        starts with the first turn that the store has. It does not end by itself. Turns are found
        once the store lists them: from their start with `durability="step"` or a `keep`.
        """
        return follow_session(self._access, self.id, self._attach, after)

    async def tasks(self) -> list[TaskInfo]:
        """Return the background tasks that turns of the session have started, newest first."""
        return await self._background.tasks(self.id)

    def task(self, id: str) -> BackgroundTask:  # noqa: A002 -- the natural name
        """Return a handle of a background task: `send(text)`, `stop()`, `result()`, `info()`."""
        return self._background.task(id)

    async def history(self) -> tuple[Message, ...]:
        """Return all messages, oldest first: inputs, replies, tool calls and their results."""
        return tuple((await self._log()).messages)

    async def values(self) -> dict[str, Any]:
        """Return the session values as of the last turn."""
        return (await self._log()).values

    async def _log(self) -> SessionLog:
        return SessionLog(self.id, await self._access.read(session_key(self.id)))

    async def clear(self) -> None:
        """Delete all messages and values, after the turns sent earlier, and stop its tasks."""
        if self._background.has_agents:
            await self._background.stop_all(self.id)
        system = self._choose_system()
        turn = Turn(self._access, self.id, "queue", None, inbox=self._inbox)
        await LoopBridge(system, f"session {self.id!r}").call(lambda: turn.forget_all(system))

    async def close(self) -> None:
        """Stop sending from this object, and wait until its runs have ended.

        The session stays in the store.
        """
        self._closed = True
        for run in tuple(self._sleeping or ()):
            progress, bridge = end_of(run)
            if bridge is not None:
                self._begun[progress] = bridge
        while self._begun:
            begun = tuple(self._begun.items())
            await asyncio.gather(
                *(
                    bridge.call(progress.wait_ended)
                    for progress, bridge in begun
                    if not bridge.system.loop.is_closed()
                )
            )
            for progress, bridge in begun:
                if progress.has_ended or bridge.system.loop.is_closed():
                    self._begun.pop(progress, None)
