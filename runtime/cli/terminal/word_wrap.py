"""Wraps streamed text between words.

A word is held back until it is complete. Only line ends are changed.
"""

from __future__ import annotations

__all__ = ["WordWrap"]


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
