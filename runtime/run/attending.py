"""A process that attends: it starts turns for posts to idle sessions.

An actor looks for posts when this process stores one, when the store reports that another process
did, when a turn of this process ends, and periodically. So a lost report costs time, and no post.
The claim of the session's turn decides which of several attending processes starts it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from ..actor.actor import Actor
from ..backoff import jittered
from ..durability.store_keys import arrivals_key, inbox_key, inbox_prefix, session_of
from ..durability.timers import due_timers
from ..errors import ActorDeadError, ResumeError, SessionBusy, UsageError
from ..log import loggers
from ..sessions.inbox import listen_for_posts
from ..sessions.turn import NothingToHear

if TYPE_CHECKING:
    from ..actor.future import ActorFuture
    from ..actor.host import Host
    from ..actor.ref import ActorRef
    from ..clock import Timer
    from ..durability.store_access import StoreAccess
    from ..durability.timers import Timer as StoredTimer
    from ..stores.run_entries import RunEntry
    from .recovery_loop import RecoveryLoop
    from .run import Run

__all__ = ["Attending", "AttendingSettings", "check_attending"]

_JITTER: Final = 0.2
_LONGEST_WAIT: Final = 3600.0


class HearingSession(Protocol):
    """A session as this module uses it."""

    settle: float

    def hear(self, *, detached: bool) -> Run[Any]: ...


class AttendingSettings(NamedTuple):
    """What an attending process takes."""

    access: StoreAccess
    agent_name: str
    session: Callable[[str], HearingSession]
    """Opens the session of a post, with its options."""
    act: Callable[[StoredTimer], Awaitable[bool | Run[Any]]]
    """Has the effect of a timer begin. Returns True if the timer is removed from the store, or the
    run that removes it when its turn has come."""
    concurrency: int
    seconds: float
    """Seconds between two looks at the store, if it reports nothing."""


class Attending:
    """The handle that `Runner.attending` returns."""

    def __init__(
        self,
        choose_system: Callable[[], Host],
        settings: AttendingSettings,
        recover: Callable[[], RecoveryLoop] | None,
        workers: Sequence[Attending] = (),
    ) -> None:
        self._workers = workers  # for the agents that work in the background
        self._choose_system = choose_system
        self._settings = settings
        self._recover = recover
        self._ref: ActorRef[_Attendant] | None = None
        self._recovering: RecoveryLoop | None = None

    def start(self) -> Self:
        """Start attending. `async with` and `with` call this."""
        if self._ref is None:
            self._ref = self._choose_system().spawn(_Attendant, self._settings)
            self._recovering = None if self._recover is None else self._recover()
            for worker in self._workers:
                worker.start()
        return self

    def stop(self) -> ActorFuture[bool] | None:
        """Start no more turns. The turns that were started continue.

        Await the returned future to wait until the current look has ended.
        """
        for worker in self._workers:
            worker.stop()
        recovering, self._recovering = self._recovering, None
        if recovering is not None:
            recovering.stop()
        ref, self._ref = self._ref, None
        return None if ref is None else ref.stop(block=False)

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stopped = self.stop()
        if stopped is not None:
            await stopped

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stopped = self.stop()
        if stopped is not None:
            stopped.get()


class _Arrived(NamedTuple):
    """To the attendant: look at the inbox of a session."""

    session_id: str


class _Ended(NamedTuple):
    """To the attendant: a turn that it started has ended."""

    session_id: str


class _Settled(NamedTuple):
    """To the attendant: no post has arrived in a session for as long as it wants."""

    session_id: str


class _Acted(NamedTuple):
    """To the attendant: the run that a timer has resumed has ended."""

    timer: StoredTimer
    run: Run[Any]


class _LookAtAll(NamedTuple):
    """To the attendant: look at all inboxes."""

    is_periodic: bool


class _Attendant(Actor):
    """The actor that looks, and starts turns."""

    def __init__(self, settings: AttendingSettings) -> None:
        super().__init__()
        self._settings = settings
        self._runs: dict[str, Run[Any]] = {}  # turns that were started here, by session
        self._waiting: dict[str, None] = {}  # sessions that wait for one of these to end
        self._settling: dict[str, tuple[str, Timer]] = {}  # with the last post seen
        self._timer: Timer | None = None
        # Rows of timers that resumed runs will remove, and of those that cannot be read.
        self._left: set[RunEntry] = set()
        self._ends: list[Callable[[], object]] = []
        self._is_asked = False  # whether a look at all inboxes is in the mailbox

    def on_start(self) -> None:
        access, agent_name = self._settings.access, self._settings.agent_name
        self._ends.append(listen_for_posts(access, self._on_post))
        watch = access.watch([arrivals_key(agent_name)], self._on_change)
        if watch is not None:
            self._ends.append(watch.close)
        self._tell(_LookAtAll(is_periodic=True))

    async def on_receive(self, message: object) -> None:
        try:
            await self._handle(message)
        except Exception as error:  # noqa: BLE001 -- the store may answer next time, and the posts stay in it
            loggers.run.warning(
                "Posts could not be looked for, and will be in about %g s: %s",
                self._settings.seconds,
                error,
            )
        if isinstance(message, _LookAtAll) and message.is_periodic:
            self._timer = self._later(jittered(self._settings.seconds, _JITTER), message)

    async def _handle(self, message: object) -> None:
        match message:
            case _LookAtAll():
                await self._look_at_all()
            case _Arrived(session_id):
                await self._look(session_id)
            case _Settled(session_id):
                self._settling.pop(session_id, None)
                self._start(session_id)
            case _Ended(session_id):
                await self._ended(session_id)
            case _Acted(timer, run):
                await self._acted(timer, run)

    def on_stop(self) -> None:
        for end in self._ends:
            end()
        for timer in (self._timer, *(timer for _, timer in self._settling.values())):
            if timer is not None:
                timer.cancel()

    # --- reports, from any thread ---

    def _on_post(self, agent_name: str, session_id: str) -> None:
        if agent_name == self._settings.agent_name:
            self._tell(_Arrived(session_id))

    def _on_change(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._tell(_LookAtAll(is_periodic=False))

    def _tell(self, message: object) -> None:
        with suppress(ActorDeadError):
            self.actor_ref.tell(message)

    # --- looking ---

    async def _look_at_all(self) -> None:
        self._is_asked = False
        await self._look_at_timers()
        name = self._settings.agent_name
        last: dict[str, str] = {}  # the last post of each session
        for key in await self._settings.access.keys(inbox_prefix(name)):
            last[session_of(name, key)] = key
        for session_id, key in last.items():
            try:
                self._consider(session_id, key)
            except Exception as error:  # noqa: BLE001 -- such as one of the user's session= function
                loggers.run.warning(
                    "Session %r could not be opened for its posts: %s", session_id, error
                )

    async def _look_at_timers(self) -> None:
        """Act on the timers that are due. One that cannot be acted on stays for the next look."""
        settings = self._settings
        if not settings.access.lists_runs:
            return
        gone = 1
        while gone:  # until none of those that are left can be acted on now
            gone = 0
            for timer in await due_timers(settings.access, settings.agent_name, self._left):
                try:
                    acted = await settings.act(timer)
                    if acted is True:
                        gone += 1
                        continue
                    if acted is not False and timer.row is not None:
                        self._left.add(timer.row)
                        acted.when_finished(partial(self._tell, _Acted(timer, acted)))
                except Exception as error:  # noqa: BLE001 -- the store may answer next time
                    loggers.run.warning("Timer %r is tried again: %s", timer.key, error)

    async def _acted(self, timer: StoredTimer, run: Run[Any]) -> None:
        """Remove a timer whose run needs no answer. One that is in the store still acts again."""
        if timer.row is not None:
            self._left.discard(timer.row)
        try:
            await run.accepted()
        except ResumeError:  # it was answered, or is gone
            await self._settings.access.commit_if_unchanged(timer.removal())
        except Exception as error:  # noqa: BLE001 -- the store may answer next time
            loggers.run.warning("Timer %r is tried again: %s", timer.key, error)

    async def _look(self, session_id: str) -> None:
        """Look at one inbox."""
        prefix = inbox_key(self._settings.agent_name, session_id)
        keys = await self._settings.access.keys(prefix)
        if keys:
            self._consider(session_id, keys[-1])

    def _consider(self, session_id: str, last: str) -> None:
        """Start a turn of a session with posts, now or when its posts have settled."""
        if session_id in self._runs:
            return  # looked at again when that turn ends
        seconds = self._settings.session(session_id).settle
        if not seconds:
            self._start(session_id)
            return
        settling = self._settling.get(session_id)
        if settling is not None and settling[0] == last:
            return
        if settling is not None:
            settling[1].cancel()
        self._settling[session_id] = (last, self._later(seconds, _Settled(session_id)))

    def _later(self, seconds: float, message: object) -> Timer:
        return self._cell.system.clock.call_later(seconds, self._tell, message)

    # --- turns ---

    def _start(self, session_id: str) -> None:
        if session_id in self._runs:
            return
        if len(self._runs) >= self._settings.concurrency:
            self._waiting[session_id] = None
            return
        run = self._settings.session(session_id).hear(detached=True)
        self._runs[session_id] = run
        run.when_finished(lambda: self._tell(_Ended(session_id)))

    async def _ended(self, session_id: str) -> None:
        run = self._runs.pop(session_id, None)
        while self._waiting and len(self._runs) < self._settings.concurrency:
            waiting = next(iter(self._waiting))
            del self._waiting[waiting]
            self._start(waiting)
        if run is None or await self._has_begun(run):
            await self._look(session_id)
        # Otherwise the end of the other turn, or the periodic look, starts another one.

    async def _has_begun(self, run: Run[Any]) -> bool:
        """Return whether the turn has begun."""
        try:
            await run
        except (SessionBusy, NothingToHear):
            return False
        except Exception as error:  # noqa: BLE001 -- the posts stay in the inbox
            loggers.run.warning("Run %s for posts has not begun: %s", run.id, error)
            return False
        return True


def check_attending(concurrency: object, seconds: object) -> None:
    """Raise unless the arguments of `attending` are valid."""
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        msg = f"attending(): concurrency must be 1 or more, got {concurrency!r}."
        raise UsageError(msg)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= _LONGEST_WAIT
    ):
        msg = (
            "attending(): every must be a number of seconds above 0 and at most "
            f"{_LONGEST_WAIT:g}, got {seconds!r:.80}."
        )
        raise UsageError(msg)
