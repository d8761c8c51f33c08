"""Conversion of the SDK's errors to errors of this package, which name the agent and the fix.

The cause is retained, and at most one line of the remote text is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx
from a2a.client.errors import A2AClientError
from a2a.utils.errors import A2A_ERROR_REASONS
from a2a.utils.errors import A2AError as SdkError

from ...errors import OffbookError
from ..errors import A2AConnectionError, A2AError, A2AProtocolError, A2ARequestError, one_line

__all__ = ["told"]

_BUSY: Final = frozenset((429, 502, 503, 504))
_REFUSED: Final = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}
_GRPC_GONE: Final = frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED"))


def told(error: Exception, who: str) -> OffbookError:
    """Convert an error."""
    if isinstance(error, SdkError) and not isinstance(error, A2AClientError):
        reason = A2A_ERROR_REASONS.get(type(error), "")
        return A2ARequestError(
            f"{who} refused the request: {one_line(str(error)) or reason} ({reason}).", reason
        )
    for link in _chain(error):
        if isinstance(link, OffbookError):
            return link
        if isinstance(link, httpx.HTTPStatusError):
            return _of_status(link.response, who)
        if isinstance(link, httpx.TransportError):
            what = one_line(str(link)) or type(link).__name__
            if isinstance(link, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
                return A2AConnectionError(
                    f"{who} cannot be reached: {what.rstrip('.')}. Check the address and the "
                    "network.",
                    was_sent=False,
                )
            return A2AConnectionError(
                f"{who} broke the connection before its response was complete: "
                f"{what.rstrip('.')}. The request may have been handled."
            )
        code = getattr(link, "code", None)
        if type(link).__module__.startswith("grpc") and callable(code):
            return _of_grpc(getattr(code(), "name", ""), link, who)
    return A2AProtocolError(
        f"{who} sent a response that is not Agent2Agent. Check the address. "
        f"{type(error).__name__}: {one_line(str(error))}"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__


def _of_status(response: httpx.Response, who: str) -> A2AError:
    status = response.status_code
    if response.is_redirect:
        where = one_line(response.headers.get("location", ""), 200)
        return A2AProtocolError(
            f"{who} redirects to {where!r}, and redirects are not followed. Pass that address "
            "instead."
        )
    if status in _BUSY:
        return A2AConnectionError(f"{who} cannot answer now: HTTP {status}. Try again later.")
    if status in _REFUSED:
        return A2ARequestError(
            f"{who} refused the credentials: HTTP {status}. Pass valid ones as auth=.",
            _REFUSED[status],
        )
    return A2ARequestError(
        f"{who} refused the request: HTTP {status} {one_line(response.reason_phrase, 100)}.",
        f"HTTP_{status}",
    )


def _of_grpc(code: str, error: BaseException, who: str) -> A2AError:
    details = getattr(error, "details", None)
    said = one_line(str(details() if callable(details) else error))
    if code in _GRPC_GONE:
        return A2AConnectionError(
            f"{who} cannot be reached, or broke the connection: {said}. Check the address and "
            "the network."
        )
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return A2ARequestError(
            f"{who} refused the credentials: {said}. Pass valid ones as auth=.", code
        )
    if code == "RESOURCE_EXHAUSTED":
        return A2AProtocolError(
            f"{who} exceeded a limit: {said}. If it is the size of a response, raise "
            "ClientLimits(response=...)."
        )
    return A2ARequestError(f"{who} refused the request: {said} ({code}).", code)
