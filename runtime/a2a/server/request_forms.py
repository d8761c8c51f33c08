"""Validation of a request before the SDK's routes: these would answer a malformed one with their
own error texts, and log a traceback.

Malformed requests are refused with one line in the log, and fields that versions 0.2.5 and 0.3 omit
are added. Well-formed requests are passed on.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.server.jsonrpc_models import JSONParseError as RpcParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types import a2a_pb2 as pb
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import InvalidParamsError, InvalidRequestError
from google.protobuf.json_format import Parse, ParseDict
from jsonrpc.jsonrpc2 import JSONRPC20Request  # type: ignore[import-untyped]
from pydantic import ValidationError
from starlette.responses import JSONResponse

from ..errors import one_line
from ..former import FORMER_METHODS, complete_message
from .gate import replayed

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["RequestForms"]

_SENDING: Final = ("/message:send", "/message:stream")
_FORMER: Final = "/v1/"


class _Malformed(Exception):
    """The request cannot be parsed. `answer` is the body of the response."""

    def __init__(self, answer: dict[str, Any], why: object) -> None:
        super().__init__(one_line(str(why)))
        self.answer = answer


class RequestForms:
    """An ASGI app in front of the SDK's routes."""

    def __init__(self, app: ASGIApp, is_rpc: Callable[[str], bool], logger: logging.Logger) -> None:
        self._app = app
        self._logger = logger
        self._is_rpc = is_rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: bytes | None = scope.get("offbook.body")
        path = (
            str(scope["path"]).removeprefix(scope.get("root_path", "")) if body is not None else ""
        )
        is_rpc = self._is_rpc(path)
        try:
            if body is not None and is_rpc:
                receive = replayed(_checked(body), receive)
            elif body is not None and path.endswith(_SENDING) and _FORMER not in path:
                _check_rest(body)
        except _Malformed as malformed:
            self._logger.warning(
                "A request to %s is refused, because it is malformed: %s", path, malformed
            )
            await JSONResponse(malformed.answer, 200 if is_rpc else 400)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _checked(body: bytes) -> bytes:
    """Return the completed body of a JSON-RPC request."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Malformed(
            build_error_response(None, RpcParseError(message="The body must be valid JSON.")), error
        ) from None
    request_id = (
        said.get("id") if isinstance(said, dict) and type(said.get("id")) in (str, int) else None
    )
    if not isinstance(said, dict):
        what = (
            "Batch requests are not supported. Send one request at a time."
            if isinstance(said, list) and said
            else "The body must be a request of JSON-RPC 2.0."
        )
        raise _Malformed(build_error_response(None, InvalidRequestError(what)), "no request")
    try:
        JSONRPC20Request.from_data(said)
    except Exception as error:  # noqa: BLE001 -- any error of it
        raise _Malformed(
            build_error_response(
                request_id, InvalidRequestError("The body must be a request of JSON-RPC 2.0.")
            ),
            error,
        ) from None
    method, params = said.get("method"), said.get("params")
    if method in FORMER_METHODS and isinstance(params, dict) and "message" in params:
        said["params"] = {**params, "message": complete_message(params["message"])}
        body = json.dumps(said).encode()
    try:
        if method in JSONRPC03Adapter.METHOD_TO_MODEL:
            model: Any = JSONRPC03Adapter.METHOD_TO_MODEL[method]
            model.model_validate(said)
        elif method in JsonRpcDispatcher.METHOD_TO_MODEL:
            ParseDict(
                params if params is not None else {},
                JsonRpcDispatcher.METHOD_TO_MODEL[method](),
                ignore_unknown_fields=True,
            )
    except Exception as error:  # noqa: BLE001 -- any error of the SDK's parsers
        refused = InvalidParamsError(f"The params do not match the method {method}{_place(error)}.")
        raise _Malformed(build_error_response(request_id, refused), error) from None
    return body


def _place(error: Exception) -> str:
    """Return the location in the params, as far as the client knows the names."""
    if not isinstance(error, ValidationError):
        return ""
    names = [str(name) for name in error.errors()[0]["loc"]]
    return f": see {one_line('.'.join(names), 100)}" if names else ""


def _check_rest(body: bytes) -> None:
    try:
        Parse(body, pb.SendMessageRequest(), ignore_unknown_fields=True)
    except Exception as error:  # noqa: BLE001 -- any error of protobuf
        raise _Malformed(
            build_rest_error_payload(InvalidParamsError("The body must be a SendMessageRequest.")),
            error,
        ) from None
