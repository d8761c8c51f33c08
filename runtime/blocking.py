"""A Runner for synchronous code: `runner.blocking`.

It offers the coroutines of a `Runner` and its sessions as blocking methods. The runs live on the
loop of the Runner's system, or on the default one, which has its own thread. Nothing runs in the
caller's thread, and a thread with a running event loop is never blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, cast

from .data.chat import Message
from .data.output_type import OutputT_co
from .system.loop_bridge import LoopBridge, refuse_on_a_loop

if TYPE_CHECKING:
    from .data.interrupt import InterruptContext
    from .data.posts import Boundary, Post, Posted
    from .data.run_info import RunInfo
    from .data.run_result import RunResult
    from .durability.leases import Busy
    from .durability.unfinished_run import UnfinishedRun
    from .run.kept.kept_runs import StatusLike
    from .run.recovery_loop import RecoveryLoop
    from .run.run import Run
    from .run.run_options import ResumeOptions, RunOptions, SearchOptions, TurnOptions
    from .runner import Runner
    from .session import Session
    from .sessions.inbox import InboxFilter
    from .sessions.session_policy import SessionPolicyLike
    from .sessions.turn import Start
    from .system.system import ActorSystem

__all__ = ["BlockingRunner", "BlockingSession"]

T = TypeVar("T")


class BlockingRunner(Generic[OutputT_co]):
    """A `Runner` whose methods block the calling thread until they have their result.

    Example: `runner.blocking.query("hello").text`. Any number of threads without an event loop may
    use it at once. The `timeout` of `query`, `run` and `resume` limits the run, as in a `Runner`.
    """

    __slots__ = ("_runner",)

    def __init__(self, runner: Runner[OutputT_co]) -> None:
        self._runner = runner

    def __repr__(self) -> str:
        return f"<blocking {self._runner!r}>"

    # --- runs ---

    def query(self, text: str, **options: Unpack[RunOptions]) -> RunResult[OutputT_co]:
        """Run with one user message and wait for the end.

        The options are those of `Runner.run`.
        """
        _refuse("query")
        return self._runner.query(text, **options).result()

    def run(
        self, messages: str | Message | Sequence[Message], **options: Unpack[RunOptions]
    ) -> RunResult[OutputT_co]:
        """Run with these messages and wait for the end. The options are those of `Runner.run`."""
        _refuse("run")
        return self._runner.run(messages, **options).result()

    def start(
        self, messages: str | Message | Sequence[Message], **options: Unpack[RunOptions]
    ) -> Run[OutputT_co]:
        """Start a run, and return once it has started or is stored as waiting for its turn.

        From then on every process can find it. Raises the error that prevents the run from
        starting. Pass `detached=True` or a `run_id` if the run must not depend on the returned
        object.
        """
        _refuse("start")
        return self.accepted(self._runner.run(messages, **options))

    def accepted(self, run: Run[OutputT_co]) -> Run[OutputT_co]:
        """Wait until a run has started, or is stored as waiting for its turn.

        Like `await run.accepted()`. Example: `accepted(runner.approve(interrupt))`.
        """
        return _call(self._runner.choose_system, "accepted", run.accepted)

    def resume(
        self,
        checkpoint_id: str,
        targets: Mapping[str, object] | None = None,
        **options: Unpack[ResumeOptions],
    ) -> RunResult[OutputT_co]:
        """Continue a run that was interrupted or cancelled, and wait for its end.

        The options are those of `Runner.resume`.
        """
        _refuse("resume")
        return self._runner.resume(checkpoint_id, targets, **options).result()

    def approve(
        self,
        interrupt: InterruptContext | str,
        arguments: str | Mapping[str, object] | None = None,
        *,
        answer_id: str | None = None,
    ) -> RunResult[OutputT_co]:
        """Approve one call, and wait until its run ends or pauses again.

        To return sooner: `accepted(runner.approve(...))`.
        """
        _refuse("approve")
        return self._runner.approve(interrupt, arguments, answer_id=answer_id).result()

    def deny(
        self, interrupt: InterruptContext | str, reason: str = "", *, answer_id: str | None = None
    ) -> RunResult[OutputT_co]:
        """Deny one call, and wait until its run ends or pauses again.

        To return sooner: `accepted(runner.deny(...))`.
        """
        _refuse("deny")
        return self._runner.deny(interrupt, reason, answer_id=answer_id).result()

    # --- recovery ---

    def recover(self, **search: Unpack[SearchOptions]) -> list[Run[OutputT_co]]:
        """Continue the runs of crashed processes, as `Runner.recover` does.

        They run on the system's loop: `run.result()` waits for one.
        """
        return self._call("recover", partial(self._runner.recover, **search))

    def recover_every(self, seconds: float, **search: Unpack[SearchOptions]) -> RecoveryLoop:
        """Call `recover` periodically: `with runner.blocking.recover_every(30): ...`.

        Instead of a `with` block, `stop()` the returned object.
        """
        _refuse("recover_every")
        return self._runner.recover_every(seconds, **search)

    def retry(self, run_id: str) -> Run[OutputT_co]:
        """Retry a stuck run, as `Runner.retry` does: `run.result()` waits for it."""
        return self._call("retry", partial(self._runner.retry, run_id))

    # --- the store ---

    def runs(
        self,
        status: StatusLike = None,
        session_id: str | None = None,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[RunInfo]:
        """List the runs in the store, newest first. The options are those of `Runner.runs`."""
        return self._call(
            "runs",
            partial(
                self._runner.runs, status, session_id, agent, labels, since, until, limit, after
            ),
        )

    def info(self, run_id: str) -> RunInfo:
        """Return the store's information about a run.

        Raises `CheckpointNotFound` if the id is unknown.
        """
        return self._call("info", partial(self._runner.info, run_id))

    def pending(self) -> list[RunInfo]:
        """List all stored runs that wait for an answer, newest first."""
        return self._call("pending", self._runner.pending)

    def stuck(self) -> list[UnfinishedRun]:
        """List this agent's stuck runs, which crashed their process too often."""
        return self._call("stuck", self._runner.stuck)

    def forget(self, run_id: str) -> None:
        """Remove everything that the store holds of a run, as `Runner.forget` does."""
        self._call("forget", partial(self._runner.forget, run_id))

    def forget_session(self, session_id: str) -> int:
        """Remove a session with all of its runs, as `Runner.forget_session` does.

        Returns the number of runs.
        """
        return self._call("forget_session", partial(self._runner.forget_session, session_id))

    def prune(self, older_than: float | None = None) -> int:
        """Remove expired data, and return the number of keys, as `Runner.prune` does."""
        return self._call("prune", partial(self._runner.prune, older_than))

    # --- sessions ---

    def session(
        self,
        session_id: str,
        *,
        busy: Busy = "queue",
        policy: SessionPolicyLike = None,
        start: Start = "root",
        inbox: InboxFilter | None = None,
        settle: float = 0.0,
        while_interrupted: Literal["wait", "turn"] = "turn",
        max_pending: int = 1000,
    ) -> BlockingSession[OutputT_co]:
        """Open a stored conversation.

        The options are those of `Runner.session`.
        """
        made = self._runner.session(
            session_id,
            busy=busy,
            policy=policy,
            start=start,
            inbox=inbox,
            settle=settle,
            while_interrupted=while_interrupted,
            max_pending=max_pending,
        )
        return BlockingSession(made, self._runner.choose_system)

    def history(self, session_id: str) -> tuple[Message, ...]:
        """Return all messages of a session, oldest first."""
        return self.session(session_id).history()

    def _call(self, call: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return _call(self._runner.choose_system, call, work)


class BlockingSession(Generic[OutputT_co]):
    """A `Session` whose methods block the calling thread.

    Example: `runner.blocking.session("ada").query("hello").text`.
    """

    __slots__ = ("_choose_system", "_session", "id")

    def __init__(
        self, session: Session[OutputT_co], choose_system: Callable[[], ActorSystem]
    ) -> None:
        self.id = session.id
        self._session = session
        self._choose_system = choose_system

    def __repr__(self) -> str:
        return f"<blocking {self._session!r}>"

    def query(self, text: str, **run_options: Unpack[TurnOptions]) -> RunResult[OutputT_co]:
        """Send one user message, and wait for the end of its run.

        The options are those of `Runner.run`, without `session_id`.
        """
        _refuse("session(...).query")
        return self._session.query(text, **run_options).result()

    def run(
        self, messages: str | Message | Sequence[Message], **run_options: Unpack[TurnOptions]
    ) -> RunResult[OutputT_co]:
        """Send messages, and wait for the end of their run."""
        _refuse("session(...).run")
        return self._session.run(messages, **run_options).result()

    def start(
        self, messages: str | Message | Sequence[Message], **run_options: Unpack[TurnOptions]
    ) -> Run[OutputT_co]:
        """Send messages, and return once their run has started or is stored as waiting.

        From then on every process can find it.
        """
        _refuse("session(...).start")
        run = self._session.run(messages, **run_options)
        return self._call("start", run.accepted)

    def post(
        self,
        message: str | Message,
        *,
        id: str | None = None,  # noqa: A002 -- the natural name
        when: Boundary = "safe_point",
        sender: str | None = None,
        not_before: timedelta | datetime | None = None,
    ) -> Posted:
        """Store a message for the session. The options are those of `Session.post`."""
        return self._call(
            "post",
            partial(
                self._session.post,
                message,
                id=id,
                when=when,
                sender=sender,
                not_before=not_before,
            ),
        )

    def inbox(self) -> list[Post]:
        """Return the posts that no turn has heard, in order."""
        return self._call("inbox", self._session.inbox)

    def withdraw(self, id: str) -> bool:  # noqa: A002 -- the natural name
        """Remove a post. Returns False if a turn has heard it, or is about to."""
        return self._call("withdraw", partial(self._session.withdraw, id))

    def history(self) -> tuple[Message, ...]:
        """Return all messages, oldest first."""
        return self._call("history", self._session.history)

    def values(self) -> dict[str, Any]:
        """Return the session values as of the last turn."""
        return self._call("values", self._session.values)

    def clear(self) -> None:
        """Delete all messages and values, after the turns sent earlier."""
        self._call("clear", self._session.clear)

    def close(self) -> None:
        """Stop sending from this object, and wait until its runs have ended."""
        self._call("close", self._session.close)

    def _call(self, call: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return _call(self._choose_system, f"session(...).{call}", work)


def _refuse(call: str) -> None:
    refuse_on_a_loop(f"runner.blocking.{call}()", f"{_awaited(call)}")


def _awaited(call: str) -> str:
    return {
        "recover_every": "async with runner.recover_every(...)",
        "accepted": "await run.accepted()",
    }.get(call, f"await runner.{call}(...)")


def _call(
    choose_system: Callable[[], ActorSystem], call: str, work: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Run `work` on the loop of the Runner's system, and wait for it in this thread."""
    _refuse(call)
    bridge = LoopBridge(choose_system(), f"runner.blocking.{call}()")
    return cast("T", bridge.block(work, f"runner.blocking.{call}()", _awaited(call)))
