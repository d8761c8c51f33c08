"""Bounds on the JSON of a request, checked before anything parses it: encoding, depth, number of
values, length of numbers.

The scan takes time in proportion to the body, and stops at the first violation. Malformed JSON is
left to the routes, which have the protocol's errors for it.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from a2a.utils.errors import A2AError, InvalidParamsError, JSONParseError

__all__ = ["RefusedBody", "check_json"]

_DEEPEST: Final = 64
_LONGEST_NUMBER: Final = 300
# A number that JSON or Python may be unable to represent; the body is parsed to find out. The
# look-behind tries each run of digits once.
_SUSPICIOUS: Final = re.compile(rb"NaN|Infinity|(?<![0-9])[0-9]{300}|[eE]\+?[0-9]{3}")
# A string as a whole, closed or not, or one character of the structure. Nothing in it is tried
# twice, so its time is linear.
_TOKENS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


class RefusedBody(Exception):
    """The body exceeds a bound. `error` is the protocol's."""

    def __init__(self, error: A2AError) -> None:
        super().__init__(str(error))
        self.error = error


def check_json(body: bytes, most_values: int) -> None:
    """Raise `RefusedBody` for a body that exceeds a bound.

    It would block the event loop while it is parsed, or contains values which cannot be stored or
    forwarded.
    """
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            raise RefusedBody(JSONParseError("The body must be JSON in UTF-8.")) from None
    if body.count(b"{") + body.count(b"[") > _DEEPEST or body.count(b",") >= most_values:
        _check_structure(body, most_values)
    if _SUSPICIOUS.search(body):
        try:
            json.loads(
                body, parse_constant=_no_number, parse_float=_checked_float, parse_int=_checked_int
            )
        except (ValueError, RecursionError):
            return


def _check_structure(body: bytes, most_values: int) -> None:
    depth = values = strings = 0
    for match in _TOKENS.finditer(body):
        first = match.group()[:1]
        if first in b"[{":
            depth += 1
            values += 1
            if depth > _DEEPEST:
                msg = f"The body must be nested at most {_DEEPEST} levels deep."
                raise RefusedBody(InvalidParamsError(msg))
        elif first in b"]}":
            depth -= 1
        elif first == b",":
            values += 1
        else:
            strings += 1
        # An object has two strings for a value; more cannot be valid JSON, and is not scanned to
        # its end.
        if values > most_values or strings > 2 * most_values + 1:
            msg = f"The body must have at most {most_values:,} values."
            raise RefusedBody(InvalidParamsError(msg))


def _no_number(text: str) -> Any:
    msg = f"The body must be valid JSON, and contains {text}."
    raise RefusedBody(InvalidParamsError(msg))


def _checked_float(text: str) -> float:
    _check_digits(text)
    value = float(text)
    if value in (float("inf"), float("-inf")):
        _refuse_number(text)
    return value


def _checked_int(text: str) -> int:
    _check_digits(text)
    return int(text)


def _check_digits(text: str) -> None:
    if len(text) > _LONGEST_NUMBER:
        _refuse_number(text)


def _refuse_number(text: str) -> None:
    msg = (
        "The body must not contain a number that is too large: "
        f"{text[:40]}{'...' if len(text) > 40 else ''}."  # noqa: PLR2004 -- the shown part
    )
    raise RefusedBody(InvalidParamsError(msg))
