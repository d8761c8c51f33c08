"""Reads the description of a function and its parameters from its docstring.

The model uses it as the tool's manual. Google, NumPy and reST styles are supported. Reading never
fails: a docstring in no known style is a description.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Docstring", "read_docstring"]


@dataclass(frozen=True, slots=True)
class Docstring:
    """The descriptions of a function and of its arguments."""

    description: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Return the description and the arguments.

    Other sections (Returns, Raises, ...) are for readers of the code.
    """
    if not text or not text.strip():
        return Docstring()
    # Imported here: it takes longer to import than the whole package, and many tools are never
    # shown to a model.
    from docstring_parser import ParseError, parse  # noqa: PLC0415

    clean = inspect.cleandoc(text)
    try:
        read = parse(clean)
    except ParseError:
        return Docstring(clean)
    paragraphs = [
        part.strip()
        for part in (read.short_description, read.long_description)
        if part and part.strip()
    ]
    arguments: dict[str, str] = {}
    for one in read.params:
        kind = one.args[0] if one.args else ""
        if one.description and kind not in {"attribute", "attributes"}:
            # NumPy documents several at once: "x, y : int". Google writes *args with its star.
            for name in one.arg_name.split(","):
                arguments.setdefault(name.strip().lstrip("*\\"), " ".join(one.description.split()))
    separator = "\n\n" if read.blank_after_short_description else "\n"
    return Docstring(separator.join(paragraphs), arguments)
