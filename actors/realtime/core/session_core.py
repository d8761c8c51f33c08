"""All parts of one session, assembled, and the change of the agent in charge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ....runtime.agent.run_context import RunContext
from ....runtime.data.chat import Message
from ....runtime.data.outcome import FINISHED
from ....runtime.errors import UsageError
from ....runtime.system.system import ActorSystem
from ..agent import RealtimeAgent
from ..audio_formats import PCM16
from ..config import RealtimeRunConfig
from ..items import AssistantMessageItem
from ..model import RealtimeModel, RealtimeModelConfig
from ..state.settings import AgentSettings, agent_settings
from .calls import Calls
from .guards import InputGuards, OutputGuards
from .handing import Handing
from .inbound import Inbound
from .life import Life
from .link import Link
from .responses import Response, Responses
from .watching import Watching

__all__ = ["SessionCore"]


class SessionCore(Life):
    """One session."""

    def __init__(
        self,
        agent: RealtimeAgent,
        model: RealtimeModel,
        model_config: RealtimeModelConfig,
        config: RealtimeRunConfig,
        context: RunContext,
        system: ActorSystem,
    ) -> None:
        super().__init__(model, model_config, config, context, system)
        self.agent = agent
        self.responses = Responses(self)
        self.calls = Calls(self)
        self.handing = Handing(self)
        self.output_guards = OutputGuards(self)
        self.input_guards = InputGuards(self)
        self.watching = Watching(self)
        self.link = Link(self)
        self.inbound = Inbound(self)
        self._voice: Any = None  # of the connection
        self._told_voices: list[Any] = []

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
                f"agent {agent.name!r}: an input guardrail with run_in_parallel=False looks at "
                "what is said: leave input_audio_transcription on."
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
                "the voice stays: once the assistant has spoken, the model takes no other, and "
                f"{voice!r} was wanted. See voice_change='reconnect'."
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
        self.handing.connected(self.link.dialled or self.current)

    def change_agent(self, agent: RealtimeAgent, waits: asyncio.Future[None]) -> None:
        """Put another agent in charge, on request of the program."""
        self.handing.update(agent, waits)

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
