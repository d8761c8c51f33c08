"""`ScriptedRealtimeModel`, a model with scripted replies for tests.

Its steps and errors match those of the Agents SDK. It opens no socket and waits for no timer.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypeAlias, TypedDict
from urllib.parse import urlsplit

from ...runtime.errors import ModelError
from .config import RealtimeSessionModelSettings
from .model import RealtimeConnection, RealtimeModelConfig, RealtimePlaybackTracker
from .model_events import RealtimeModelEvent
from .model_inputs import RealtimeModelSendEvent

__all__ = [
    "RealtimeConnectCall",
    "RealtimeScriptError",
    "RealtimeStep",
    "ScriptedRealtimeModel",
    "UnconsumedRealtimeSteps",
    "UnexpectedRealtimeSend",
]

RealtimeSendMatcher: TypeAlias = RealtimeModelSendEvent | type | Callable[[Any], bool]


class RealtimeScriptError(AssertionError):
    """The program does not follow the script."""


class UnexpectedRealtimeSend(RealtimeScriptError):
    """A request was sent that the script does not expect."""

    def __init__(self, message: str, *, actual: Any, expected: Any) -> None:
        super().__init__(f"{message} Sent: {actual!r}. Expected: {expected!r}.")
        self.actual = actual
        self.expected = expected


class UnconsumedRealtimeSteps(RealtimeScriptError):
    """Some steps were not used."""

    def __init__(self, remaining_steps: Sequence[RealtimeStep]) -> None:
        super().__init__(
            f"{len(remaining_steps)} steps of the script were not used: {list(remaining_steps)!r}"
        )
        self.remaining_steps = tuple(remaining_steps)


@dataclass(frozen=True)
class RealtimeStep:
    """One expected request, and the model's reaction.

    `expect` is a value, a type, or a predicate. The reaction is a list of events, or an error that
    is raised when sending.
    """

    expect: RealtimeSendMatcher
    emit: Sequence[RealtimeModelEvent] = ()
    error: Exception | None = None


class RealtimeConnectCall(TypedDict):
    """The options of a session's connect, without secrets."""

    api_key_provided: bool
    headers_provided: bool
    url: NotRequired[str]
    initial_model_settings: NotRequired[RealtimeSessionModelSettings]
    playback_tracker: NotRequired[RealtimePlaybackTracker]
    call_id: NotRequired[str]


