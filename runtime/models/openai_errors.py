"""Translation of the `openai` client's errors to errors of this package.

The kinds:

    rate_limit, overloaded, server      the provider is busy, or fails: retryable (except for an
                                        exhausted quota)
    connection, timeout, conflict       the request or its reply did not get through: retryable
    malformed, empty                    the reply cannot be read, or is empty: retryable
    auth, permission, not_found         the key or the model's name is wrong
    bad_request, context_length         the request is wrong, or too long
    content_filter, length              the provider, or max_tokens, has cut the reply off
    refusal                             the model refused to answer in the requested type

Classes are identified by their names, so that nothing here imports `openai`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ..clock import HERE
from ..errors import ModelError, OffbookError
from .wire.protocol import TransportError

__all__ = ["KINDS", "error_in", "event_error", "model_error", "model_errors", "raise_mapped"]

KINDS: Final[Mapping[str, tuple[str, bool]]] = {
    "OpenAIError": ("other", False),
    "APIError": ("other", False),
    "APIStatusError": ("other", False),
    "APIResponseValidationError": ("malformed", True),
    "APIConnectionError": ("connection", True),
    "APITimeoutError": ("timeout", True),
    "BadRequestError": ("bad_request", False),
    "AuthenticationError": ("auth", False),
    "OAuthError": ("auth", False),
    "SubjectTokenProviderError": ("auth", False),
    "PermissionDeniedError": ("permission", False),
    "NotFoundError": ("not_found", False),
    "ConflictError": ("conflict", True),
    "UnprocessableEntityError": ("bad_request", False),
    "RateLimitError": ("rate_limit", True),
    "InternalServerError": ("server", True),
    "LengthFinishReasonError": ("length", False),
    "ContentFilterFinishReasonError": ("content_filter", False),
    "InvalidWebhookSignatureError": ("other", False),
    "WebSocketConnectionClosedError": ("connection", True),
    "WebSocketQueueFullError": ("connection", False),
}
"""For each class of the client's errors: the kind, and whether the same request may succeed later.

