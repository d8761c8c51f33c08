"""Runs an agent for a task: a run for each turn, in the session of the task's context.

It starts, resumes and continues runs, and converts their results. Internal errors are never shown
to a client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from a2a.types import a2a_pb2 as pb

from ...agent.options import OptionsLike
from ...data.chat import Message
from ...data.run_result import RunResult, RunStatus
from ..conversion import message_from_wire, metadata_from_wire, status_from_wire, task_from_wire
from ..data.message import A2AMessage
from ..data.task import Task
from .asks import Continue, End, Say
from .client_messages import answers_of, as_user_message
from .telling import Teller, question

if TYPE_CHECKING:
    from ...run.run import Run
    from ...runner import Runner
    from .turn import Turn

__all__ = ["AgentHooksOfUser", "AgentPlayer"]

Asked = Callable[[Task, A2AMessage, dict[str, object]], Any]


@dataclass(frozen=True, slots=True)
class AgentHooksOfUser:
    """The hooks of the program that serves the agent."""

    run_options: Callable[[Task, A2AMessage, dict[str, object]], OptionsLike] | None = None
    history: Callable[[Sequence[A2AMessage]], Sequence[Message]] | None = None
    resume: Asked | None = None


class AgentPlayer:
    """One turn of an agent."""

    __slots__ = (
        "_answers",
        "_canceled",
        "_flushing",
        "_hooks",
        "_run",
        "_runner",
        "_session",
        "_teller",
    )

    def __init__(self, runner: Runner, session: str, hooks: AgentHooksOfUser) -> None:
        self._runner = runner
        self._session = session
        self._hooks = hooks
        self._run: Run | None = None
        self._canceled = False
        self._answers: tuple[dict[str, object] | None, object] = (None, None)
        self._flushing: asyncio.TimerHandle | None = None

    def check(self, turn: Turn) -> None:
        """Refuse an answer that does not fit the task's question."""
        kept = turn.log.kept
        if (
            kept.pending
            and kept.checkpoint_id is not None
            and self._hooks.resume is None
            and isinstance(turn.ask, Say)
        ):
            self._answers = answers_of(
                message_from_wire(turn.ask.message), kept.pending, is_first=kept.questions <= 1
            )

    async def play(self, turn: Turn) -> End:
        """Run the agent, and report its events."""
        run = self._run = self._begun(turn)
        if self._canceled:
            run.cancel()
        kept = turn.log.kept
        kept.run_id, kept.checkpoint_id = run.id, run.checkpoint_id
        await turn.keep()
        teller = Teller(turn)
        async for event in run:
            await teller.tell(event)
            if self._flushing is None and teller.flush_due():
                self._flushing = asyncio.get_running_loop().call_later(
                    0.03, self._flush, turn, teller
                )
        if self._flushing is not None:
            self._flushing.cancel()
        return await self._ended(turn, teller, await run)

    def _flush(self, turn: Turn, teller: Teller) -> None:
        self._flushing = None
        if teller.flush_due():
            turn.service.run_task(teller.flush(), f"task {turn.log.task.id} streams")

    def cancel(self) -> None:
        self._canceled = True
        if self._run is not None:
            self._run.cancel()

    # --- the run ---

    def _begun(self, turn: Turn) -> Run:
        ask, kept, hooks = turn.ask, turn.log.kept, self._hooks
        if isinstance(ask, Continue):
            assert ask.run is not None
            return ask.run
        said = message_from_wire(turn.message)
        task = task_from_wire(turn.log.task) if hooks.run_options or hooks.resume else None
        metadata = metadata_from_wire(ask.metadata) if ask.metadata is not None else {}
        options = (
            hooks.run_options(task, said, metadata)
            if hooks.run_options is not None and task is not None
            else None
        )
        streaming = True if ask.shows is not None else None
        if kept.pending and kept.checkpoint_id is not None:
            if hooks.resume is not None and task is not None:
                answer = hooks.resume(
                    replace(task, status=status_from_wire(turn.asked))
                    if turn.asked is not None
                    else task,
                    said,
                    metadata,
                )
                named = (
                    isinstance(answer, Mapping)
                    and bool(answer)
                    and all(name in kept.pending for name in answer)
                )
                targets, data = (dict(answer), None) if named else (None, answer)
            else:
                targets, data = self._answers
            if targets is None:  # for each of the interrupts that the client was asked about
                targets = dict.fromkeys(kept.pending, data)
            return self._runner.resume(kept.checkpoint_id, targets, options=options)
        if hooks.history is not None:
            messages: Sequence[Message] = hooks.history(
                [message_from_wire(one) for one in turn.log.task.history]
            )
        else:
            messages = (as_user_message(said),)
        return self._runner.session(self._session).run(
            messages, options=options, streaming=streaming
        )

    async def _ended(self, turn: Turn, teller: Teller, result: RunResult) -> End:
        if result.status is RunStatus.CANCELLED:
            await teller.end()
            if turn.is_canceled:
                return End(pb.TASK_STATE_CANCELED)
            return End(pb.TASK_STATE_FAILED, turn.said("The agent was stopped."))
        if result.status in (RunStatus.DRAINED, RunStatus.STUCK):
            return End()
        await teller.end()
        if result.status is RunStatus.FAILED:
            if turn.is_canceled:
                return End(pb.TASK_STATE_CANCELED)
            return End(pb.TASK_STATE_FAILED, error=result.error)
        if result.status is RunStatus.INTERRUPTED:
            if self._run is None or self._run.checkpoint_id is None:
                turn.service.logger.error(
                    "Task %s: its agent waits for an answer, but the run is not stored. Pass "
                    "a2a_app a Runner with a store.",
                    turn.log.task.id,
                )
            state, message, pending = question(turn, result.interrupts, teller.asks_for)
            assert self._run is not None
            return End(state, message, checkpoint_id=self._run.checkpoint_id, pending=pending)
        if teller.reply is not None:
            return End(pb.TASK_STATE_COMPLETED, reply=teller.reply)
        if teller.rejected is not None:
            return End(
                pb.TASK_STATE_REJECTED,
                turn.said(teller.rejected or "The agent does not take this on."),
            )
        if teller.asks_for is not None:
            state, message, _ = question(turn, (), teller.asks_for)
            return End(state, message)
        if not teller.outputs and result.output is not None and not _is_there(turn, result.output):
            await teller.output(result.last_agent, result.output)
        return End(pb.TASK_STATE_COMPLETED)


def _is_there(turn: Turn, output: object) -> bool:
    """Return whether the task already has that output.

    Earlier outputs of a continued run are in the store.
    """
    if not isinstance(turn.ask, Continue) or not isinstance(output, str):
        return False
    return any(
        output == "".join(part.text for part in artifact.parts)
        for artifact in turn.log.task.artifacts
    )
