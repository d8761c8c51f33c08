"""One task, from its current state to its end, over streams that break and servers that restart.

It sends the message as a stream, then `SubscribeToTask`, then `GetTask`, which it polls if the
server does not stream. If the server cannot be reached, the request is retried a bounded number of
times in a row. A reachable server may take any time for the task. A message is sent again only if
the task or the list of tasks shows that it has not arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from ...runtime.a2a import (
    A2AClient,
    A2AConnectionError,
    A2AMessage,
    A2AProtocolError,
    A2ARequestError,
    ClientLimits,
    StreamEvent,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from ...runtime.a2a.client.pump import Pump
from ...runtime.backoff import Backoff
from ...runtime.clock import Clock, Deadline, sleep

__all__ = ["TaskStream"]

_AGAIN = Backoff(initial=0.2, maximum=10.0)
_LOOK = Backoff(initial=0.1, factor=1.6, maximum=5.0)
_GONE = "TASK_NOT_FOUND"
_MOST_STALE = 20
"""The number of times a task may repeat an answered question before it is an error."""


class TaskStream:
    """The events of one task.

    `message` starts the task, or answers its `question`. Without one, the stream follows an
    existing task.
    """

    def __init__(
        self,
        client: A2AClient,
        limits: ClientLimits,
        clock: Clock,
        *,
        task_id: str | None = None,
        message: A2AMessage | None = None,
        question: A2AMessage | None = None,
        may_have_arrived: bool = False,
    ) -> None:
        self._client = client
        self._limits = limits
        self._clock = clock
        self.task_id = task_id
        self._message = message
        self._question = question
        self._may_have_arrived = may_have_arrived
        self._is_restored = may_have_arrived
        self._looks = 0
        self._stale = 0

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield events until the task has ended or waits. The last event contains that state.

        If the server answers with a message, it is the only event.
        """
        failures = 0
        while True:
            try:
                async with aclosing(self._once()) as events:
                    async for event in events:
                        if not isinstance(event, Task):
                            failures = 0
                        yield event
                        if isinstance(event, A2AMessage) or _is_over(event):
                            return
            except A2AConnectionError as error:
                failures += 1
                if failures >= self._limits.attempts:
                    raise
                self._may_have_arrived = self._may_have_arrived or (
                    self._message is not None and error.was_sent
                )
                await self._client.forget_card()
                await sleep(_AGAIN.delay(failures - 1), self._clock)

    async def _once(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of one stream or one poll."""
        streams = (await self._client.card()).streaming
        if self._message is not None and self._may_have_arrived:
            await self._see_whether_it_has_arrived(self._message)
        message, task_id = self._message, self.task_id
        if message is not None:
            source = self._client.stream(message) if streams else self._sent(message)
        elif streams:
            assert task_id is not None
            source = self._client.subscribe(task_id)
        else:
            yield await self._look()
            return
        try:
            async with aclosing(self._watched(source)) as events:
                async for event in events:
                    yield event
        except A2ARequestError as error:
            if self._message is not None or self.task_id is None or error.reason == _GONE:
                raise
            # A task that has ended cannot be subscribed to, and a server may end the stream of a
            # running task.
            yield await self._look()
            return
        # The message may have arrived and started a task. That is checked, after a delay, before it
        # is sent again.
        if self._message is not None:
            raise A2AConnectionError(
                "the remote agent ended the stream of a message before its first event. The "
                "message may have been handled. Send it again only if that is safe."
            )
        if self.task_id is not None:
            yield await self._look()  # the stream has ended without the final state

    async def _sent(self, message: A2AMessage) -> AsyncGenerator[StreamEvent, None]:
        yield await self._client.send(message, wait=False)

    async def _see_whether_it_has_arrived(self, message: A2AMessage) -> None:
        """Drop the message if the task has received it.

        If the server does not list tasks, a process that recovers the run cannot know.
        """
        if self.task_id is not None:
            task = await self._client.get(self.task_id)
            if not task.status.state.is_paused or any(
                known.message_id == message.message_id for known in task.history
            ):
                self._message = None
            return
        try:
            found = await self._client.find(message.message_id)
        except (A2ARequestError, A2AProtocolError):
            if not self._is_restored:
                raise
            return
        if found is not None:
            self.task_id, self._message = found.id, None

    async def _look(self) -> StreamEvent:
        """Poll the task, with a growing delay."""
        assert self.task_id is not None
        if self._looks:
            await sleep(_LOOK.delay(self._looks - 1), self._clock)
        self._looks += 1
        return self._present(await self._client.get(self.task_id))

    async def _watched(
        self, source: AsyncGenerator[StreamEvent, None]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of a stream.

        After a long silence, the server is asked whether the task still exists.
        """
        pump = Pump(source)
        try:
            while True:
                try:
                    event = await pump.next(self._limits.quiet)
                except TimeoutError:
                    event = await self._asked_in_silence()
                    if event is None:
                        continue
                if event is None:
                    return
                self._message = None  # the message has arrived
                if not isinstance(event, Task | A2AMessage):
                    self._looks = 0
                self._notice(event)
                yield self._present(event)
        except (asyncio.CancelledError, GeneratorExit):
            if self.task_id is None and self._message is not None:
                await self._first_of(pump)
            raise
        finally:
            await pump.aclose()

    async def _asked_in_silence(self) -> Task | None:
        """Return the task if it has ended without an event."""
        if self.task_id is None:
            return None
        task = await self._client.get(self.task_id)
        return task if _is_over(self._present(task)) else None

    async def _first_of(self, pump: Pump[StreamEvent]) -> None:
        """Wait for the id of a task that may have been started, so that it can be canceled."""
        try:
            async with Deadline(self._limits.cancel, self._clock):
                event = await pump.next()
        except (A2AConnectionError, A2ARequestError, A2AProtocolError, TimeoutError):
            return
        if event is not None:
            self._notice(event)

    def _notice(self, event: StreamEvent) -> None:
        if not isinstance(event, A2AMessage):
            self.task_id = event.id if isinstance(event, Task) else event.task_id

    def _present(self, event: StreamEvent) -> StreamEvent:
        """Return the event.

        If the task repeats an answered question, replace its state with WORKING.
        """
        if self._question is None or not isinstance(event, Task | TaskStatusUpdateEvent):
            return event
        status, asked = event.status, self._question
        if (
            not status.state.is_paused
            or status.message is None
            or status.message.message_id != asked.message_id
            or not asked.message_id
        ):
            if status.state.is_paused or status.state.is_terminal:
                self._question = None
            return event
        self._stale += 1
        if self._stale > _MOST_STALE:
            msg = (
                f"the task {self.task_id!r} did not accept the answer, and still waits for one. "
                "Resume the run with another answer."
            )
            raise A2AProtocolError(msg)
        return replace(event, status=TaskStatus(TaskState.WORKING))


def _is_over(event: StreamEvent) -> bool:
    if not isinstance(event, Task | TaskStatusUpdateEvent):
        return False
    return event.status.state.is_terminal or event.status.state.is_paused
