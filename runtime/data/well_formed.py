r"""Text that can be encoded as UTF-8.

A Python string may contain half of a surrogate pair: JSON from a model or a browser writes one as
`"\ud83d"`. Such a string can be neither sent nor printed, so it is replaced on input. Well-formed
text stays unchanged.
"""

from __future__ import annotations

__all__ = ["well_formed"]


def well_formed(text: str) -> str:
    """Join the two halves of a surrogate pair, and replace each lone half by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
