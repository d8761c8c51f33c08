"""Converts the value that a tool returned to the content of its message.

Text and parts go to the model unchanged, data as compact JSON. Any other value is refused, never
shown as a `repr`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import CoroutineType
from typing import Final

from ...runtime.data.chat import Message, Part, TextPart
from ...runtime.data.events import AgentEvent
from ...runtime.errors import ToolError
from .tool_context import ToolContext, call_state_of

__all__ = ["result_of", "tool_content"]

_MOST_CHARACTERS: Final = 1_000_000
"""The limit of a result's text, which is more than any model reads.

The journal and every later request would contain it.
"""


async def result_of(context: ToolContext, returned: object) -> object:
    """Wait for the result of the call, and return it."""
    if type(returned) is CoroutineType or inspect.isawaitable(returned):
        return await returned
    return await _joined(context, returned) if isinstance(returned, AsyncGenerator) else returned


async def _joined(context: ToolContext, pieces: AsyncGenerator[object, None]) -> object:
    """Show the parts as they arrive.

    Returns the joined text of all parts if they are strings, or else the last one.
    """
    runtime = call_state_of(context).runtime
    texts: list[str] | None = []
    last: object = None
    async with aclosing(pieces):
        async for piece in pieces:
            last = piece
            if texts is not None and isinstance(piece, str):
                texts.append(piece)
            else:
                texts = None
            await runtime.emit(AgentEvent.of(None, None, piece))
    return "".join(texts) if texts else last


def tool_content(value: object) -> str | tuple[Part, ...]:
    """Return the content of the tool's message. Raise `ToolError` if the value cannot be one."""
    if type(value) is str:
        return value if len(value) <= _MOST_CHARACTERS else _bounded(value)
    if value is None:
        return ""
    if isinstance(value, Message):
        return _bounded(value.content) if isinstance(value.content, str) else value.content
    if isinstance(value, Part):
        return (value,)
    if isinstance(value, list | tuple) and any(isinstance(one, Part) for one in value):
        return tuple(one if isinstance(one, Part) else TextPart(_text(one)) for one in value)
    return _text(value)


def _bounded(text: str) -> str:
    left_out = len(text) - _MOST_CHARACTERS
    return (
        text
        if left_out <= 0
        else f"{text[:_MOST_CHARACTERS]}\n[{left_out:,} more characters are left out]"
    )


def _plain(value: object) -> object:
    """Convert a value unknown to pydantic, such as a numpy array, to plain data."""
    for method in ("tolist", "to_dict"):
        if callable(convert := getattr(value, method, None)) and not isinstance(value, type):
            return convert()
    msg = f"Unable to serialize unknown type: {type(value)}"
    raise TypeError(msg)


def _text(value: object) -> str:
    if type(value) is str:
        return _bounded(value)
    # Imported here: a program whose tools return text does not need it.
    from pydantic_core import PydanticSerializationError, to_json  # noqa: PLC0415

    try:
        text = to_json(value, inf_nan_mode="strings", fallback=_plain).decode()
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        msg = (
            f"the tool returned a {type(value).__qualname__} which JSON cannot represent: "
            f"{reason}. Return text, parts of a message, or data (numbers, lists, dicts, "
            "dataclasses, pydantic models)."
        )
        raise ToolError(msg) from error
    # A str subclass such as a StrEnum: the text itself, not its JSON with quotes.
    if isinstance(value, str):
        return _bounded(str.__str__(value))
    return _bounded(text)
