"""Validation of headers, with messages that never show a value: it may be a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...errors import ModelError

__all__ = ["check_headers", "check_value", "without_keys"]

_FIRST: Final = " "
_LAST: Final = "~"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEYS: Final = frozenset(("authorization", "api-key"))
_SHORTEST_KEY: Final = 8
"""A shorter value is not a key, but a placeholder for servers without keys.

It may also be a part of any word.
"""


def check_headers(who: str, headers: Mapping[str, str]) -> None:
    """Raise ModelError if one of them cannot be sent."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            msg = f"{who}: {name!r} is not a valid header name. Check default_headers."
            raise ModelError(msg, kind="bad_request")
        is_key = name.lower() in _KEYS
        check_value(who, "the key" if is_key else f"the header {name!r}", value, is_key=is_key)


def check_value(who: str, what: str, value: str, *, is_key: bool) -> None:
    """Raise ModelError if a header cannot hold that: only printable ASCII is allowed."""
    if not isinstance(value, str):
        msg = (
            f"{who}: {what} must be a string, got a {type(value).__name__}. "
            f"{'Check the key.' if is_key else 'Check default_headers.'}"
        )
        raise ModelError(msg, kind="auth" if is_key else "bad_request")
    wrong = next((char for char in value if not _FIRST <= char <= _LAST and char != "\t"), None)
    if wrong is None and value == value.strip():
        return
    has = (
        "a blank at one of its ends"
        if wrong is None
        else "a line break in it"
        if wrong in "\r\n"
        else f"the character {wrong!r} in it"
    )
    advice = (
        "Check the key: api_key=, or OPENAI_API_KEY; one that was read from a file may need "
        ".strip()."
        if is_key
        else "Check default_headers=."
    )
    msg = f"{who}: {what} has {has}, which no header can hold. {advice}"
    raise ModelError(msg, kind="auth" if is_key else "bad_request")


def without_keys(data: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a server's message without the key: some servers repeat it when they refuse it."""
    for name, value in headers.items():
        key = value.rpartition(" ")[2]
        if name.lower() in _KEYS and len(key) >= _SHORTEST_KEY:
            data = data.replace(key.encode(), b"***")
    return data