The tables of codes and statuses below are more precise.
"""

_BY_CODE: Final[Mapping[str, tuple[str, bool]]] = {
    "insufficient_quota": ("rate_limit", False),
    "billing_hard_limit_reached": ("rate_limit", False),
    "rate_limit_exceeded": ("rate_limit", True),
    "rate_limit_error": ("rate_limit", True),
    "context_length_exceeded": ("context_length", False),
    "string_above_max_length": ("context_length", False),
    "content_filter": ("content_filter", False),
    "content_policy_violation": ("content_filter", False),
    "model_not_found": ("not_found", False),
    "invalid_api_key": ("auth", False),
    "server_error": ("server", True),
    "internal_server_error": ("server", True),
    "overloaded": ("overloaded", True),
    "overloaded_error": ("overloaded", True),
    "engine_overloaded": ("overloaded", True),
    "timeout": ("timeout", True),
    "invalid_request_error": ("bad_request", False),
    "invalid_prompt": ("bad_request", False),
}

_BY_STATUS: Final[Mapping[int, tuple[str, bool]]] = {
    401: ("auth", False),
    403: ("permission", False),
    404: ("not_found", False),
    407: ("auth", False),
    408: ("timeout", True),
    409: ("conflict", True),
    413: ("context_length", False),
    429: ("rate_limit", True),
    503: ("overloaded", True),
    504: ("timeout", True),
    529: ("overloaded", True),
}

_TOO_LONG: Final = (
    "maximum context length",
    "context window",
    "context length",
    "prompt is too long",
    "too many tokens",
)
_OF_A_HEADER: Final = "Illegal header value"
_CODES_THAT_SAY_LITTLE: Final = frozenset(("invalid_request_error",))
_CLIENT_ERROR, _SERVER_ERROR = 400, 500
_OF_PROXY: Final = 407
_ADVICE_OF_PROXY: Final = (
    "The proxy requires a user and a password. Put them into its address, HTTPS_PROXY or "
    "HTTP_PROXY."
)
_TEXTS: Final = ("message", "detail", "msg", "reason")
_OF_A_REPLY: Final = frozenset(("choices", "type", "usage", "object", "output", "response"))
_OF_AN_ERROR: Final = frozenset(("message", "detail", "errors", "msg"))
_MOST_SAID: Final = 2_000
_MOST_LEVELS: Final = 5
_DIGITS: Final = 3

_ADVICE: Final[Mapping[str, str]] = {
    "auth": "Check the key: api_key=, or OPENAI_API_KEY.",
    "permission": "The key lacks the permission. Ask for access, or use another model.",
    "not_found": "Check the model's name and the base_url.",
    "context_length": (
        "The request is too long for this model. Shorten the history, or use a model with a "
        "larger context."
    ),
    "bad_request": "The provider did not accept the request. Correct what its message names.",
    "content_filter": (
        "The content filter of the provider blocked the request. Change the messages."
    ),
}


class model_errors:  # noqa: N801 -- a context manager, in the words of `contextlib`
    """Converts the client's errors to `ModelError`s, with the original as the cause.

    `who` names the model.
    """

    __slots__ = ("_who",)

    def __init__(self, who: object) -> None:
        self._who = who

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if isinstance(error, Exception):
            raise_mapped(error, self._who)


def raise_mapped(error: Exception, who: object) -> None:
    """Raise the `ModelError` for an error of the client, if there is one."""
    mapped = None if isinstance(error, OffbookError) else model_error(error, str(who))
    if mapped is not None:
        try:
            raise mapped from error
        finally:
            del mapped  # its traceback has this frame


def model_error(error: Exception, who: str) -> ModelError | None:
    """Return the `ModelError` for an error of the client.

    None if neither the provider nor the connection caused it.
    """
    names = [
        cls.__name__
        for cls in type(error).__mro__
        if cls.__module__.split(".")[0] == "openai" and cls.__name__ in KINDS
    ]
    if names:
        return _of_client(error, KINDS[names[0]], who)
    if isinstance(error, TransportError):
        text = "no answer in time" if error.kind == "timeout" else "the connection failed"
        return ModelError(f"{who}: {text}: {error.name}: {error}", kind=error.kind, retryable=True)
    if isinstance(error, TimeoutError):
        return ModelError(
            f"{who}: no answer in time. Try again, or pass a larger timeout.",
            kind="timeout",
            retryable=True,
        )
    if any(cls.__name__ == "TimeoutException" for cls in type(error).__mro__):
        return ModelError(
            f"{who}: no answer in time ({type(error).__name__}). Try again, or pass a larger "
            "timeout.",
            kind="timeout",
            retryable=True,
        )
    if isinstance(error, ValueError) and type(error).__name__ in {
        "JSONDecodeError",
        "UnicodeDecodeError",
    }:
        return ModelError(
            f"{who}: the provider's answer cannot be read as JSON: {error}. Check the base_url.",
            kind="malformed",
            retryable=True,
        )
    if isinstance(error, OSError) or type(error).__module__.split(".")[0] in {
        "httpx2",
        "httpx",
        "httpcore2",
        "httpcore",
        "anyio",
    }:
        return ModelError(
            f"{who}: the connection failed: {_said(error)}. Check the base_url and the network.",
            kind="connection",
            retryable=True,
        )
    return None


def error_in(item: object) -> object:
    """Return the item if it reports an error in a form of a provider or gateway; else None."""
    if not isinstance(item, Mapping):
        return None
    if item.get("error") or item.get("object") == "error" or item.get("type") == "error":
        return item
    return item if not item.keys() & _OF_A_REPLY and item.keys() & _OF_AN_ERROR else None


def event_error(error: object, who: object) -> ModelError:
    """Return the error that an event of a stream, or a successful reply, reports."""
    levels = _levels(error)
    code = _first(levels, "code")
    kinds = [
        value
        for level in levels
        for value in (level.get("code"), level.get("type"))
        if isinstance(value, str)
    ]
    text = next(
        (
            str(value)[:_MOST_SAID]
            for level in levels
            for name in _TEXTS
            if (value := level.get(name))
        ),
        "no reason given",
    )
    kind, retryable = next((_BY_CODE[name] for name in kinds if name in _BY_CODE), ("other", False))
    status = next(
        (
            number
            for name in ("status", "status_code", "code")
            if (number := _status(_first(levels, name))) is not None
        ),
        None,
    )
    if kind == "other" and status is not None:
        kind, retryable = _BY_STATUS.get(
            status, ("server", True) if status >= _SERVER_ERROR else ("bad_request", False)
        )
    if kind in {"bad_request", "other"} and any(words in text.lower() for words in _TOO_LONG):
        kind, retryable = "context_length", False
    named = f" ({code})" if code else ""
    return ModelError(
        f"{who}: the provider reported an error instead of the reply: {text}{named}.",
        kind=kind,
        status=status,
        retryable=retryable,
    )


def _levels(error: object) -> list[Mapping[str, object]]:
    """Return an error and its nested errors, the innermost first."""
    levels: list[Mapping[str, object]] = []
    while error and len(levels) < _MOST_LEVELS:
        if isinstance(error, list | tuple):
            error = error[0]
            continue
        if isinstance(error, Mapping):
            levels.insert(0, error)
            error = error.get("error") or error.get("errors")
            continue
        if isinstance(error, str | int | float):
            levels.insert(0, {"message": str(error)})
        else:
            levels.insert(
                0, {name: getattr(error, name, None) for name in ("message", "code", "type")}
            )
        break
    return levels


def _first(levels: list[Mapping[str, object]], name: str) -> object:
    return next((value for level in levels if (value := level.get(name)) is not None), None)


def _status(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) == _DIGITS:
        value = int(value)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and value >= _CLIENT_ERROR
        else None
    )


def _of_client(error: Exception, known: tuple[str, bool], who: str) -> ModelError:
    kind, retryable = known
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and kind != "malformed" else None
    text = str(getattr(error, "message", "") or error)
    if status is not None and status in _BY_STATUS:
        kind, retryable = _BY_STATUS[status]
    elif status is not None and kind == "other":
        kind, retryable = (
            ("server", True)
            if status >= _SERVER_ERROR
            else ("bad_request", False)
            if status >= _CLIENT_ERROR
            else known
        )
    codes = [
        code
        for code in (getattr(error, "code", None), getattr(error, "type", None))
        if isinstance(code, str)
    ]
    for code in codes:
        if code in _BY_CODE and not (code in _CODES_THAT_SAY_LITTLE and status is not None):
            kind, retryable = _BY_CODE[code]
            break
    if kind in {"bad_request", "other"} and any(words in text.lower() for words in _TOO_LONG):
        kind, retryable = "context_length", False
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    verdict = headers.get("x-should-retry")
    if verdict in {"true", "false"}:
        retryable = verdict == "true"
    of_proxy = status == _OF_PROXY or (kind == "connection" and _is_refused_by_proxy(error))
    if of_proxy:
        kind, retryable = "auth", False
    cause = (
        f" ({_said(error.__cause__)})"
        if error.__cause__ is not None and (of_proxy or kind in {"connection", "timeout"})
        else ""
    )
    advice = _ADVICE.get(kind, "") if not of_proxy else _ADVICE_OF_PROXY
    return ModelError(
        f"{who}: {text}{cause} {advice}".rstrip(),
        kind=kind,
        status=status,
        retryable=retryable,
        retry_after=_retry_after(headers),
    )


def _is_refused_by_proxy(error: BaseException) -> bool:
    cause = error.__cause__
    return (
        cause is not None and type(cause).__name__ == "ProxyError" and str(_OF_PROXY) in str(cause)
    )


def _said(error: BaseException) -> str:
    text = str(error)
    if _OF_A_HEADER in text:  # the rest of the text may be the key
        text = f"{_OF_A_HEADER}. Check the key: api_key=, or OPENAI_API_KEY; and default_headers="
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `retry-after-ms`, or of `retry-after` (seconds or a date)."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 -- a millisecond and a half of each program's start, and few providers give a date

    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, date.timestamp() - HERE.time())
