"""What an error of a provider says.

Owns: its status, its code, its id, and how long to wait. It must never decide anything.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

__all__ = ["error_code", "header_seconds", "request_id", "status_code"]


def status_code(error: BaseException) -> int | None:
    """The HTTP status, if there is one."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool):
                return found
    return None


def error_code(error: BaseException) -> str | None:
    """The provider's own code."""
    found = getattr(error, "code", None)
    body = getattr(error, "body", None)
    if not isinstance(found, str) and isinstance(body, Mapping):
        inner = body.get("error")
        found = (inner.get("code") if isinstance(inner, Mapping) else None) or body.get("code")
    return found if isinstance(found, str) and found else None


def request_id(error: BaseException) -> str | None:
    """By which the provider knows the request."""
    found = getattr(error, "request_id", None)
    return found if isinstance(found, str) else None


def _headers(error: BaseException) -> Any:
    return getattr(getattr(error, "response", None), "headers", None) or getattr(error, "headers", None) or {}


def header_seconds(error: BaseException) -> float | None:
    """How long the provider asks to wait."""
    headers = _headers(error)
    if not hasattr(headers, "get"):
        return None
    exact = headers.get("retry-after-ms")
    try:
        if exact is not None:
            return max(float(exact) / 1000, 0.0)
        text = headers.get("retry-after")
        if text is None:
            return None
        try:
            return max(float(text), 0.0)
        except ValueError:
            return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None
