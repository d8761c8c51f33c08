"""The hooks and spans of a session.

None of them delays the session. Spans contain no text and no audio.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ....runtime.agent.hooks import call_hooks
from ....runtime.models.protocol import ModelRequest
from ....runtime.tasks import all_at_once
from .responses import Response

if TYPE_CHECKING:
    from ....runtime.agent.hooks import AgentHooks
    from .session_core import SessionCore

__all__ = ["Watching"]


class Watching:
    """The hooks and the spans of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._queue: list[
            Any
        ] = []  # a list, because an empty deque takes 600 bytes and most sessions have no hooks
        self._task: asyncio.Task[None] | None = None
        self.request = ModelRequest(messages=())

    def call(
        self, name: str, own: AgentHooks | None, *args: object, agent_name: str | None = None
    ) -> None:
        """Call a hook of the run and of an agent, in order, in a child task."""
        if self.queue(name, own, *args, agent_name=agent_name) and self._task is None:
            self._task = self._core.child(self._work(), None, "hooks")

    def queue(
        self, name: str, own: AgentHooks | None, *args: object, agent_name: str | None = None
    ) -> bool:
        """Queue a hook. Return whether there is one."""
        core = self._core
        if not core.context.hooks and own is None:
            return False
        # An agent's hook may be named differently, such as `on_start` for `on_agent_start`.
        self._queue.append(
            lambda: call_hooks(core.context.hooks, own, name, agent_name, core.context, *args)
        )
        return True

    def handoff(self, source: Any, target: Any) -> None:
        """Call the handoff hooks of the run and the agent concurrently."""
        core = self._core
        if not core.context.hooks and source.hooks is None:
            return

        async def both() -> None:
            of_run = call_hooks(
                core.context.hooks, None, "on_handoff", None, core.context, source, target
            )
            await all_at_once(
                (
                    of_run,
                    call_hooks((), source.hooks, "on_handoff", None, core.context, target, source),
                ),
                f"on_handoff of agent {source.name!r}",
            )

        self._queue.append(both)
        if self._task is None:
            self._task = core.child(self._work(), None, "hooks")

    async def _work(self) -> None:
        while self._queue:
            await self._queue.pop(0)()
        self._task = None

    async def drain(self) -> None:
        """Call the remaining hooks."""
        while self._queue:
            await self._queue.pop(0)()

    def response_began(self, response: Response) -> None:
        """Handle the start of a response."""
        core = self._core
        response.speech_ended_at, core.speech_ended_at = core.speech_ended_at, None

    def response_ended(self, response: Response) -> None:
        """Record the span of a finished response, with the time to its first audio."""
        core = self._core
        with core.span(
            "realtime.response",
            response=response.id or "",
            status=response.status,
            agent=response.settings.agent.name,
        ) as opened:
            if response.usage is not None:
                opened.set(
                    input_tokens=response.usage.input_tokens,
                    output_tokens=response.usage.output_tokens,
                )
            if response.first_audio_at is not None:
                since = (
                    response.speech_ended_at
                    if response.speech_ended_at is not None
                    else response.began_at
                )
                opened.set(first_audio_ms=(response.first_audio_at - since) * 1000)
        core.hooks(
            "on_model_end", response.settings.agent, response.settings.agent, core.said_in(response)
        )
