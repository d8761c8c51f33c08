"""One invocation of a remote agent, from its input to its events.

The progress of the task is noted before it is shown. So the invocation continues the same task
after an interrupt, after a crash or in another process. If the invocation is abandoned, the task is
canceled, unless another process continues it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from ...runtime.a2a import (
    A2AConnectionError,
    A2AMessage,
    A2AProtocolError,
    A2ARequestError,
    AuthRequired,
    DataPart,
    RemoteInterrupt,
    RemoteQuestion,
    RemoteTaskError,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
)
from ...runtime.a2a.data.message import as_message
from ...runtime.a2a.errors import one_line
from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.clock import Deadline
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent
from ...runtime.errors import UsageError
from ...runtime.log import loggers
from ...runtime.maybe_await import maybe_await
from .outputs import Due, Outputs
from .requests import answer_message, first_message, news_since
from .task_notes import TaskNotes
from .task_stream import TaskStream

if TYPE_CHECKING:
    from .remote_agent import RemoteAgent

__all__ = ["RemoteRun"]

_MOST_QUESTIONS = 100
_LONGEST_QUESTION = 10_000
_LONGEST_MESSAGE = 1_000_000
"""The limit of a question with all its parts, because the checkpoint contains it."""


class RemoteRun:
    """One invocation, from its input to its end."""

    def __init__(self, agent: RemoteAgent, given: AgentInput, context: AgentContext) -> None:
        self._agent = agent
        self._input = given
        self._context = context
        self._door = runtime_of(context)
        self._notes = TaskNotes(self._door)
        self._who = f"the remote agent {agent.name!r}"
        self._limits = agent.limits
        self._stream: TaskStream | None = None
        self._is_over = False  # whether the task has ended, or waits
        self._count = 0
        self._is_first_look = True
        self._continues = False  # whether the message goes to an existing context

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Yield all events of the invocation."""
        try:
            async with aclosing(self._play()) as events:
                async for event in events:
                    yield event
        except BaseException as error:
            if not isinstance(error, A2AConnectionError | A2ARequestError):
                await self._give_up()
            raise

    async def _play(self) -> AsyncGenerator[AgentEvent, None]:
        again = True
        while again:
            again = False
            stream = self._stream = await self._begin()
            outputs = Outputs(
                self._who,
                self._limits,
                self._notes,
                self._agent.output_converter,
                streaming=self._input.streaming,
            )
            try:
                async with aclosing(stream.events()) as events:
                    async for event in events:
                        if await self._was_canceled_before(event):
                            again = True
                            break
                        async with aclosing(self._shown(event, outputs)) as shown:
                            async for one in shown:
                                yield one
            except A2ARequestError:
                if not self._continues or self._notes.task_id is not None:
                    raise
                again = self._begins_anew()

    async def _shown(
        self, event: StreamEvent, outputs: Outputs
    ) -> AsyncGenerator[AgentEvent, None]:
        await self._notice(event)
        for piece in self._pieces(event, outputs):
            yield piece
        for shown, mark in await self._due(event, outputs):
            if mark is not None:
                mark()
            yield self._remembered(shown, event.context_id)
        if not self._is_over or isinstance(event, A2AMessage | TaskArtifactUpdateEvent):
            return
        if event.status.state.is_paused:
            interrupt = self._interrupt(event.status)
            self._notes.asks()
            yield interrupt
        elif event.status.state is not TaskState.COMPLETED:
            raise await self._failure(event.status)

    # --- start ---

    async def _begin(self) -> TaskStream:
        """Return the stream of the task: new, waiting for an available answer, or running."""
        client = await self._agent.client()
        notes, resume, clock = self._notes, self._context.resume, self._door.clock
        await self._door.make_sure()
        if notes.task_id is None:
            is_known = notes.message_id is not None
            message = await self._first()
            await notes.save()
            return TaskStream(
                client, self._limits, clock, message=message, may_have_arrived=is_known
            )
        if notes.ask is None or resume is None or not resume.is_target:
            return TaskStream(client, self._limits, clock, task_id=notes.task_id)
        asked = resume.info.info if isinstance(resume.info, AuthRequired) else resume.info
        message = answer_message(resume.data, asked, notes.ask, self._agent.name)
        message = replace(message, task_id=notes.task_id, context_id=notes.context_id)
        may_have_arrived = notes.reply == message.message_id
        notes.will_reply(message.message_id)
        await notes.save()
        question = asked.message if isinstance(asked, RemoteInterrupt) else None
        return TaskStream(
            client,
            self._limits,
            clock,
            task_id=notes.task_id,
            message=message,
            question=question,
            may_have_arrived=may_have_arrived,
        )

    async def _first(self) -> A2AMessage:
        """Return the message that starts the task."""
        name, messages = self._agent.name, self._input.messages
        known = self._context.session.get(self._key)
        last = known if isinstance(known, dict) else {}
        news = news_since(messages, last.get("message_id"))
        given = tuple(news) if news else messages
        if self._agent.input_converter is not None:
            made = await maybe_await(self._agent.input_converter(given))
            try:
                message = as_message(made, "user")
            except UsageError as error:
                msg = (
                    f"agent {name!r}: input_converter must return an A2AMessage, a Message "
                    f"or a string, got {made!r}."
                )
                raise UsageError(msg, agent=name) from error
        else:
            message = first_message(given, name)
        context_id = message.context_id or (last.get("context_id") if news else None)
        self._continues = bool(news)
        return replace(message, message_id=self._notes.will_send(), context_id=context_id)

    def _begins_anew(self) -> bool:
        """Start over in a new context, with the whole conversation.

        The server has lost the old one.
        """
        self._context.session[self._key] = None
        self._notes.forget()
        self._continues = False
        return True

    @property
    def _key(self) -> str:
        return f"a2a:{self._agent.name}"

    # --- received events ---

    async def _was_canceled_before(self, event: StreamEvent) -> bool:
        """Return whether the task was canceled with an earlier attempt of this run.

        If so, the resumed run starts a new task.
        """
        is_first, self._is_first_look = self._is_first_look, False
        if not is_first or not self._door.invocation.restored:
            return False
        if not isinstance(event, Task) or event.status.state is not TaskState.CANCELED:
            return False
        self._notes.forget()
        return True

    async def _notice(self, event: StreamEvent) -> None:
        self._count += 1
        if self._count > self._limits.events:
            msg = (
                f"{self._who} sends more than {self._limits.events:,} events, which is the "
                "limit. If that is intended, raise ClientLimits(events=...)."
            )
            raise A2AProtocolError(msg)
        if isinstance(event, A2AMessage):
            return
        task_id = event.id if isinstance(event, Task) else event.task_id
        if self._notes.task_id != task_id or self._notes.ask is not None:
            self._notes.began(task_id, event.context_id)
            self._notes.answered()
            await self._notes.save()

    def _pieces(self, event: StreamEvent, outputs: Outputs) -> list[AgentEvent]:
        """Return the events to show while the task streams."""
        if isinstance(event, TaskArtifactUpdateEvent):
            return outputs.update(event)
        return outputs.snapshot(event) if isinstance(event, Task) else []

    async def _due(self, event: StreamEvent, outputs: Outputs) -> list[Due]:
        """Return the messages that are complete with this event."""
        if isinstance(event, A2AMessage):
            self._is_over = True
            return await outputs.message(event)
        if isinstance(event, TaskArtifactUpdateEvent):
            return await outputs.whole(is_over=False, only=event.artifact.artifact_id)
        status = event.status
        state = status.state
        if state is TaskState.WORKING:
            return await outputs.working(status)
        if not (state.is_terminal or state.is_paused):
            return []
        self._is_over = True
        due = await outputs.whole(is_over=state is TaskState.COMPLETED or state.is_paused)
        if state is TaskState.COMPLETED and status.message is not None:
            due += await outputs.message(status.message)
        return due

    def _remembered(self, event: AgentEvent, context_id: str | None) -> AgentEvent:
        """Store the remote context and the last message that it knows.

        The next request sends only newer messages.
        """
        if event.message is not None and context_id:
            self._context.session[self._key] = {
                "context_id": context_id,
                "message_id": event.message.id,
            }
        return event

    def _interrupt(self, status: TaskStatus) -> AgentEvent:
        message = status.message
        if message is not None and len(repr(message)) > _LONGEST_MESSAGE:
            self._is_over = False
            msg = (
                f"{self._who} asks a question of more than {_LONGEST_MESSAGE:,} characters, "
                "which is too long to store. The remote agent must ask a shorter one."
            )
            raise A2AProtocolError(msg)
        questions: list[RemoteQuestion] = []
        for part in () if message is None else message.parts:
            data = part.data if isinstance(part, DataPart) else None
            if (
                isinstance(data, dict)
                and isinstance(data.get("interruptId"), str)
                and len(questions) < _MOST_QUESTIONS
            ):
                questions.append(
                    RemoteQuestion(data["interruptId"], data.get("info"), data.get("options"))
                )
        text = "" if message is None else message.text[:_LONGEST_QUESTION]
        asked = RemoteInterrupt(
            text, tuple(questions), self._notes.task_id or "", self._notes.context_id or "", message
        )
        return self._context.interrupt(
            AuthRequired(asked) if status.state is TaskState.AUTH_REQUIRED else asked
        )

    async def _failure(self, status: TaskStatus) -> RemoteTaskError:
        """Make the error of a failed task. Forget the task, so that a retry starts another one."""
        task_id = self._notes.task_id or ""
        self._notes.forget()
        await self._notes.save()
        said = "" if status.message is None else one_line(status.message.text)
        how = {
            TaskState.FAILED: "failed",
            TaskState.REJECTED: "was rejected",
            TaskState.CANCELED: "was canceled",
        }[status.state]
        return RemoteTaskError(
            f"the task of {self._who} {how}{': ' + said if said else ''}", status.state, task_id
        )

    # --- abandoning the task ---

    async def _give_up(self) -> None:
        """Cancel the task, unless another process continues it. The wait is bounded."""
        stream = self._stream
        task_id = self._notes.task_id or (None if stream is None else stream.task_id)
        if self._is_over or task_id is None or self._door.continues_elsewhere:
            return
        try:
            client = await self._agent.client()
            async with Deadline(self._limits.cancel, self._door.clock):
                await client.cancel(task_id)
        except (A2AConnectionError, A2ARequestError, A2AProtocolError, TimeoutError) as error:
            loggers.remote.warning(
                "Task %s of %s could not be cancelled: %s",
                task_id,
                self._who,
                one_line(str(error)) or type(error).__name__,
            )