class ScriptedRealtimeModel:
    """A model that follows a script.

    `emit` adds events. `drop` ends the connection like a network failure, and the next connection
    continues the script.
    """

    def __init__(
        self,
        steps: Sequence[RealtimeStep] = (),
        *,
        connect_events: Sequence[RealtimeModelEvent] = (),
        connect_error: Exception | None = None,
        close_error: Exception | None = None,
        strict: bool = True,
    ) -> None:
        self._steps = list(steps)
        self._connect_events = tuple(connect_events)
        self._connect_error = connect_error
        self._close_error = close_error
        self._strict = strict
        self._connection: _ScriptedConnection | None = None
        self.sent_events: list[RealtimeModelSendEvent] = []
        self.connect_calls: list[RealtimeConnectCall] = []
        self.close_calls = 0
        self._changed = asyncio.Event()

    @property
    def remaining_steps(self) -> tuple[RealtimeStep, ...]:
        """The steps that were not used yet."""
        return tuple(self._steps)

    @property
    def connected(self) -> bool:
        """Whether a session is connected."""
        return self._connection is not None and not self._connection.ended

    def assert_complete(self) -> None:
        """Raise if steps are left over."""
        if self._steps:
            raise UnconsumedRealtimeSteps(self._steps)

    async def connect(self, options: RealtimeModelConfig) -> RealtimeConnection:
        self.connect_calls.append(_connect_call(options))
        if self._connect_error is not None:
            error, self._connect_error = self._connect_error, None
            raise error
        connection = self._connection = _ScriptedConnection(self)
        for event in self._connect_events:
            connection.put(event)
        return connection

    async def emit(self, *events: RealtimeModelEvent) -> None:
        """Emit these events. Return when the session has processed them."""
        connection = self._connection
        if connection is None or connection.ended:
            msg = (
                "The scripted model cannot emit events while it is disconnected. Enter the "
                "session first."
            )
            raise RealtimeScriptError(msg)
        for event in events:
            connection.put(event)
        await connection.taken()

    async def drop(self, error: Exception | None = None) -> None:
        """End the connection like a network failure."""
        connection = self._connection
        if connection is not None:
            connection.put(
                error
                or ModelError(
                    "the scripted model lost its connection", kind="connection", retryable=True
                )
            )
            await connection.taken()

    async def until_sent(self, count: int) -> list[RealtimeModelSendEvent]:
        """Wait until `count` requests were sent in total."""
        while len(self.sent_events) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.sent_events

    def take(self, event: RealtimeModelSendEvent) -> None:
        """Record a sent request. For this module only."""
        step = self._steps[0] if self._steps else None
        if step is None or not _matches(step.expect, event):
            if self._strict and (step is not None or self._steps or self.connect_calls):
                said = (
                    "no scripted steps remain."
                    if step is None
                    else "event did not match the next scripted expectation."
                )
                self._note(event)
                msg = f"Unexpected Realtime send: {said}"
                raise UnexpectedRealtimeSend(
                    msg, actual=event, expected=None if step is None else step.expect
                )
            self._note(event)
            return
        self._steps.pop(0)
        self._note(event)
        if step.error is not None:
            raise step.error
        for answer in step.emit:
            assert self._connection is not None
            self._connection.put(copy.copy(answer))

    def _note(self, event: RealtimeModelSendEvent) -> None:
        self.sent_events.append(event)
        self._changed.set()

    def closed(self) -> None:
        """Record that a connection was closed. For this module only."""
        self.close_calls += 1
        if self._close_error is not None:
            error, self._close_error = self._close_error, None
            raise error


class _ScriptedConnection:
    keeps_conversation = False

    def __init__(self, model: ScriptedRealtimeModel) -> None:
        self._model = model
        self._queue: asyncio.Queue[RealtimeModelEvent | Exception | None] = asyncio.Queue()
        self.ended = False

    def put(self, event: RealtimeModelEvent | Exception | None) -> None:
        self._queue.put_nowait(event)

    async def taken(self) -> None:
        """Wait until the session has processed all events."""
        await self._queue.join()

    async def send(self, event: RealtimeModelSendEvent) -> None:
        if self.ended:
            msg = (
                "The scripted model cannot receive events while it is disconnected. Send them "
                "after it has reconnected."
            )
            raise ModelError(msg, kind="connection", retryable=True)
        self._model.take(event)

    async def events(self) -> AsyncIterator[RealtimeModelEvent]:
        while True:
            event = await self._queue.get()
            try:
                if event is None:
                    return
                if isinstance(event, Exception):
                    self.ended = True
                    raise event
                yield event
            finally:
                self._queue.task_done()

    async def close(self) -> None:
        if not self.ended:
            self.ended = True
            self.put(None)
        self._model.closed()


def _matches(expect: RealtimeSendMatcher, event: RealtimeModelSendEvent) -> bool:
    if isinstance(expect, type):
        return isinstance(event, expect)
    if callable(expect):
        return bool(expect(event))
    return bool(event == expect)


def _connect_call(options: RealtimeModelConfig) -> RealtimeConnectCall:
    made: RealtimeConnectCall = {
        "api_key_provided": "api_key" in options,
        "headers_provided": "headers" in options,
    }
    if "url" in options:
        where = urlsplit(options["url"])
        made["url"] = f"{where.scheme}://{where.netloc.rpartition('@')[2]}{where.path}"
    if "initial_model_settings" in options:
        made["initial_model_settings"] = options["initial_model_settings"]
    if "playback_tracker" in options:
        made["playback_tracker"] = options["playback_tracker"]
    if "call_id" in options:
        made["call_id"] = options["call_id"]
    return made
