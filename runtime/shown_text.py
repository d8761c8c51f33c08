"""Text for display: nothing in it is hidden, moves the cursor or changes the reading order.

The module defines the characters that are escaped wherever text is shown, and the layout of JSON
text. The text's meaning stays the same.
"""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["in_line", "laid_out", "visible"]

_HIDDEN: Final = re.compile(
    "["
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160\u17b4-\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U000110bd"
    r"\U000110cd\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)
"""Characters that cannot be seen, or that affect others.

Control and format characters (direction, zero width, tags), surrogates, line separators, and
invisible fillers, joiners and selectors.
"""


def visible(text: str) -> str:
    r"""Escape each character that is invisible or affects others, like JSON: `\u202e`.

    Line ends and tabs stay.
    """
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(_escaped, text)


def in_line(text: str) -> str:
    r"""Escape the text for one line: like `visible`, with line ends and tabs as `\n` and `\t`."""
    return (
        text
        if text.isascii() and text.isprintable()
        else visible(text).replace("\n", "\\n").replace("\t", "\\t")
    )


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code <= 0xFFFF:  # noqa: PLR2004 -- the range of one UTF-16 unit
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)|[{}\[\],:]|[^ \t\r\n{}\[\],:"]++')
_DEEPEST: Final = 20
"""The most levels to indent: beyond them, the indentation alone would be quadratic."""


def laid_out(text: str) -> str:
    """Lay out JSON text in lines, with hidden characters escaped.

    Numbers and strings stay literal. Text that is not JSON stays as it is.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return visible(text)
    lines, line, depth, before = [], "", 0, ""
    for piece in _TOKEN.findall(text):
        closes = piece in ("}", "]")
        depth -= closes
        if (
            (before in ("{", "[") and not closes)
            or (closes and before not in ("{", "["))
            or before == ","
        ):
            lines.append(line)
            line = "  " * min(depth, _DEEPEST)
        line += f"{piece} " if piece == ":" else piece
        depth += piece in ("{", "[")
        before = piece
    return visible("\n".join([*lines, line]))
