"""`RealtimeSession`, the handle of a realtime session.

The state belongs to an actor. The handle only sends messages to it, and receives its events.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from operator import attrgetter
from threading import get_ident
from types import TracebackType
from typing import Any, Self

from ...runtime.agent.hooks import RunHooks, hooks_of_a_run
from ...runtime.agent.run_context import RunContext
from ...runtime.agent.session_values import SessionValues
from ...runtime.data.chat import Message, Usage, new_id
from ...runtime.durability.leases import Busy
from ...runtime.durability.store_access import StoreAccess
from ...runtime.errors import UsageError
from ...runtime.system.system import ActorSystem
from .agent import RealtimeAgent
from .config import RealtimeRunConfig, RealtimeUserInput, checked_config
from .core.sdk_model import adapted
from .core.session_actor import Report, SessionActor, deliver_report
from .core.session_core import SessionCore
from .events import RealtimeSessionEvent, RealtimeToolApprovalRequired
from .items import RealtimeItem, build_items
from .model import RealtimeModelConfig, RealtimeModelListener
from .model_events import RealtimeModelEvent
from .model_inputs import RealtimeModelSendEvent
from .state.replay import items_of_messages

__all__ = ["RealtimeSession", "SessionModel"]


class SessionModel:
    """The connection of one session, for use by a program: `session.model`."""

    def __init__(self, session: RealtimeSession) -> None:
        self._session = session

    async def send_event(self, event: RealtimeModelSendEvent) -> None:
        """Send an event, in order with the session's own."""
        await self._session.tell_core("inputs.send_event", event)

    def add_listener(self, listener: RealtimeModelListener) -> None:
        """Pass the connection's events to this listener."""
        self._session.listeners.append(listener)

    def remove_listener(self, listener: RealtimeModelListener) -> None:
        """Stop passing events to this listener."""
        if listener in self._session.listeners:
            self._session.listeners.remove(listener)


