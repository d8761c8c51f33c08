"""Hooks that a second attempt does not call again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import RunHooks

if TYPE_CHECKING:
    from .recording import Recording

__all__ = ["OnceHooks"]


class OnceHooks(RunHooks[Any]):
    """Passes calls on to a program's hooks, except calls during a replay."""

    def __init__(self, hooks: RunHooks[Any], recording: Recording) -> None:
        self._hooks = hooks
        self._recording = recording

    async def _pass_on(self, name: str, *args: Any) -> None:
        if not self._recording.replaying:
            await getattr(self._hooks, name)(*args)

    async def on_llm_start(self, *args: Any) -> None:
        await self._pass_on("on_llm_start", *args)

    async def on_llm_end(self, *args: Any) -> None:
        await self._pass_on("on_llm_end", *args)

    async def on_agent_start(self, *args: Any) -> None:
        await self._pass_on("on_agent_start", *args)

    async def on_agent_end(self, *args: Any) -> None:
        await self._pass_on("on_agent_end", *args)

    async def on_handoff(self, *args: Any) -> None:
        await self._pass_on("on_handoff", *args)

    async def on_tool_start(self, *args: Any) -> None:
        await self._pass_on("on_tool_start", *args)

    async def on_tool_end(self, *args: Any) -> None:
        await self._pass_on("on_tool_end", *args)
