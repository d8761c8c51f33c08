"""Turns what a tool returned into what its message says.

Owns: `result_of`, which waits for it, and shows it in pieces where it comes so, and `tool_content`. What is text or parts goes to the model as it is, data as
compact JSON; what is neither is refused, never shown as a `repr`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import CoroutineType

from ...runtime.data.chat import Message, Part, TextPart
from ...runtime.data.events import AgentEvent
from ...runtime.errors import ToolError
from .tool_context import ToolContext, call_door_of

__all__ = ["result_of", "tool_content"]


async def result_of(context: ToolContext, returned: object) -> object:
    """What the call has come to, when it is there."""
    if type(returned) is CoroutineType or inspect.isawaitable(returned):
        return await returned
    return await _joined(context, returned) if isinstance(returned, AsyncGenerator) else returned


async def _joined(context: ToolContext, pieces: AsyncGenerator[object, None]) -> object:
    """Show the pieces as they come. Returns all of them, if they are texts, or else the last one."""
    agent = call_door_of(context).agent
    texts: list[str] | None = []
    last: object = None
    async with aclosing(pieces):
        async for piece in pieces:
            last = piece
            if texts is not None and isinstance(piece, str):
                texts.append(piece)
            else:
                texts = None
            await agent.emit(AgentEvent.of(None, None, piece))
    return "".join(texts) if texts else last


def tool_content(value: object) -> str | tuple[Part, ...]:
    """The content of the tool's message: see `ToolError` for what cannot be one."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, Message):
        return value.content
    if isinstance(value, Part):
        return (value,)
    if isinstance(value, list | tuple) and any(isinstance(one, Part) for one in value):
        return tuple(one if isinstance(one, Part) else TextPart(_text(one)) for one in value)
    return _text(value)


def _text(value: object) -> str:
    if type(value) is str:
        return value
    # Imported here: a program whose tools return text does without it.
    from pydantic_core import PydanticSerializationError, to_json  # noqa: PLC0415

    try:
        text = to_json(value, inf_nan_mode="null").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        msg = (
            f"the tool returned a {type(value).__qualname__} which cannot be JSON: {reason}. "
            "Return text, parts of a message, or data (numbers, lists, dicts, dataclasses, pydantic models)."
        )
        raise ToolError(msg) from error
    if isinstance(value, str):  # a str of some subclass, a StrEnum: the text itself, not its JSON with quotes
        return str.__str__(value)
    return text
