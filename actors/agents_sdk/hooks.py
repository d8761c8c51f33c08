"""Hooks that a second attempt does not call again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import RunHooks

if TYPE_CHECKING:
    from .recording import Recording

__all__ = ["OnceHooks"]


def _once(name: str) -> Any:
    async def hook(self: OnceHooks, *args: Any) -> None:
        if not self._recording.replaying:
            await getattr(self._hooks, name)(*args)

    return hook


class OnceHooks(RunHooks[Any]):
    """Passes calls on to a program's hooks, except calls during a replay."""

    def __init__(self, hooks: RunHooks[Any], recording: Recording) -> None:
        self._hooks = hooks
        self._recording = recording

    on_llm_start = _once("on_llm_start")
    on_llm_end = _once("on_llm_end")
    on_agent_start = _once("on_agent_start")
    on_agent_end = _once("on_agent_end")
    on_handoff = _once("on_handoff")
    on_tool_start = _once("on_tool_start")
    on_tool_end = _once("on_tool_end")
