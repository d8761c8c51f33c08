"""Parsing of server-sent events.

Chunks may be split anywhere: in the middle of a character or of a line end, or with several events
in one chunk. The data of events is not interpreted, and no byte is scanned twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from ...errors import ModelError
from ..openai_errors import error_in, event_error

__all__ = ["DONE", "EventDecoder", "check_head", "decoded"]


DONE: Final = object()
"""Follows the last event, if the provider marks the end of the stream."""


def decoded(
    events: list[bytes], who: object, decode: Callable[[bytes], object] = json.loads
) -> list[object]:
    """Return the values; `DONE` is the last one, if the stream is complete.

    Raises the error that an event reports.
    """
    items: list[object] = []
    for data in events:
        if data.startswith(b"[DONE]"):
            items.append(DONE)
            break
        item = decode(data)
        if (error := error_in(item)) is not None:
            raise event_error(error, who)
        items.append(item)
    return items


def check_head(decoder: EventDecoder, who: object) -> None:
    """Raise if the response that has ended was not a stream of events at all, but a page."""
    head = (decoder.head or b"").strip()
    if head and not decoder.is_of_events(head):
        msg = (
            f"{who}: the provider's answer must be a stream of events, got "
            f"{head.decode(errors='replace')!r}. Check the base_url."
        )
        raise ModelError(msg, kind="malformed", retryable=True)


_OF_EVENTS: Final = (b"data:", b"event:", b":", b"id:", b"retry:")
_MOST_OF_A_HEAD: Final = 200
_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventDecoder:
    """A parser of server-sent events: returns the data of each complete event."""

    __slots__ = ("_data", "_rest", "head")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of an incomplete line, in chunks
        self._data: list[bytes] = []  # the lines of an incomplete event
        self.head: bytes | None = b""
        """The start of the stream, until a line of it belongs to an event."""

    @property
    def waiting(self) -> int:
        """The number of buffered bytes of an incomplete event."""
        return sum(map(len, self._rest)) + sum(map(len, self._data))

    @staticmethod
    def is_of_events(line: bytes) -> bool:
        """Return whether a line belongs to a stream of events."""
        return line.startswith(_OF_EVENTS)

    def feed(self, chunk: bytes) -> list[bytes]:
        # The most frequent form: one line of data and an empty one, possibly several times.
        if (
            self.head is None
            and not self._rest
            and not self._data
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
        ):
            events = chunk[:-2].split(b"\n\n")
            for place, event in enumerate(events):
                if not event.startswith(b"data: ") or b"\n" in event:
                    return self._by_line(chunk)
                events[place] = event[6:]
            return events
        return self._by_line(chunk)

    def _by_line(self, chunk: bytes) -> list[bytes]:
        if self.head == b"" and not self._rest:
            chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
        rest = self._rest
        # A carriage return at the end may be half of a line end: it stays buffered.
        if b"\n" in chunk or b"\r" in chunk or (rest and rest[-1].endswith(b"\r")):
            *lines, last = _LINE_END.split(b"".join((*rest, chunk)))
            self._rest = [last] if last else []
        else:
            lines = []
            if chunk:
                rest.append(chunk)
        if self.head is not None:
            self.head = (
                None
                if any(line.startswith(_OF_EVENTS) for line in lines)
                else (self.head + chunk)[:_MOST_OF_A_HEAD]
            )
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events
