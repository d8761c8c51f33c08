"""What a request asks for, and what an error is answered with.

Owns: the bounds of a request's fields, each with an error that names it; and which status an error has. It must never write to the log what a request says.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from ..errors import CheckpointError, CheckpointNotFound, ResumeError, StoreError, SystemDraining, UnderstudyError, UsageError
from ..log import loggers

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..observe.event_json import Json

__all__ = ["LONGEST_BODY", "answered", "body_of", "integer_of", "json_answer", "text_of_body", "text_of_query"]

LONGEST_BODY: Final = 1_048_576
LONGEST_ID: Final = 2_000

_STATUS: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (CheckpointNotFound, 404),
    (ResumeError, 409),
    (StoreError, 503),
    (SystemDraining, 503),
    (CheckpointError, 422),
    (UsageError, 400),
    (UnderstudyError, 409),
)


class TooLarge(UsageError):
    """The request has more bytes than are read."""


def json_answer(value: Json, status: int = 200) -> Response:
    """Plain data, which no cache keeps."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(text, status, media_type="application/json")


def answered(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The same handler, with its errors as answers."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except UnderstudyError as error:
            status = 413 if isinstance(error, TooLarge) else next(status for kind, status in _STATUS if isinstance(error, kind))
            return JSONResponse({"error": str(error)[:4_000], "type": type(error).__name__}, status)
        except Exception as error:  # noqa: BLE001 -- the page is told; a traceback in the log might hold what a user has said
            loggers.console.error("The console could not answer %s %s: %s", request.method, request.url.path, type(error).__name__)
            return JSONResponse({"error": f"{type(error).__name__}: the console could not answer that.", "type": type(error).__name__}, 500)

    return answer


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request brings."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LONGEST_BODY:
            msg = f"the request has more than {LONGEST_BODY:,} bytes."
            raise TooLarge(msg)
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        msg = f"the request is no JSON: {error}" if isinstance(error, json.JSONDecodeError) else "the request is no JSON."
        raise UsageError(msg) from None
    if not isinstance(found, dict):
        raise UsageError("the request is no JSON object.")
    return found


def text_of_body(body: Mapping[str, Any], name: str, longest: int = LONGEST_ID, default: str | None = None) -> str:
    """A text in the body. Without a `default` it has to be there, and not to be empty."""
    value = body.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        msg = f"{name!r}: give a text{'' if default is not None else ' that is not empty'}."
        raise UsageError(msg)
    return _short(name, value, longest)


def text_of_query(request: Request, name: str, longest: int = LONGEST_ID) -> str | None:
    """A text in the address; None if it is not there, or empty."""
    value = request.query_params.get(name)
    return _short(name, value, longest) if value else None


def integer_of(request: Request, name: str, default: int, most: int) -> int:
    """A number in the address, from 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15 or int(text) > most:  # noqa: PLR2004 -- digits
        msg = f"{name}={text[:40]!r}: give a whole number from 0 to {most:,}."
        raise UsageError(msg)
    return int(text)


def _short(name: str, value: str, longest: int) -> str:
    if len(value) > longest:
        msg = f"{name!r} has {len(value):,} characters, and {longest:,} at most are read."
        raise UsageError(msg)
    return value
