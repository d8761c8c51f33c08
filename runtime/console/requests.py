"""Validation of request fields, and error responses.

Each field has bounds, with an error that names it. The content of requests is never logged.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from ..errors import (
    CheckpointError,
    CheckpointNotFound,
    OffbookError,
    ResumeError,
    StoreError,
    SystemDraining,
    UsageError,
)
from ..log import loggers

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..observe.event_json import Json

__all__ = [
    "LONGEST_BODY",
    "answered",
    "body_of",
    "integer_of",
    "json_answer",
    "text_of_body",
    "text_of_query",
]

LONGEST_BODY: Final = 1_048_576
LONGEST_ID: Final = 2_000

_STATUS: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (CheckpointNotFound, 404),
    (ResumeError, 409),
    (StoreError, 503),
    (SystemDraining, 503),
    (CheckpointError, 422),
    (UsageError, 400),
    (OffbookError, 409),
)


class TooLarge(UsageError):
    """The request is larger than the limit."""


def json_answer(value: Json, status: int = 200) -> Response:
    """Return a JSON response, which no cache may store."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(text, status, media_type="application/json")


def answered(
    handler: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a handler so that its errors become responses."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except OffbookError as error:
            status = (
                413
                if isinstance(error, TooLarge)
                else next(status for kind, status in _STATUS if isinstance(error, kind))
            )
            return JSONResponse({"error": str(error)[:4_000], "type": type(error).__name__}, status)
        except Exception as error:  # noqa: BLE001 -- the page shows it; a traceback might log a user's text
            loggers.console.error(
                "the console could not answer %s %s: %s",
                request.method,
                request.url.path,
                type(error).__name__,
            )
            return JSONResponse(
                {
                    "error": f"{type(error).__name__}: the console could not answer. See its log.",
                    "type": type(error).__name__,
                },
                500,
            )

    return answer


async def body_of(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LONGEST_BODY:
            msg = f"the request must have at most {LONGEST_BODY:,} bytes."
            raise TooLarge(msg)
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        msg = (
            f"the request must be JSON: {error}"
            if isinstance(error, json.JSONDecodeError)
            else "the request must be JSON."
        )
        raise UsageError(msg) from None
    if not isinstance(found, dict):
        raise UsageError("the request must be a JSON object.")
    return found


def text_of_body(
    body: Mapping[str, Any], name: str, longest: int = LONGEST_ID, default: str | None = None
) -> str:
    """Return a string in the body. Without a `default` it must exist, and not be empty."""
    value = body.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        msg = f"{name!r} must be a {'' if default is not None else 'non-empty '}string."
        raise UsageError(msg)
    return _short(name, value, longest)


def text_of_query(request: Request, name: str, longest: int = LONGEST_ID) -> str | None:
    """Return a string in the address; None if it is missing or empty."""
    value = request.query_params.get(name)
    return _short(name, value, longest) if value else None


def integer_of(request: Request, name: str, default: int, most: int) -> int:
    """Return a number in the address, from 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15 or int(text) > most:  # noqa: PLR2004 -- digits
        msg = f"{name} must be an integer from 0 to {most:,}, got {text[:40]!r}."
        raise UsageError(msg)
    return int(text)


def _short(name: str, value: str, longest: int) -> str:
    if len(value) > longest:
        msg = f"{name!r} must have at most {longest:,} characters, got {len(value):,} characters."
        raise UsageError(msg)
    return value
