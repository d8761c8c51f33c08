"""Output for the user: a terminal with or without colours, or a pipe.

Text from agents, models and tools cannot move the cursor, nor imitate the command's own output.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TextIO

from ...shown_text import visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Screen", "WordWrap", "clean", "one_line"]


class WordWrap:
    """Fills lines of a fixed number of columns."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._word = ""
        self._spaces = ""

    def feed(self, text: str) -> str:
        """Add text, and return the part that can be written now."""
        written = ""
        for character in text:
            if character == "\n":
                written += self._end_word() + "\n"
                self._column, self._spaces = 0, ""
            elif character in " \t":
                written += self._end_word()
                self._spaces += character
            else:
                self._word += character
                if len(self._word) >= self._width:
                    written += self._end_word()
        return written

    def flush(self) -> str:
        """Return the rest."""
        return self._end_word()

    def _end_word(self) -> str:
        if not self._word:
            return ""
        word, spaces = self._word, self._spaces
        self._word = self._spaces = ""
        if self._column and self._column + len(spaces) + len(word) > self._width:
            self._column = len(word)
            return "\n" + word
        self._column += len(spaces) + len(word)
        return spaces + word


_PLAIN: Final[Mapping[int, str]] = MappingProxyType(
    {
        ord(one): other
        for one, other in {
            "→": "->",
            "·": "-",
            "✓": "ok",
            "✗": "x",
            "…": "...",
            "│": "|",
            "├": "|",
            "└": "`",
            "─": "-",
            "●": "*",
        }.items()
    }
)
_NARROW: Final = 40
_LOW: Final = 6


def clean(text: str) -> str:
    """Return a text without control characters."""
    return visible(text.replace("\r\n", "\n"))


def one_line(text: str, most: int) -> str:
    """Return a text in one line, of at most `most` characters."""
    text = clean(" ".join(text.split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Screen:
    """The standard output of a command, or another stream."""

    def __init__(self, stream: TextIO | None = None, *, width: int | None = None) -> None:
        self.stream = sys.stdout if stream is None else stream
        encoding = getattr(self.stream, "encoding", None) or "ascii"
        self.is_plain = not _knows(encoding, "→█")
        self.is_terminal = self.stream.isatty()
        self._width = width
        self._rich: Console | None = None
        if self.is_terminal:
            from rich.console import Console  # noqa: PLC0415 -- an extra, which a pipe needs nothing of

            self._rich = Console(
                file=self.stream, highlight=False, markup=False, emoji=False, soft_wrap=True
            )

    @property
    def width(self) -> int:
        """The columns of the terminal; 80 if the output is something else."""
        found = self._width or (
            shutil.get_terminal_size((80, 24)).columns if self.is_terminal else 80
        )
        return max(found, _NARROW)

    @property
    def height(self) -> int:
        """The rows of the terminal."""
        return max(shutil.get_terminal_size((80, 24)).lines, _LOW)

    def write(self, text: str, style: str = "") -> None:
        """Write a text without ending the line."""
        text = clean(text)
        if self.is_plain:
            text = text.translate(_PLAIN).encode("ascii", "replace").decode()
        if self._rich is not None and style and text:
            from rich.text import Text  # noqa: PLC0415 -- an extra

            self._rich.print(Text(text, style), end="")
        else:
            encoding = getattr(self.stream, "encoding", None) or "ascii"
            self.stream.write(text.encode(encoding, "replace").decode(encoding))
        self.stream.flush()

    def say(self, text: str = "", style: str = "") -> None:
        """Write lines; on a terminal, long ones are wrapped between words."""
        if self.is_terminal and any(len(line) > self.width for line in text.split("\n")):
            words = WordWrap(self.width)
            text = words.feed(text) + words.flush()
        self.write(text, style)
        self.stream.write("\n")
        self.stream.flush()


def _knows(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