class RealtimeSession:
    """A spoken conversation.

    Use `async with`, or call `enter()` and `close()`. Iterate it for its events.
    """

    def __init__(
        self,
        model: Any,
        agent: RealtimeAgent,
        context: Any = None,
        model_config: RealtimeModelConfig | None = None,
        run_config: RealtimeRunConfig | None = None,
        *,
        store: Any = None,
        system: ActorSystem | None = None,
        hooks: RunHooks | None = None,
        session_id: str | None = None,
        history: Sequence[RealtimeItem | Message] = (),
        busy: Busy = "reject",
    ) -> None:
        if not isinstance(agent, RealtimeAgent):
            msg = f"RealtimeSession: agent must be a RealtimeAgent, got {agent!r}."
            raise UsageError(msg)
        self.id = session_id or new_id()
        self.listeners: list[RealtimeModelListener] = []
        self._given_model = model
        self._model = adapted(model)
        self._agent = agent
        self._model_config: RealtimeModelConfig = dict(model_config or {})  # type: ignore[assignment]  # a copy
        self._config = checked_config(run_config)
        self._access = None if store is None else StoreAccess(store)
        self._system = system
        self._own_system: ActorSystem | None = None
        self._busy: Busy = busy
        self._history = history
        self._context = RunContext(
            self.id, session_id, SessionValues(), agent.fixed_options, hooks_of_a_run(hooks)
        )
        self._context.context = context
        self._core: SessionCore | None = None
        self._entered = False

    def __repr__(self) -> str:
        return f"<RealtimeSession {self.id!r}>"

    def __del__(self) -> None:
        core = self._core if hasattr(self, "_core") else None
        if core is not None and core.lifecycle.closer is None:
            warnings.warn(
                f"{self!r} was never closed: use `async with`, or await close()",
                ResourceWarning,
                stacklevel=2,
            )

    # --- opening and closing ---

    async def __aenter__(self) -> Self:
        if self._entered:
            msg = "the realtime session has been entered already. Get another one: runner.run()."
            raise UsageError(msg)
        self._entered = True
        build_items()
        system = self._system
        if system is None:
            system = self._own_system = ActorSystem(f"session-of-{self._agent.name}")
            system.bind(asyncio.get_running_loop(), for_one=True)
        core = self._core = SessionCore(
            self._agent, self._model, self._model_config, self._config, self._context, system
        )
        items = self._seed()
        core.ref = system.spawn(SessionActor, core)
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        core.child(
            core.lifecycle.open(self._access, self.id, self._busy, items),
            lambda found, error: core.lifecycle.opened(found, error, opened),
            "opening",
        )
        try:
            await opened
        except BaseException:
            await self.close()
            raise
        return self

    def _seed(self) -> list[RealtimeItem]:
        messages = [one for one in self._history if isinstance(one, Message)]
        items = [one for one in self._history if not isinstance(one, Message)]
        return [*items_of_messages(messages), *items]

    async def enter(self) -> Self:
        """Open the session. `close()` ends it."""
        return await self.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session. Any task may call this, any number of times."""
        core = self._core
        if core is None:
            return
        core.lifecycle.finish(None)
        assert core.lifecycle.closer is not None
        await asyncio.shield(core.lifecycle.closer)

    async def wait_closed(self) -> None:
        """Wait until the session has ended. Raise the error that ended it, if any."""
        core = self._open_core()
        await asyncio.shield(core.lifecycle.closed)
        if core.lifecycle.end_error is not None:
            raise core.lifecycle.end_error

    def _open_core(self) -> SessionCore:
        if self._core is None:
            msg = (
                "the realtime session is not open. Open it with `async with session:` or `await "
                "session.enter()`."
            )
            raise UsageError(msg)
        return self._core

    # --- output ---

    async def __aiter__(self) -> AsyncIterator[RealtimeSessionEvent]:
        core = self._open_core()
        while True:
            event = await core.events.get()
            if event is None:
                return
            if self.listeners and event.type == "raw_model_event":
                for listener in tuple(self.listeners):
                    await listener.on_event(event.data)
            yield event

    @property
    def history(self) -> tuple[RealtimeItem, ...]:
        """The conversation so far, as far as it is known."""
        return () if self._core is None else self._core.conversation.snapshot()

    @property
    def current_agent(self) -> RealtimeAgent:
        """The agent in charge."""
        current = getattr(self._core, "current", None)
        return self._agent if current is None else current.agent

    @property
    def pending_approvals(self) -> tuple[RealtimeToolApprovalRequired, ...]:
        """The calls that wait for approval."""
        core = self._core
        if core is None:
            return ()
        info = core.events.info
        return tuple(
            RealtimeToolApprovalRequired(
                one.settings.agent, one.tool, one.id, one.arguments, info()
            )
            for one in core.calls.pending
        )

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return self._context.usage

    @property
    def context(self) -> RunContext:
        """The context for tools, hooks and guardrails.

        `context.context` is the program's own object.
        """
        return self._context

    @property
    def model(self) -> SessionModel:
        """This session's connection."""
        return SessionModel(self)

    # --- input ---

    async def tell_core(self, name: str, *args: Any) -> Any:
        """Have the actor call a method. Raise its error. For this package only."""
        core = self._open_core()
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def work() -> None:
            try:
                result = attrgetter(name)(core)(*args)
            except Exception as error:  # noqa: BLE001 -- raised in the caller
                done.set_exception(error)
            else:
                done.set_result(result)

        if (
            core.is_closing
            or not deliver_report(core.ref, Report(work, ()))
            or (not done.done() and core.is_closing)
        ):
            msg = "the session is closed and can no longer send. Open another one."
            raise UsageError(msg)
        return await done

    async def send_message(
        self, message: RealtimeUserInput, *, interrupt: bool = False, respond: bool = True
    ) -> None:
        """Send a user message: a string, or parts.

        With `respond=False`, it is not answered now.
        """
        _check_message(message)
        await self.tell_core("inputs.send_message", message, interrupt, respond)

    async def send_audio(self, audio: bytes, *, commit: bool = False) -> None:
        """Send audio.

        Waits for space in the buffer. `commit` ends the turn, if the server does not detect its
        end.
        """
        core = self._open_core()
        for piece in _pieces(core, audio):
            await self._send_piece(core, piece)
        if commit:
            core.calls.user_spoke()
            core.outbox.put_audio(b"", commit=True)

    async def _send_piece(self, core: SessionCore, audio: bytes) -> None:
        outbox = core.outbox
        if outbox.overflow == "drop_oldest" or not core.link.is_ready:
            outbox.make_room(len(audio))
        waited = False
        while not core.is_closing and (
            (outbox.has_waiters and not waited) or not outbox.reserve(len(audio))
        ):
            await outbox.room()
            waited = True
            if not core.link.is_ready:
                outbox.make_room(len(audio))
        if core.is_closing:
            msg = "the session is closed and can no longer send. Open another one."
            raise UsageError(msg)
        outbox.put_audio(bytes(audio), commit=False)

    def send_audio_nowait(self, audio: bytes) -> bool:
        """Send audio, from any thread. Return False if the buffer is full."""
        core = self._open_core()
        core.input_format.check(audio)
        if not audio or core.is_closing:
            return bool(not audio)
        data = bytes(audio)
        if not core.outbox.reserve(len(data)):
            return False
        if core.system.dispatcher.thread == get_ident():
            core.outbox.put_audio(data, commit=False)
        else:
            core.system.loop.call_soon_threadsafe(lambda: core.outbox.put_audio(data, commit=False))
        return True

    async def interrupt(self) -> None:
        """Interrupt the current response."""
        await self.tell_core("inputs.interrupt")

    async def update_agent(self, agent: RealtimeAgent) -> None:
        """Put another agent in charge.

        Returns when its settings are in force. Raises if they were refused.
        """
        if not isinstance(agent, RealtimeAgent):
            msg = f"update_agent: agent must be a RealtimeAgent, got {agent!r}."
            raise UsageError(msg)
        core = self._open_core()
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.tell_core("change_agent", agent, waits)
        closed = asyncio.ensure_future(asyncio.shield(core.lifecycle.closed))
        await asyncio.wait((waits, closed), return_when=asyncio.FIRST_COMPLETED)
        closed.cancel()
        if not waits.done():
            msg = (
                "update_agent: the session was closed before the agent changed. Open another "
                "session with that agent"
            )
            raise UsageError(msg)
        waits.result()

    async def approve_tool_call(
        self,
        call_id: str,
        *,
        always: bool = False,
        arguments: str | Mapping[str, object] | None = None,
    ) -> None:
        """Approve a call, optionally with other arguments.

        `always` also approves all later calls of that tool in this session.
        """
        await self.tell_core("approve", call_id, always, arguments)

    async def reject_tool_call(
        self, call_id: str, *, always: bool = False, rejection_message: str | None = None
    ) -> None:
        """Reject a call.

        The model receives `rejection_message`, or a default. `always` also rejects all later calls
        of that tool in this session.
        """
        await self.tell_core("reject", call_id, always, rejection_message)

    async def on_event(self, event: RealtimeModelEvent) -> None:
        """Handle an event from a model in the style of the SDK."""
        core = self._open_core()
        deliver_report(core.ref, Report(core.inbound.take, (core.link.epoch, event)))


def _pieces(core: SessionCore, audio: bytes) -> list[bytes]:
    """Split the audio into chunks that fit into the buffer."""
    found = core.input_format
    found.check(audio)
    size = max(found.sample_bytes, found.size(core.config.get("max_input_audio_ms", 2_000)))
    return [bytes(audio[start : start + size]) for start in range(0, len(audio), size)]


def _check_message(message: object) -> None:
    if isinstance(message, str):
        return
    if (
        not isinstance(message, Mapping)
        or message.get("role") != "user"
        or not isinstance(message.get("content"), list | tuple)
    ):
        msg = (
            "send_message: message must be a string, or a message {'type': 'message', "
            f"'role': 'user', 'content': [...]}}, got {message!r}."
        )
        raise UsageError(msg)
    for part in message["content"]:
        if not isinstance(part, Mapping) or part.get("type") not in ("input_text", "input_image"):
            msg = (
                "send_message(): content must contain {'type': 'input_text', ...} or "
                f"{{'type': 'input_image', ...}}, got {part!r}."
            )
            raise UsageError(msg)
