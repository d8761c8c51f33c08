"""What a model does with a computer.

Owns: the way from an action to the method of a program's computer. It must never take a screenshot that is there already.
"""

from __future__ import annotations

import inspect
from typing import Any

from .....runtime.maybe_await import maybe_await
from ...exceptions import ModelBehaviorError
from ...tool_names import part

__all__ = ["act"]


async def act(computer: Any, call: Any) -> str:
    """Do all that a call says, and return what the screen shows then."""
    actions = list(call.actions) if call.actions else [call.action] if call.action is not None else []
    shot: Any = None
    for action in actions:
        kind = part(action, "type")
        shot = await _do(computer, kind, action)
        if kind != "screenshot":
            shot = None
    found: str = await _call(computer, "screenshot") if shot is None else shot
    return found


async def _do(computer: Any, kind: Any, action: Any) -> Any:
    def of(*names: str) -> list[Any]:
        return [part(action, name) for name in names]

    keys = part(action, "keys")
    if kind in ("screenshot", "wait"):
        return await _call(computer, kind)
    if kind == "click":
        return await _call(computer, "click", *of("x", "y", "button"), keys=keys)
    if kind in ("double_click", "move"):
        return await _call(computer, kind, *of("x", "y"), keys=keys)
    if kind == "drag":
        return await _call(computer, "drag", [(part(point, "x"), part(point, "y")) for point in part(action, "path") or ()], keys=keys)
    if kind == "scroll":
        return await _call(computer, "scroll", *of("x", "y", "scroll_x", "scroll_y"), keys=keys)
    if kind == "keypress":
        return await _call(computer, "keypress", keys)
    if kind == "type":
        return await _call(computer, "type", *of("text"))
    msg = f"Computer tool returned unknown action type {kind!r}"
    raise ModelBehaviorError(msg)


async def _call(computer: Any, name: str, *args: Any, keys: Any = None) -> Any:
    method = getattr(computer, name, None)
    if not callable(method):
        msg = f"Computer driver missing method {name}"
        raise ModelBehaviorError(msg)
    if keys:
        parameters = inspect.signature(method).parameters.values()
        if any(one.name == "keys" or one.kind is one.VAR_KEYWORD for one in parameters):
            return await maybe_await(method(*args, keys=keys))
    return await maybe_await(method(*args))
