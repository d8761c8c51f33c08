"""A conversation that lasts: the front door of a session.

Owns: what users do with a session. Everything of it lies in the store; an object of this class may be made anew for each message, and in any number
of processes. It must never keep anything but the runs that it has started and that have not ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack, get_args
from weakref import WeakSet

from .data.chat import Message
from .durability.leases import Busy
from .durability.store_access import StoreAccess
from .durability.store_keys import session_key
from .errors import UsageError
from .run.run import Run, end_of
from .sessions.session_log import SessionLog
from .sessions.session_policy import SessionPolicy, SessionPolicyLike, as_policy
from .sessions.turn import Start, Turn
from .system.loop_door import LoopDoor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .run.run_options import TurnOptions
    from .run.run_record import RunRecord
    from .system.system import ActorSystem

__all__ = ["Session", "check_busy", "check_session_id", "check_start"]

_MOST: Final = 1_024
"""Bytes that the id of a session may have: stores bound their keys."""


def check_session_id(session_id: str) -> str:
    """Raise, if it cannot be the id of a session. Whatever can be written down can."""
    if not isinstance(session_id, str) or not session_id:
        msg = f"session({session_id!r}): give a text that is not empty, for example the user's id."
        raise UsageError(msg)
    try:
        size = len(session_id.encode())
    except UnicodeEncodeError:
        msg = f"session({session_id!r}): the id has half a character in it (a lone surrogate): it cannot be written down."
        raise UsageError(msg) from None
    if size > _MOST:
        msg = f"session({session_id[:40]!r}...): the id has {size} bytes, and {_MOST} at most can be kept. Give a hash of it."
        raise UsageError(msg)
    return session_id


def check_busy(busy: Busy) -> None:
    if busy not in get_args(Busy):
        msg = f"session(busy={busy!r}): give 'queue', 'reject' or 'preempt'."
        raise UsageError(msg)


def check_start(start: Start) -> None:
    if start not in get_args(Start):
        msg = f"session(start={start!r}): give 'root' or 'last'."
        raise UsageError(msg)


class BeginsRun(Protocol):
    """What a session starts its runs by."""

    def __call__(self, messages: str | Message | Sequence[Message], turn: Turn, /, **options: Unpack[TurnOptions]) -> Run: ...


class Session:
    """One conversation. One message at a time is worked on, from whichever caller and process.

        session = runner.session("user-42")
        result = await session.query("And tomorrow?")

    Between two messages all of it is in the store; in memory is at most what need not be read again.
    """

    __slots__ = ("_access", "_begun", "_busy", "_choose_system", "_closed", "_policy", "_run", "_sleeping", "_start", "id")

    def __init__(
        self,
        store_access: StoreAccess,
        session_id: str,
        busy: Busy,
        policy: SessionPolicyLike,
        run: BeginsRun,
        choose_system: Callable[[], ActorSystem],
        start: Start = "root",
    ) -> None:
        self.id = session_id
        self._access = store_access
        self._busy = busy
        self._policy: SessionPolicy = as_policy(policy)
        self._run = run
        self._start: Start = start
        self._choose_system = choose_system
        # Runs that have not ended; by their records, because a run without a consumer must not wait for one.
        self._begun: dict[RunRecord, LoopDoor] = {}
        self._sleeping: WeakSet[Run] = WeakSet()  # that begin at their first use
        self._closed = False

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"

    def query(self, text: str, **run_options: Unpack[TurnOptions]) -> Run:
        """Send one user message. The options are those of `Runner.run`, without `session_id`."""
        if not isinstance(text, str):
            msg = f"query({text!r}): give a text; messages go to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **run_options)

    def run(self, messages: str | Message | Sequence[Message], **run_options: Unpack[TurnOptions]) -> Run:
        """Send messages. The run is given what was said before, and what it says becomes part of the session."""
        if self._closed:
            msg = f"session {self.id!r} is closed here. Open it again: runner.session({self.id!r})."
            raise UsageError(msg)
        run = self._run(messages, Turn(self._access, self.id, self._busy, self._policy, self._start), **run_options)
        record, door = end_of(run)
        if door is None:
            self._sleeping.add(run)
        else:
            self._begun[record] = door
        run.when_finished(lambda: self._begun.pop(record, None))
        return run

    async def history(self) -> tuple[Message, ...]:
        """All that was said, oldest first: the messages that were sent, the replies, the tool calls and their results."""
        return tuple((await self._log()).messages)

    async def values(self) -> dict[str, Any]:
        """The session values, as the last turn has left them."""
        return (await self._log()).values

    async def _log(self) -> SessionLog:
        return SessionLog(self.id, await self._access.read(session_key(self.id)))

    async def clear(self) -> None:
        """Forget all that was said, and the values. Waits until those are done whose turn it is before."""
        system = self._choose_system()
        turn = Turn(self._access, self.id, "queue", None)
        await LoopDoor(system, f"session {self.id!r}").call(lambda: turn.forget_all(system))

    async def close(self) -> None:
        """Send nothing more from here, and wait until what was sent from here is done. The session stays in the store."""
        self._closed = True
        for run in tuple(self._sleeping):
            record, door = end_of(run)
            if door is not None:
                self._begun[record] = door
        while self._begun:
            begun = tuple(self._begun.items())
            await asyncio.gather(*(door.call(record.wait_ended) for record, door in begun if not door.system.loop.is_closed()))
            for record, door in begun:
                if record.has_ended or door.system.loop.is_closed():
                    self._begun.pop(record, None)
