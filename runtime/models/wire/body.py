"""Bodies of requests, put together from what is written already.

Owns: the JSON of a message, which is made once in its life and kept with it, and that of all the rest of a request, which is the same from one request of an
agent to the next. It must never change what is said: a message is in a body as the API's own translation has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...data.chat import Message, WrittenSlot
from ...errors import UsageError
from ..protocol import ModelRequest, ModelSettings

__all__ = ["Bodies", "Rest", "encode", "written"]

_MOST_RESTS: Final = 64
_MOST_KEPT: Final = 256 * 1024
"""The JSON of a message that is larger, as one with a picture in it is, is made anew: kept, it would take its memory twice."""

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(value: object) -> bytes:
    """The value as JSON. Raises `UsageError`, if it is none."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError as problem:
        wrong = str(problem.object)[problem.start]
        msg = f"A request cannot be written: it has {wrong!r} in it, half a character, which is no text. Where does {_around(problem)!r} come from?"
        raise UsageError(msg) from None


def _around(problem: UnicodeEncodeError) -> str:
    return str(problem.object)[max(0, problem.start - 20) : problem.end + 20]


class Rest:
    """All of a request but its messages, as JSON, and how long its provider may be silent."""

    __slots__ = ("has_items", "text", "timeout")

    def __init__(self, arguments: Mapping[str, object], timeout: float | None, *, items: str) -> None:
        self.has_items = items in arguments  # the caller has put them into `extra`, and that goes before all
        self.text = encode(dict(arguments))
        self.timeout = timeout


def written(message: Message, slot: WrittenSlot, write: Callable[[Message], object]) -> bytes:
    """The JSON of a message, made once in its life. Each API has a slot of its own there."""
    text = slot.get(message)
    if text is None:
        text = encode(write(message))
        if len(text) <= _MOST_KEPT:
            slot.put(message, text)
    return text


class Bodies:
    """The bodies of one model's requests. `name` is what its API calls the messages."""

    __slots__ = ("_opening", "_rests")

    def __init__(self, name: str) -> None:
        self._opening = b'{"' + name.encode() + b'":['
        self._rests: dict[tuple[object, ...], tuple[Rest, tuple[object, ...]]] = {}

    def body(
        self,
        request: ModelRequest,
        model: str,
        settings: ModelSettings,
        make_rest: Callable[[ModelRequest, bool], Rest],
        items: Callable[[Sequence[Message]], list[bytes]],
        *,
        stream: bool,
    ) -> tuple[bytes, float | None]:
        """The body, and its timeout. `settings` are the model's own; `make_rest` makes all but the messages, and `items` the JSON of each of those."""
        # By identity: these are frozen, and an agent has the same ones in each of its requests. What is kept beside the entry keeps their ids from others.
        asked, tools, schema = request.settings, request.tools, request.output_schema
        key = (id(asked), id(tools), request.tool_choice, id(schema), stream, model, id(settings))
        kept = self._rests.get(key)
        if kept is not None:
            rest = kept[0]
        else:
            rest = make_rest(request, stream)
            if not asked.extra and not settings.extra:  # those are mappings of the caller's, which may change
                if len(self._rests) >= _MOST_RESTS:
                    self._rests.clear()
                self._rests[key] = (rest, (asked, tools, schema, settings))
        if rest.has_items:
            return rest.text, rest.timeout
        return b"".join((self._opening, b",".join(items(request.messages)), b"],", rest.text[1:])), rest.timeout
