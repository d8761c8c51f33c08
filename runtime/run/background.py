"""Background tasks: agents that outlive the call that started them, and report to a session.

A task is a stored run of its own, in a session of its own, whose ids derive from the call: a replay
of the call starts it once. A timer belongs to each task until its outcome is reported. The end of
the run makes the timer due in the same step; a run that ends otherwise, because it was lost too
often, is found by the timer's periodic look. Whoever acts on the timer posts the report to the
parent's session and removes the timer in one step, so each outcome arrives once, also if the
parent has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from ..agent.tree import build_tree
from ..data.chat import Message, new_id
from ..data.posts import Post, Posted
from ..data.run_info import RunInfo
from ..data.run_result import RunStatus
from ..data.value import Value
from ..durability.run_labels import label_text
from ..durability.run_row import read_entry
from ..durability.store_keys import TASK, answered_task_key, task_key
from ..durability.timers import Timer, read_timer
from ..errors import CheckpointNotFound, UsageError
from ..sessions.inbox import Inbox
from ..stores.run_entries import RunEntry, RunQuery
from ..stores.writes import Put
from ..tasks import start_task
from .kept.stopping import stop_waiting

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.tree import Definition, Node
    from ..durability.store_access import StoreAccess
    from .run import Run

__all__ = ["Background", "BackgroundTask", "TaskInfo", "TaskLimits"]

_LOOK_SECONDS: Final = 60.0
"""Seconds after which a task whose end nobody has noted is looked at again."""
_MARK_SECONDS: Final = 30 * 86_400.0
"""Seconds for which a call that was answered with its task's result may be made again."""
_SHOWN: Final = 4_000
"""The characters of a result that a report has."""
_OPEN: Final = (RunStatus.RUNNING.value, RunStatus.PENDING.value, RunStatus.DRAINED.value)
_STOPPABLE: Final = (*_OPEN, RunStatus.INTERRUPTED.value)
_ALL: Final = tuple(status.value for status in RunStatus)
_SESSION_LABEL: Final = "offbook.task.session"
_PARENT_LABEL: Final = "offbook.task.parent"
_DEPTH_LABEL: Final = "offbook.task.depth"
_MOST: Final = 10_000


class TaskLimits(NamedTuple):
    """How many tasks there may be."""

    at_once: int = 8
    """In one session."""
    total: int = 100
    """In one session, with those that have ended and are still in the store."""
    depth: int = 3
    """Tasks that tasks have started."""


class TaskInfo(Value, frozen=True):
    """A background task."""

    id: str
    agent: str
    status: RunStatus
    parent: str
    """The run that started it."""
    started: datetime
    ended: datetime | None = None
    error: str | None = None
    waiting: tuple[Any, ...] = ()
    """The interrupts that it waits for."""

    @property
    def run_id(self) -> str:
        """The run of the task, which has the same id."""
        return self.id


class TaskSession(Protocol):
    """The session of a task, as this module uses it."""

    def run(
        self, messages: str, /, *, run_id: str, detached: bool, labels: Mapping[str, str]
    ) -> Run[Any]: ...


class TaskRunner(Protocol):
    """The Runner of an agent that works in the background, as this module uses it."""

    def session(self, session_id: str, /) -> TaskSession: ...
    def attach(self, run_id: str, /) -> Run[Any]: ...
    async def post(self, run_id: str, message: str, /) -> Posted: ...
    def choose_system(self) -> Host: ...


class BackgroundTask:
    """A handle of one task, in any process."""

    def __init__(self, background: Background, task_id: str) -> None:
        self._background = background
        self.id = task_id

    def __repr__(self) -> str:
        return f"<BackgroundTask {self.id!r}>"

    async def info(self) -> TaskInfo:
        """Return what the store has of the task. Raises `CheckpointNotFound`."""
        return await self._background.info(self.id)

    async def send(self, text: str) -> Posted:
        """Post a message to the task, which hears it at its next safe point."""
        return await self._background.runner_of(self.id).post(self.id, text)

    async def stop(self) -> bool:
        """Cancel the task, in whichever process it runs. Returns False if it has ended already."""
        return await self._background.stop(self.id)

    async def result(self) -> Any:
        """Wait for the end of the task, or its next interrupt, and return its `RunResult`."""
        return await self._background.runner_of(self.id).attach(self.id)


