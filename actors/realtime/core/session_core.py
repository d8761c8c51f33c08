"""One session: its state, its parts, and the services that the parts share.

The services are child tasks, timers, output to the consumer, and the settings of the agent in
charge. Only `settings_of` waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ....runtime.agent.run_context import RunContext
from ....runtime.clock import Clock, Timer
from ....runtime.data.chat import Message, new_id
from ....runtime.data.outcome import FINISHED
from ....runtime.errors import OffbookError, UsageError
from ....runtime.tasks import guarded, start_task
from ....runtime.tracing import Span, span
from ..agent import RealtimeAgent
from ..audio_formats import PCM16, AudioFormat
from ..config import RealtimeRunConfig
from ..events import (
    RealtimeError,
    RealtimeHistoryAdded,
    RealtimeHistoryUpdated,
    RealtimeRawModelEvent,
)
from ..items import AssistantMessageItem, RealtimeItem
from ..model import RealtimeModel, RealtimeModelConfig
from ..state.conversation import Conversation
from ..state.event_queue import EventQueue, Kind
from ..state.outbox import Outbox
from ..state.playback import Playback
from ..state.settings import AgentSettings, agent_settings
from .calls import Calls
from .guards import InputGuards, OutputGuards
from .handoffs import Handoffs
from .inbound import Inbound
from .inputs import Inputs
from .lifecycle import Lifecycle
from .link import Link
from .notes import Notes
from .record import Record
from .responses import Response, Responses
from .session_actor import Report, deliver_report
from .watching import Watching

if TYPE_CHECKING:
    from ....runtime.system.system import ActorSystem

__all__ = ["SessionCore"]

T = TypeVar("T")

_LIVE_SECONDS: Final = 0.1
"""The minimum interval between history updates while a text grows."""


class _Later:
    """A timer that is removed from its set when it is cancelled."""

    __slots__ = ("_among", "inner")

    def __init__(self, among: set[Timer]) -> None:
        self._among = among
        self.inner: Timer | None = None
        among.add(self)

    def cancel(self) -> None:
        self._among.discard(self)
        if self.inner is not None:
            self.inner.cancel()


class SessionCore:
    """One session: its state, its parts, and what the parts share."""

    current: AgentSettings
    """The settings of the agent in charge."""
    in_force: AgentSettings
    """The settings that the server has."""

    def __init__(
        self,
        agent: RealtimeAgent,
        model: RealtimeModel,
        model_config: RealtimeModelConfig,
        config: RealtimeRunConfig,
        context: RunContext,
        system: ActorSystem,
    ) -> None:
        self.model = model
        self.model_config = model_config
        self.config = config
        self.context = context
        self.system = system
        self.clock: Clock = system.clock
        self.ref: Any = None  # the actor's ref
        self.is_closing = False
        self.activity = 0
        self.is_speaking = False
        self.speech_ended_at: float | None = None
        self.most_audio_ms = config.get("max_output_audio_ms", 120_000)
        self.record: Record | None = None
        self.children: set[asyncio.Task[None]] = set()
        self.timers: set[Timer] = set()
        self.conversation = Conversation()
        self.playback = Playback(self.clock.monotonic, model_config.get("playback_tracker"))
        self.outbox = Outbox(
            config.get("max_input_audio_ms", 2_000), config.get("input_overflow", "block")
        )
        self.events = EventQueue(context, config.get("event_buffer", 1_024), self._audio_taken)
        self._held: list[
            tuple[int, Callable[[], object]]
        ] = []  # callbacks that wait until a record is stored
        self._grown: dict[str, None] = {}
        self._grown_at = 0.0
        self._growth_timer: Timer | None = None
        self.agent = agent
        self.responses = Responses(self)
        self.calls = Calls(self)
        self.handoffs = Handoffs(self)
        self.output_guards = OutputGuards(self)
        self.input_guards = InputGuards(self)
        self.watching = Watching(self)
        self.link = Link(self)
        self.inbound = Inbound(self)
        self.notes = Notes(self)
        self.inputs = Inputs(self)
        self.lifecycle = Lifecycle(self)
        self._voice: Any = None  # of the connection
        self._told_voices: list[Any] = []

    # --- children ---

    def span(self, name: str, **attributes: str | float | bool | list[str]) -> Span:
        """Open a span, unless the config disables tracing."""
        return Span() if self.config.get("tracing_disabled", False) else span(name, **attributes)

    def now(self) -> float:
        return self.clock.monotonic()

    def report(self, what: Callable[..., object], *args: Any) -> None:
        """Have the session's actor call a function. Called by child tasks."""
        deliver_report(self.ref, Report(what, args))

    def child(
        self,
        work: Coroutine[Any, Any, T],
        then: Callable[[T | None, BaseException | None], object] | None,
        name: str,
    ) -> asyncio.Task[None]:
        """Start a child task of the session.

        `then` is called, as a message, with its result or its error. Without `then`, an error is
        shown.
        """
        task = start_task(self._told(work, then, name), name, name=f"realtime {name}")
        self.children.add(task)
        task.add_done_callback(self.children.discard)
        # Closes a coroutine whose task was cancelled before its first step.
        task.add_done_callback(lambda _: work.close())
        return task

    async def _told(
        self,
        work: Coroutine[Any, Any, T],
        then: Callable[[T | None, BaseException | None], object] | None,
        name: str,
    ) -> None:
        try:
            result = await guarded(work, name)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling() or then is None:
                raise
            self.report(then, None, error)
        except Exception as error:  # noqa: BLE001 -- reported to the session
            if then is not None:
                self.report(then, None, error)
            else:
                self.report(self.error, error)
        else:
            if then is not None:
                self.report(then, result, None)

    def later(self, seconds: float, what: Callable[..., object], *args: Any) -> Timer:
        """Have the session's actor call a function after a delay."""
        timer = _Later(self.timers)

        def due() -> None:
            self.timers.discard(timer)
            if not self.is_closing:
                self.report(what, *args)

        timer.inner = self.clock.call_later(seconds, due)
        return timer

    def new_item_id(self) -> str:
        """Return a new id in the protocol's format."""
        return f"item_{new_id()}"[:32]

    # --- to the consumer ---

    def show(self, kind: Callable[..., Any], *, lane: Kind = "plain", **fields: Any) -> None:
        """Show an event, after all earlier records are stored."""
        if self._held or (self.record is not None and self.record.is_pending):
            self.after_write(lambda: self.show_now(kind, lane=lane, **fields))
        else:
            self.show_now(kind, lane=lane, **fields)

    def show_now(self, kind: Callable[..., Any], *, lane: Kind = "plain", **fields: Any) -> None:
        """Show an event now, before those that wait for the store."""
        if not self.events.has_ended:
            self.events.put(kind(info=self.events.info(), **fields), lane)

    def show_raw(self, data: Any) -> None:
        """Show an event about the connection itself."""
        if self.config.get("raw_events", "model") != "none":
            self.show_now(RealtimeRawModelEvent, lane="raw", data=data)

    def after_write(self, then: Callable[[], object]) -> None:
        """Call `then` once all earlier records are stored."""
        record = self.record
        if record is None or (not record.is_pending and not self._held):
            then()
        else:
            self._held.append((record.last, then))

    def was_written(self) -> None:
        """Call the functions whose records are stored now."""
        record = self.record
        assert record is not None
        while self._held and self._held[0][0] <= record.written:
            self._held.pop(0)[1]()

    def drop_held(self) -> None:
        """Drop the events that wait for the store."""
        self._held.clear()

    def show_all_held(self) -> None:
        """Show the waiting events whose records are stored, and drop the others."""
        written = 0 if self.record is None else self.record.written
        while self._held:
            number, then = self._held.pop(0)
            if number <= written:
                then()

    def error(
        self, error: BaseException, code: str | None = None, call_id: str | None = None
    ) -> None:
        """Show an error after which the session continues."""
        if not self.is_closing:
            self.show(RealtimeError, error=error, code=code, call_id=call_id)

    def is_known(self, error: BaseException) -> bool:
        return isinstance(error, OffbookError)

    @property
    def agent_name(self) -> str | None:
        current = getattr(self, "current", None)
        return None if current is None else str(current.agent.name)

    # --- the history ---

    def snapshot(self) -> Sequence[RealtimeItem]:
        return self.conversation.snapshot()

    def put_item(self, item: RealtimeItem) -> None:
        """Add or replace an item, and show the change."""
        if self.conversation.put(item):
            found = self.conversation.get(item.item_id)
            self.show_added(item if found is None else found)
        else:
            self.history_changed(item.item_id)

    def show_added(self, item: RealtimeItem) -> None:
        self.show(RealtimeHistoryAdded, item=item)

    def history_changed(self, *item_ids: str) -> None:
        self.show(RealtimeHistoryUpdated, lane="history", history=self.snapshot, changed=item_ids)

    def history_grew(self, item_id: str) -> None:
        """Show that a text has grown, at most once per interval."""
        if self.config.get("history_updates", "live") != "live":
            return
        self._grown[item_id] = None
        wait = self._grown_at + _LIVE_SECONDS - self.now()
        if wait <= 0:
            self._say_growth()
        elif self._growth_timer is None:
            self._growth_timer = self.later(wait, self._say_growth)

    def _say_growth(self) -> None:
        if self._growth_timer is not None:
            self._growth_timer.cancel()
            self._growth_timer = None
        if self._grown:
            self._grown_at = self.now()
            grown = tuple(self._grown)
            self._grown.clear()
            self.history_changed(*grown)

    # --- audio ---

    def _audio_taken(self, event: Any, ms: float) -> None:
        self.playback.taken(event.item_id, event.content_index, ms)

    @property
    def input_format(self) -> AudioFormat:
        found: AudioFormat = self.in_force.flat.get("input_audio_format", PCM16)
        return found

    # --- hooks ---

    def hooks(self, name: str, agent: RealtimeAgent, *args: object) -> None:
        """Call a hook of the session and of the agent."""
        self.watching.call(name, agent.hooks, *args)

    def handoff_hooks(self, source: RealtimeAgent, target: RealtimeAgent) -> None:
        self.watching.handoff(source, target)

    def said_in(self, response: Response) -> Message:
        """Return the last message of the assistant."""
        del response
        for item in reversed(self.conversation.snapshot()):
            if isinstance(item, AssistantMessageItem):
                return Message.assistant(self.conversation.text(item.item_id))
        return Message.assistant("")

    # --- the agent in charge ---

    async def settings_of(self, agent: RealtimeAgent, *, first: bool = False) -> AgentSettings:
        """Return the settings that an agent wants."""
        initial = self.model_config.get("initial_model_settings")
        layers = (self.config.get("model_settings"), initial)
        found = await agent_settings(agent, self.context, layers, first=initial if first else None)
        if not self.input_guards.is_strict(agent):
            return found
        flat = dict(found.flat)
        if flat.get("input_audio_transcription", ...) is None:
            msg = (
                f"agent {agent.name!r}: an input guardrail with run_in_parallel=False needs the "
                "transcript of the user's speech. Do not set input_audio_transcription to None."
            )
            raise UsageError(msg, agent=agent.name)
        detection: Mapping[str, Any] | None = flat.get(
            "turn_detection", {"type": "semantic_vad", "interrupt_response": True}
        )
        if detection is not None:
            flat["turn_detection"] = {**detection, "create_response": False}
        return replace(found, flat=flat)

    def connect_settings(self) -> dict[str, Any]:
        """Return the complete settings of the current agent, for a connection."""
        flat = dict(self.current.flat)
        if "voice" not in flat and self._voice is not None:
            flat["voice"] = self._voice
        if self.config.get("tracing_disabled", False):
            flat["tracing"] = None
        return flat

    def sendable(self, changed: dict[str, Any]) -> dict[str, Any]:
        """Return the changes that the server accepts.

        After the assistant has spoken, the voice cannot change.
        """
        if "voice" not in changed or not self._has_spoken():
            return changed
        voice = changed.pop("voice")
        if voice == self._voice:
            return changed
        if self.config.get("voice_change", "keep") == "reconnect":
            self.link.begin_again_for("another voice is wanted")
            return {}
        if voice not in self._told_voices:
            self._told_voices.append(voice)
            msg = (
                f"the voice cannot change to {voice!r}, because the assistant has already spoken "
                "in this session. Keep the voice, or set voice_change='reconnect'."
            )
            self.error(UsageError(msg), code="voice_kept")
        return changed

    def _has_spoken(self) -> bool:
        return any(not one.void for one in self.playback.items())

    def took_over(self, settings: AgentSettings) -> None:
        """Record that the settings of an agent are in force."""
        before = self.in_force
        flat = {**before.flat, **settings.flat}
        for name in ("instructions", "prompt"):
            if name not in settings.flat:
                flat.pop(name, None)
        if self._has_spoken() and self._voice is not None:
            flat["voice"] = self._voice
        self._voice = flat.get("voice")
        self.in_force = replace(settings, flat=flat)
        self.outbox.format = flat.get("input_audio_format", PCM16)
        self.playback.set_format(flat.get("output_audio_format", PCM16))
        if before.agent is not settings.agent:
            self.watching.call(
                "on_agent_end", before.agent.hooks, before.agent, FINISHED, agent_name="on_end"
            )
            self.watching.call(
                "on_agent_start", settings.agent.hooks, settings.agent, agent_name="on_start"
            )

    def connected(self, *, known: bool) -> None:
        """Handle a connection that has the current settings and the conversation."""
        if not known:
            replayed = self.link.replayed
            for call in self.calls.all.values():
                if call.item_id in replayed:
                    call.epoch = self.link.epoch
                    if call.recorded and not call.sent:
                        call.sent = call.wished = True
                        self.link.ask()
        self.handoffs.connected(self.link.dialled or self.current)

    def change_agent(self, agent: RealtimeAgent, waits: asyncio.Future[None]) -> None:
        """Put another agent in charge, on request of the program."""
        self.handoffs.update(agent, waits)

    def approve(
        self,
        call_id: str,
        always: bool,  # noqa: FBT001 -- a message's parameter
        arguments: str | Mapping[str, object] | None,
    ) -> None:
        self.calls.approve(call_id, always, arguments)

    def reject(self, call_id: str, always: bool, message: str | None) -> None:  # noqa: FBT001 -- as above
        self.calls.reject(call_id, always, message)

    def link_end_response(self, active: Response) -> None:
        self.inbound.end_response(active)
