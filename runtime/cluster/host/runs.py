"""The runs of a host that clients have asked for.

Owns: how many there are, the line of messages that wait for one session, and what becomes of runs whose client has left. It must never begin two messages of
one session at once: they would lose their order. (Who may write a session is for the store to say.)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack
from ...durability.checkpoint import check_checkpoint_id
from ...errors import ResumeError, SystemDraining
from ..run_form import policy_of, read_options, read_run
from .play import ELSEWHERE, Play

if TYPE_CHECKING:
    from ...run.run import Run
    from ...runner import Runner
    from ..link_order import Request
    from ..spec import ClusterSpec
    from .clients import ClientPort

__all__ = ["HostRuns"]

_RETRY_AFTER: Final = 1.0
_OF_RUN: Final = ("checkpoint_id", "session_values", "streaming", "timeout", "labels", "context", "detached")


class HostRuns:
    """What clients have under way in one incarnation of a host."""

    def __init__(
        self,
        spec: ClusterSpec,
        runner: Runner,
        spawn_task: Callable[[Coroutine[Any, Any, None], str], object],
        look_for: Callable[[list[Any], str], Awaitable[None]],
    ) -> None:
        self._spec = spec
        self._runner = runner
        self._spawn_task = spawn_task
        self._look_for = look_for  # takes over what a lost host has left
        self._plays: dict[tuple[str, int], Play] = {}
        self._lines: dict[str, deque[Play]] = {}  # of sessions that are at work: the messages behind
        self.quiet = asyncio.Event()  # whether nothing is under way
        self.quiet.set()
        self.begun = 0
        self.sent = 0
        self.keeps = runner.store is not None and runner.durability != "none"

    def __len__(self) -> int:
        return len(self._plays)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def find(self, client: str, request_id: int) -> Play | None:
        return self._plays.get((client, request_id))

    def ask(self, port: ClientPort, request: Request) -> None:
        """A client asks for a run. It is answered when that has ended."""
        limits = self._spec.limits
        if len(self._plays) >= limits.max_runs + limits.max_waiting:
            port.answer(request.id, "busy", pack(_RETRY_AFTER))
            return
        try:
            play = Play(port, request, read_run(request.body))
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, who has asked is told
            port.answer_error(request.id, error)
            return
        session = play.said.get("session")
        line = self._lines.get(session["id"]) if session is not None and session.get("busy") == "queue" else None
        at_work = len(self._plays) - self.waiting
        if (line is None and at_work >= limits.max_runs) or (line is not None and self.waiting >= limits.max_waiting):
            port.answer(request.id, "busy", pack(_RETRY_AFTER))
            return
        self._plays[port.name, request.id] = play
        self.quiet.clear()
        if line is not None:
            line.append(play)
            return
        if session is not None:
            self._lines.setdefault(session["id"], deque())
        self._spawn_task(self._play(play), f"run {play.run_id} for client {port.name}")

    async def _play(self, play: Play) -> None:
        port, request = play.port, play.request
        try:
            lost = request.head.get("lost")
            if lost:
                await self._look_for(list(lost), play.run_id)
            self.begun += 1
            play.began(self._begin(play))
            code, body = await play.finish(self._spec.limits.batch_most)
            port.answer(request.id, code, body)
        except SystemDraining:
            port.answer(request.id, ELSEWHERE)
        except Exception as error:  # noqa: BLE001 -- setup errors are raised where the run is awaited: there
            port.answer_error(request.id, error)
        finally:
            self.sent += play.sent
            self._forget(play)
            self._begin_next(play)

    def _forget(self, play: Play) -> None:
        self._plays.pop((play.client, play.request.id), None)
        if not self._plays:
            self.quiet.set()

    def _begin_next(self, play: Play) -> None:
        session = play.said.get("session")
        if session is None:
            return
        line = self._lines.get(session["id"])
        if line is None or session.get("busy") != "queue":
            return
        if line:
            behind = line.popleft()
            self._spawn_task(self._play(behind), f"run {behind.run_id} for client {behind.client}")
        else:
            del self._lines[session["id"]]

    def _begin(self, play: Play) -> Run:
        """Begin it on the Runner, or look on at it, if it is known by its id."""
        said, runner, kind = play.said, self._runner, play.request.kind
        if kind == "follow":
            play.is_kept = True
            return runner.attach(said["run_id"], after=said.get("after", 0))
        if kind == "resume":
            return self._resume(play)
        options = read_options(said, *_OF_RUN)
        play.is_kept = self.keeps
        if self.keeps:
            options["run_id"] = said["run_id"]
        session = said.get("session")
        if session is None:
            if "session_id" in said:
                options["session_id"] = said["session_id"]
            return runner.run(said["messages"], **options)
        policy = policy_of(session.get("policy"), self._spec.allow)
        return runner.session(session["id"], busy=session["busy"], policy=policy, start=session["start"]).run(said["messages"], **options)

    def _resume(self, play: Play) -> Run:
        said, runner = play.said, self._runner
        play.is_kept = True
        if play.request.head.get("again"):  # it was asked for before, of a host that is lost: most probably it is on its way
            run_id, _, _ = said["checkpoint_id"].partition("@")
            return runner.attach(check_checkpoint_id(run_id), after=said.get("after", 0))
        options = read_options(said, "session_values", "streaming", "timeout", "context")
        return runner.resume(said["checkpoint_id"], said.get("targets"), data=said.get("data"), **options)

    async def in_session(self, session_id: str, what: str) -> object:
        """What a session holds, or that it is to hold nothing any more."""
        session = self._runner.session(session_id)
        if what == "history":
            return await session.history()
        if what == "values":
            return await session.values()
        if what == "clear":
            await session.clear()
            return None
        msg = f"a session is asked for {what!r}, which this version does not know."
        raise ResumeError(msg)

    def client_left(self, client: str) -> None:
        for (name, _), play in list(self._plays.items()):
            if name == client:
                play.client_left()

    def give_up(self) -> None:
        """The host takes no part any more: what waits in a line is for another one."""
        for line in self._lines.values():
            while line:
                play = line.popleft()
                self._forget(play)
                play.port.answer(play.request.id, ELSEWHERE)