class Background:
    """The background tasks that the runs of one Runner start."""

    def __init__(
        self,
        access: StoreAccess | None,
        agent_name: str,
        make_runner: Callable[[Definition], TaskRunner],
        limits: TaskLimits,
    ) -> None:
        self._access = access
        self._agent = agent_name
        self._make_runner = make_runner
        self._limits = limits
        # The agents that work in the background, and their Runners once they are needed; by the
        # agents' part of the tasks' ids. Two agents may start each other.
        self._agents: dict[str, Definition] = {}
        self._runners: dict[str, TaskRunner] = {}
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def know(self, tree: Node) -> None:
        """Note the agents that may work in the background for those of a tree, and for theirs."""
        for node in (node for root in tree.trees() for node in root.walk()):
            for agent in getattr(node.agent, "background_agents", ()):
                key = _agent_part(agent.name)
                if key not in self._agents:
                    self._agents[key] = agent
                    self.know(build_tree(agent))

    def share(self, other: Background) -> None:
        """Use the agents and Runners of another one."""
        self._agents, self._runners = other._agents, other._runners

    @property
    def has_agents(self) -> bool:
        """True if an agent may work in the background."""
        return bool(self._agents)

    def all_runners(self) -> list[TaskRunner]:
        """Return the Runners of all agents that may work in the background."""
        return [self.add(agent) for agent in tuple(self._agents.values())]

    def add(self, agent: Definition) -> TaskRunner:
        """Return the Runner of an agent that works in the background."""
        key = _agent_part(agent.name)
        runner = self._runners.get(key)
        if runner is None:
            self._agents[key] = agent
            runner = self._runners[key] = self._make_runner(agent)
        return runner

    def runner_of(self, task_id: str) -> TaskRunner:
        """Return the Runner of a task. Raises `UsageError` if this program lacks its agent."""
        runner = self.known_runner_of(task_id)
        if runner is None:
            msg = (
                f"task {task_id!r} is of an agent that this Runner does not know. Use the Runner "
                "of the agent that has started it."
            )
            raise UsageError(msg, run=task_id)
        return runner

    def known_runner_of(self, task_id: str) -> TaskRunner | None:
        """Return the Runner of a task; None for another id, or if its agent is unknown here."""
        if not self._agents or not task_id.startswith(TASK):
            return None
        agent = self._agents.get(task_id[len(TASK) :].partition("-")[0])
        return None if agent is None else self.add(agent)

    async def start(
        self,
        agent: Definition,
        text: str,
        call_key: str,
        session_id: str,
        run_id: str,
        seconds: float = 0.0,
    ) -> str:
        """Start a task, once. Returns its id. Raises `UsageError` if there are too many.

        `call_key` is the same whenever the same call is made again. `session_id` and `run_id` are
        those of the caller, which waits for the result for so many seconds.
        """
        async with self._lock():  # several calls of one reply do not exceed the limits together
            return await self._start(agent, text, call_key, session_id, run_id, seconds)

    async def _start(
        self,
        agent: Definition,
        text: str,
        call_key: str,
        session_id: str,
        run_id: str,
        seconds: float,
    ) -> str:
        access = self._listing()
        runner = self.add(agent)
        task_id = f"{TASK}{_agent_part(agent.name)}-{_digest(call_key)[:20]}"
        if await access.run_entry(task_id) is not None:
            return task_id
        depth = await self._check_limits(access, session_id, run_id)
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        timer = Timer(
            task_key(task_id),
            "task",
            self._agent,
            session_id,
            _next_look() + timedelta(seconds=seconds),
            [run_id, task_id, until if seconds else None, 0, new_id()],
        )
        await access.commit(None, [timer.entry()])
        labels = {
            _SESSION_LABEL: _digest(session_id),
            _PARENT_LABEL: run_id[:256],
            _DEPTH_LABEL: str(depth),
        }
        run = runner.session(task_id).run(text, run_id=task_id, detached=True, labels=labels)
        await run.accepted()
        return task_id

    def _lock(self) -> asyncio.Lock:
        """Return the lock of the running event loop."""
        loop = asyncio.get_running_loop()
        lock = self._locks.get(loop)
        if lock is None:
            lock = self._locks[loop] = asyncio.Lock()
        return lock

    async def result_in_time(self, task_id: str, seconds: float) -> Any | None:
        """Return the result of a task that ends in time; then it is not reported, too."""
        result = await self.wait(task_id, seconds)
        if result is None or result.status is RunStatus.INTERRUPTED:
            return None
        access, mark = self._listing(), answered_task_key(task_id)
        row = await access.run_entry(task_key(task_id))
        if row is None:
            # It is reported already; or the call was answered, and is made again after a crash.
            return None if await access.get(mark) is None else result
        answered = [*read_timer(row).removal(), Put(mark, b"\x01", _MARK_SECONDS)]
        return result if await access.commit_if_unchanged(answered) else None

    async def wait(self, task_id: str, seconds: float) -> Any | None:
        """Return the result of a task that ends, or asks, in time; otherwise None."""
        waiting = start_task(_result(self.runner_of(task_id).attach(task_id)), "a task's result")
        try:
            await asyncio.wait((waiting,), timeout=seconds)
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()

    async def tasks(self, session_id: str) -> list[TaskInfo]:
        """Return the tasks of a session that are in the store, the newest first."""
        query = RunQuery(
            _ALL, labels=(label_text(_SESSION_LABEL, _digest(session_id)),), limit=_MOST
        )
        return [_task_of(read_entry(row)) for row in await self._listing().run_entries(query)]

    async def info(self, task_id: str) -> TaskInfo:
        row = await self._row(task_id)
        if row is None:
            msg = f"there is no task {task_id!r}. session.tasks() lists the tasks of a session."
            raise CheckpointNotFound(msg, run=task_id)
        return _task_of(read_entry(row))

    async def _row(self, task_id: str) -> RunEntry | None:
        return await self._listing().run_entry(task_id) if task_id.startswith(TASK) else None

    async def require(self, task_id: str, session_id: str) -> None:
        """Raise `CheckpointNotFound` unless the task is one of that session."""
        row = await self._row(task_id)
        if row is None or read_entry(row).labels.get(_SESSION_LABEL) != _digest(session_id):
            msg = f"there is no task {task_id!r} of this session."
            raise CheckpointNotFound(msg, run=task_id)

    def task(self, task_id: str) -> BackgroundTask:
        """Return a handle of a task."""
        return BackgroundTask(self, task_id)

    async def stop(self, task_id: str) -> bool:
        """Cancel a task, also one that waits for an answer. Returns False if it has ended."""
        runner = self.runner_of(task_id)
        while (info := await self.info(task_id)).status.value in _STOPPABLE:
            if info.status is not RunStatus.INTERRUPTED:
                await runner.attach(task_id).cancel()
            elif await stop_waiting(self._listing(), runner.choose_system(), info.agent, task_id):
                return True
            if (await self.info(task_id)).status is RunStatus.CANCELLED:
                return True
        return False

    async def stop_all(self, session_id: str) -> None:
        """Cancel the tasks of a session that have not ended."""
        for task in await self.tasks(session_id):
            if task.status.value in _STOPPABLE and self.known_runner_of(task.id) is not None:
                await self.stop(task.id)

    async def report(self, timer: Timer) -> bool:
        """Report the outcome or the question of a task, if there is one.

        Returns True if the timer is gone from the store.
        """
        access = self._listing()
        parent, task_id, _, told, _ = timer.content
        before = await access.run_entry(parent)
        row = await access.run_entry(task_id)
        if row is None and (before is None or not before.claim):  # it is forgotten
            await access.commit_if_unchanged(timer.removal())
            return True
        if row is None:  # its parent is about to start it, now or when it is recovered
            again = timer.replace(at=_next_look())
            await access.commit_if_unchanged([*timer.removal(), again.entry()])
            return False
        info = read_entry(row)
        is_over = info.ended is not None or info.status is RunStatus.STUCK
        number = getattr(info.checkpoint_id, "save", 0)
        asks = info.status is RunStatus.INTERRUPTED and number != told
        again = timer.replace(
            at=_next_look(),
            content=[parent, task_id, None, number if asks else told, new_id()],
        )
        if not is_over and not asks:
            await access.commit_if_unchanged([*timer.removal(), again.entry()])
            return False
        assert timer.session_id is not None
        inbox = Inbox(access, self._agent, timer.session_id)
        post = Post(
            f"{task_id} {info.status.value} {number}",
            0,
            Message("user", await self._text(info)),
            "safe_point",
            None,
            task_id,
            datetime.now(UTC),
        )
        also = [*timer.removal(), *([] if is_over else [again.entry()])]
        await inbox.store(post, also, timer.key)
        return is_over

    async def _text(self, info: RunInfo) -> str:
        said = f"[Task {info.id} of {info.agent}]"
        if info.status is RunStatus.INTERRUPTED:
            asked = "; ".join(f"{one.info}"[:500] for one in info.waiting)
            return f"{said} It waits for an answer from outside: {asked}"
        if info.status is not RunStatus.COMPLETED:
            return f"{said} It has ended as {info.status.value}: {info.error or 'no reason given'}"
        runner = self.known_runner_of(info.id)
        if runner is None:
            return f"{said} It has completed. task_status({info.id!r}) returns the result."
        text = str((await _result(runner.attach(info.id))).final_output)
        if len(text) <= _SHOWN:
            return f"{said} It has completed: {text}"
        rest = f"task_status({info.id!r}) returns all {len(text):,} characters."
        return f"{said} It has completed: {text[:_SHOWN]}... {rest}"

    async def _check_limits(self, access: StoreAccess, session_id: str, run_id: str) -> int:
        """Return the depth of a new task. Raise if there are too many."""
        parent = await access.run_entry(run_id) if run_id.startswith(TASK) else None
        depth = 1 + (0 if parent is None else int(read_entry(parent).labels.get(_DEPTH_LABEL, 0)))
        label = label_text(_SESSION_LABEL, _digest(session_id))
        limits = self._limits
        running, known = (
            await access.run_entries(RunQuery(_OPEN, labels=(label,), limit=limits.at_once)),
            await access.run_entries(RunQuery(_ALL, labels=(label,), limit=limits.total)),
        )
        for count, most, what in (
            (depth - 1, limits.depth, "tasks that started each other"),
            (len(running), limits.at_once, "tasks of this session that have not ended"),
            (len(known), limits.total, "tasks of this session"),
        ):
            if count >= most:
                msg = (
                    f"the task was not started: there are {most} {what} already. Wait for one of "
                    "them, or stop one."
                )
                raise UsageError(msg, run=run_id)
        return depth

    def _listing(self) -> StoreAccess:
        if self._access is None:
            msg = (
                "a background task needs a store that keeps its run. Give the Runner a store: "
                "store=SQLiteStore('runs.db')."
            )
            raise UsageError(msg)
        self._access.require_list("a background task")
        return self._access


def _next_look() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=_LOOK_SECONDS)


async def _result(run: Run[Any]) -> Any:
    return await run


def _task_of(info: RunInfo) -> TaskInfo:
    return TaskInfo(
        info.id,
        info.agent,
        info.status,
        info.labels.get(_PARENT_LABEL, ""),
        info.started,
        info.ended,
        info.error,
        info.waiting,
    )


def _agent_part(name: str) -> str:
    return _digest(name)[:8]


def _digest(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 -- most programs do without it

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
