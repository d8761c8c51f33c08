"""The runs of a host that clients have requested.

It limits their number, queues the messages that wait for one session, and handles runs whose client
has left. Two messages of one session never start at once, because they would lose their order. (The
store decides who may write a session.)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack
from ...errors import CheckpointNotFound, ResumeError, SystemDraining
from ..run_form import policy_of, read_checkpoint_id, read_options, read_run
from .clients import ELSEWHERE
from .play import Play

if TYPE_CHECKING:
    from ...run.run import Run
    from ...runner import Runner
    from ..link_order import Request
    from ..spec import ClusterSpec
    from .clients import ClientPort

__all__ = ["HostRuns"]

_RETRY_AFTER: Final = 1.0
_OF_RUN: Final = (
    "checkpoint_id",
    "session_values",
    "streaming",
    "timeout",
    "labels",
    "context",
    "detached",
)


class HostRuns:
    """The requests of clients in progress in one incarnation of a host."""

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
        self._look_for = look_for  # takes over the work of a lost host
        self._plays: dict[tuple[str, int], Play] = {}
        # By session in progress: the messages that wait.
        self._lines: dict[str, deque[Play]] = {}
        self.quiet = asyncio.Event()  # set while no request is in progress
        self.quiet.set()
        self._has_given_up = False
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
        """Start or queue a requested run. The client is answered when it has ended."""
        limits, accepted = self._spec.limits, bool(request.head.get("again"))
        if not accepted and len(self._plays) >= limits.max_runs + limits.max_waiting:
            port.answer(request.id, "busy", pack(_RETRY_AFTER))
            return
        try:
            play = Play(port, request, read_run(request.body))
        except Exception as error:  # noqa: BLE001 -- returned to the caller
            port.answer_error(request.id, error)
            return
        if port.is_sent_on(*play.keys):
            port.send_on(request.id, play.keys)
            return
        session = play.said.get("session")
        line = (
            self._lines.get(session["id"])
            if session is not None and session.get("busy") == "queue"
            else None
        )
        at_work = len(self._plays) - self.waiting
        if not accepted and (
            (line is None and at_work >= limits.max_runs)
            or (line is not None and self.waiting >= limits.max_waiting)
        ):
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
            if request.kind == "follow" and not await self._begins_here(play):
                self._send_on(play)
                return
            self.begun += 1
            play.began(self._begin(play))
            code, body = await play.finish(self._spec.limits.batch_most)
            if code == ELSEWHERE:
                self._send_on(play, body)
            else:
                port.answer(request.id, code, body)
        except SystemDraining:
            self._send_on(play)
        except CheckpointNotFound as error:
            # The host that had the run was drained before the run started, and undid its mark. A
            # follower is sent to the next host, and a message starts when it is requested again.
            if request.kind == "run" or (request.kind == "follow" and self._has_given_up):
                self._send_on(play)
            else:
                port.answer_error(request.id, error)
        except Exception as error:  # noqa: BLE001 -- raised where the run is awaited
            port.answer_error(request.id, error)
        finally:
            self.sent += play.sent
            self._forget(play)
            self._begin_next(play)

    async def _begins_here(self, play: Play) -> bool:
        """Wait for the requests that may start that run. Return False if one was sent on."""
        begins = not play.port.is_sent_on(*play.keys)
        for other in list(self._plays.values()):
            if other.run_id == play.run_id and other.request.kind != "follow":
                await other.settled.wait()
                begins = begins and other.run is not None
        return begins

    def _send_on(self, play: Play, body: bytes = b"") -> None:
        """Make the client send a request, and its later ones in the line, to another host.

        The later ones must not start here, because they would overtake it.
        """
        play.port.send_on(play.request.id, play.keys, body)
        session = play.said.get("session")
        line = self._lines.get(session["id"], ()) if session is not None else ()
        for behind in [one for one in line if one.client == play.client]:
            self._give_back(behind)

    def _give_back(self, play: Play) -> None:
        """Make the client send a waiting message to another host."""
        self._lines[play.said["session"]["id"]].remove(play)
        self._forget(play)
        play.port.send_on(play.request.id, play.keys)

    def _forget(self, play: Play) -> None:
        play.settled.set()
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
        """Start the run on the Runner, or attach to it if its id is known."""
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
        return runner.session(
            session["id"], busy=session["busy"], policy=policy, start=session["start"]
        ).run(said["messages"], **options)

    def _resume(self, play: Play) -> Run:
        """Resume a run with an answer.

        An answer that is sent again, because its host was lost or drained, has the id of the first.
        The store knows whether it has it.
        """
        said, runner = play.said, self._runner
        play.is_kept = True
        answer_id = said.get("answer_id")
        if "verdict" in said:
            interrupt, approves, what = said["verdict"]
            return (
                runner.approve(interrupt, what, answer_id=answer_id)
                if approves
                else runner.deny(interrupt, what, answer_id=answer_id)
            )
        options = read_options(said, "session_values", "streaming", "timeout", "context")
        return runner.resume(
            read_checkpoint_id(said),
            said.get("targets"),
            data=said.get("data"),
            answer_id=answer_id,
            **options,
        )

    async def in_session(self, session_id: str, what: str) -> object:
        """Read or clear a session."""
        session = self._runner.session(session_id)
        if what == "history":
            return await session.history()
        if what == "values":
            return await session.values()
        if what == "clear":
            await session.clear()
            return None
        msg = (
            f"this host does not know the session request {what!r}, because its version of "
            "offbook is older than its client's. Update the hosts: call roll()."
        )
        raise ResumeError(msg)

    def client_left(self, client: str) -> None:
        for (name, _), play in list(self._plays.items()):
            if name == client:
                play.client_left()

    def give_up(self) -> None:
        """Give up the waiting messages, because the host is leaving."""
        self._has_given_up = True
        for line in self._lines.values():
            for play in list(line):
                self._give_back(play)
