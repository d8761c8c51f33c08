"""Request bodies, assembled from parts that are already encoded.

The JSON of a message is made once and cached with the message. The JSON of the rest of a request is
the same for many requests of an agent, and is cached too. The content is exactly that of the API's
own translation.
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
"""The largest cached JSON of a message.

A larger one, for example with a picture, is encoded each time instead of taking its memory twice.
"""

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(value: object) -> bytes:
    """Encode a value as JSON. Raises `UsageError` if that is impossible."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError as problem:
        wrong = str(problem.object)[problem.start]
        msg = (
            f"A request cannot be encoded, because it contains {wrong}, half a character. "
            f"Check where {_around(problem)} comes from."
        )
        raise UsageError(msg) from None


def _around(problem: UnicodeEncodeError) -> str:
    return str(problem.object)[max(0, problem.start - 20) : problem.end + 20]


class Rest:
    """All of a request except its messages, as JSON, and its timeout."""

    __slots__ = ("has_items", "text", "timeout")

    def __init__(
        self, arguments: Mapping[str, object], timeout: float | None, *, items: str
    ) -> None:
        # The caller has set the messages in `extra`, which takes precedence.
        self.has_items = items in arguments
        self.text = encode(dict(arguments))
        self.timeout = timeout


def written(message: Message, slot: WrittenSlot, write: Callable[[Message], object]) -> bytes:
    """Return the JSON of a message, encoded once. Each API has its own slot in the message."""
    text = slot.get(message)
    if text is None:
        text = encode(write(message))
        if len(text) <= _MOST_KEPT:
            slot.put(message, text)
    return text


class Bodies:
    """The bodies of one model's requests. `name` is the API's name for the messages."""

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
        """Return the body, and its timeout.

        `settings` are the model's own; `make_rest` makes everything except the messages, and
        `items` the JSON of each message.
        """
        # By identity: these are frozen, and an agent uses the same ones in each of its requests.
        # The entry holds references to them, so that their ids are not reused.
        asked, tools, schema = request.settings, request.tools, request.output_schema
        key = (id(asked), id(tools), request.tool_choice, id(schema), stream, model, id(settings))
        kept = self._rests.get(key)
        if kept is not None:
            rest = kept[0]
        else:
            rest = make_rest(request, stream)
            # Those are the caller's mappings, which may change.
            if not asked.extra and not settings.extra:
                if len(self._rests) >= _MOST_RESTS:
                    self._rests.clear()
                self._rests[key] = (rest, (asked, tools, schema, settings))
        if rest.has_items:
            return rest.text, rest.timeout
        return b"".join(
            (self._opening, b",".join(items(request.messages)), b"],", rest.text[1:])
        ), rest.timeout
