"""What a header can hold.

Owns: the check, and words for what is wrong that show nothing of the value: it may be a key.
"""

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
"""What is shorter is none, but what is written where a server asks for no key; and it may be a part of any word."""


def check_headers(who: str, headers: Mapping[str, str]) -> None:
    """Raise, if there is anything in them that cannot be sent."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            msg = f"{who}: {name!r} is no name of a header. Check default_headers=."
            raise ModelError(msg, kind="bad_request")
        is_key = name.lower() in _KEYS
        check_value(who, "the key" if is_key else f"the header {name!r}", value, is_key=is_key)


def check_value(who: str, what: str, value: str, *, is_key: bool) -> None:
    """Raise, if a header cannot hold that: the `openai` client sends nothing but printable ASCII."""
    if not isinstance(value, str):
        msg = f"{who}: {what} is a value of type {type(value).__name__}: give text. {'Check the key.' if is_key else 'Check default_headers=.'}"
        raise ModelError(msg, kind="auth" if is_key else "bad_request")
    wrong = next((char for char in value if not _FIRST <= char <= _LAST and char != "\t"), None)
    if wrong is None and value == value.strip():
        return
    has = "a blank at one of its ends" if wrong is None else "a line break in it" if wrong in "\r\n" else f"the character {wrong!r} in it"
    advice = "Check the key: api_key=, or OPENAI_API_KEY; one that was read from a file may need .strip()." if is_key else "Check default_headers=."
    msg = f"{who}: {what} has {has}, which no header can hold. {advice}"
    raise ModelError(msg, kind="auth" if is_key else "bad_request")


def without_keys(data: bytes, headers: Mapping[str, str]) -> bytes:
    """What a server has said, without the key that it was sent: some repeat it when they refuse it."""
    for name, value in headers.items():
        key = value.rpartition(" ")[2]
        if name.lower() in _KEYS and len(key) >= _SHORTEST_KEY:
            data = data.replace(key.encode(), b"***")
    return data
