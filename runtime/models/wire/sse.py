"""Server-sent events, cut by hand.

Owns: the cutting, wherever the bytes are cut already: in the middle of a character, of a line end, or with several events in one piece. It must never look
into an event's data, and never look at a byte twice.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["EventDecoder"]

_OF_EVENTS: Final = (b"data:", b"event:", b":", b"id:", b"retry:")
_MOST_OF_A_HEAD: Final = 200
_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventDecoder:
    """Server-sent events out of bytes: the data of each event that is complete."""

    __slots__ = ("_data", "_rest", "head")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of a line that has not ended, in the pieces in which it came
        self._data: list[bytes] = []  # the lines of an event that has not ended
        self.head: bytes | None = b""
        """What the stream begins with, as long as no line of it is one of a stream of events."""

    @property
    def waiting(self) -> int:
        """How many bytes there are of an event that is not complete."""
        return sum(map(len, self._rest)) + sum(map(len, self._data))

    @staticmethod
    def is_of_events(line: bytes) -> bool:
        """Whether a line is one that a stream of events has."""
        return line.startswith(_OF_EVENTS)

    def feed(self, chunk: bytes) -> list[bytes]:
        # As nearly all of them come: one line of data and an empty one, or several times that.
        if self.head is None and not self._rest and not self._data and chunk.endswith(b"\n\n") and b"\r" not in chunk:
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
        # A carriage return at the end may be half of a line end: it waits there.
        if b"\n" in chunk or b"\r" in chunk or (rest and rest[-1].endswith(b"\r")):
            *lines, last = _LINE_END.split(b"".join((*rest, chunk)))
            self._rest = [last] if last else []
        else:
            lines = []
            if chunk:
                rest.append(chunk)
        if self.head is not None:
            self.head = None if any(line.startswith(_OF_EVENTS) for line in lines) else (self.head + chunk)[:_MOST_OF_A_HEAD]
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events
