"""Those who look on: hooks and spans.

Owns: when each is called, and that none delays anything. It must never put a text or audio into a span.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from ....runtime.agent.hooks import call_hooks
from ....runtime.models.protocol import ModelRequest
from .responses import Response

if TYPE_CHECKING:
    from ....runtime.agent.hooks import AgentHooks
    from .session_core import SessionCore

__all__ = ["Watching"]


class Watching:
    """The hooks and the spans of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._queue: deque[Any] = deque()
        self._task: asyncio.Task[None] | None = None
        self.request = ModelRequest(messages=())

    def call(self, name: str, own: AgentHooks | None, *args: object, agent_name: str | None = None) -> None:
        """Call a hook of the run and of an agent, one after the other, beside the session."""
        if self.queue(name, own, *args, agent_name=agent_name) and self._task is None:
            self._task = self._core.child(self._work(), None, "hooks")

    def queue(self, name: str, own: AgentHooks | None, *args: object, agent_name: str | None = None) -> bool:
        """Note that a hook is to be called. Returns whether there is one."""
        core = self._core
        if not core.context.hooks and own is None:
            return False
        # An agent's hook may have another name than the run's, as in `on_start` for `on_agent_start`.
        self._queue.append(lambda: call_hooks(core.context.hooks, own, name, agent_name, core.context, *args))
        return True

    def handoff(self, source: Any, target: Any) -> None:
        """Both see a handoff, at the same time."""
        core = self._core
        if not core.context.hooks and source.hooks is None:
            return

        async def both() -> None:
            await asyncio.gather(
                call_hooks(core.context.hooks, None, "on_handoff", None, core.context, source, target),
                call_hooks((), source.hooks, "on_handoff", None, core.context, target, source),
            )

        self._queue.append(both)
        if self._task is None:
            self._task = core.child(self._work(), None, "hooks")

    async def _work(self) -> None:
        while self._queue:
            await self._queue.popleft()()
        self._task = None

    async def drain(self) -> None:
        """Call what is left."""
        while self._queue:
            await self._queue.popleft()()

    def response_began(self, response: Response) -> None:
        """A response begins."""
        core = self._core
        response.speech_ended_at, core.speech_ended_at = core.speech_ended_at, None

    def response_ended(self, response: Response) -> None:
        """A response has ended: its span says how long it took until something was heard."""
        core = self._core
        with core.span("realtime.response", response=response.id or "", status=response.status, agent=response.settings.agent.name) as opened:
            if response.usage is not None:
                opened.set(input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens)
            if response.first_audio_at is not None:
                since = response.speech_ended_at if response.speech_ended_at is not None else response.began_at
                opened.set(first_audio_ms=(response.first_audio_at - since) * 1000)
        core.hooks("on_model_end", response.settings.agent, response.settings.agent, core.said_in(response))
