"""Formats commands for the user to type. None is ever executed."""

from __future__ import annotations

import shlex

from ...shown_text import in_line

__all__ = ["quoted", "suggested"]


def suggested(command: str, *words: str, **options: str | None) -> str:
    """Return `offbook COMMAND WORD... --store URL`, ready to paste into a shell.

    Each word is one argument, whatever it contains.
    """
    given = [quoted(word) for word in words]
    named = [
        part
        for name, value in options.items()
        if value is not None
        for part in (f"--{name}", quoted(value))
    ]
    parts = (
        [*named, "--", *given] if any(word.startswith("-") for word in words) else [*given, *named]
    )
    return " ".join(["offbook", command, *parts])


def quoted(word: str) -> str:
    """Quote one word for a shell, on one line: hidden characters and line ends are escaped."""
    if in_line(word) == word:
        return shlex.quote(word)
    return (
        "$'"
        + "".join(
            f"\\{one}" if one in "\\'" else one if in_line(one) == one else f"\\U{ord(one):08x}"
            for one in word
        )
        + "'"
    )
