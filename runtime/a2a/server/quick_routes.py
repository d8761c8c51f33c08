"""A fast path for the two operations that send a message: parsed once, answered in bytes.

It handles ordinary requests of version 1.0. All others, including invalid ones, go to the SDK's
routes, which have the error messages. Its answers are the same as those of the SDK's routes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from a2a.auth.user import UnauthenticatedUser
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE, PROTOCOL_VERSION_1_0, VERSION_HEADER
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError

from ..tasks.listing import apply_history_length
from .call_context import KnownUser
from .event_stream import send_events
from .wire_json import as_json_object, read_message

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ..tasks.subscription import Shown
    from .request_handler import Handler

__all__ = ["QuickRoutes"]

_UNARY: Final = "SendMessage"
_STREAM: Final = "SendStreamingMessage"
_REST: Final = {"/message:send": _UNARY, "/message:stream": _STREAM}
_FIELDS: Final = frozenset(("jsonrpc", "id", "method", "params"))
_VERSION: Final = VERSION_HEADER.lower().encode()
_VERSION_1_0: Final = PROTOCOL_VERSION_1_0.encode()
_EXTENSIONS: Final = HTTP_EXTENSION_HEADER.lower().encode()
_KINDS: Final = {
    pb.Task: "task",
    pb.Message: "message",
    pb.TaskStatusUpdateEvent: "statusUpdate",
    pb.TaskArtifactUpdateEvent: "artifactUpdate",
}


class _Call:
    """A request on the fast path: its parameters, and the format of its answers."""

    __slots__ = ("id", "is_rpc", "method", "params")

    def __init__(
        self,
        method: str,
        params: pb.SendMessageRequest,
        request_id: str | int | None,
        *,
        is_rpc: bool,
    ) -> None:
        self.method = method
        self.params = params
        self.id = request_id
        self.is_rpc = is_rpc

    def result(self, shown: Shown) -> dict[str, object]:
        if isinstance(shown, pb.Task):
            shown = apply_history_length(shown, self.params.configuration)
        said: dict[str, object] = {_KINDS[type(shown)]: as_json_object(shown)}
        return {"result": said, "id": self.id, "jsonrpc": "2.0"} if self.is_rpc else said

    def error(self, error: Exception) -> dict[str, Any]:
        if self.is_rpc:
            assert isinstance(error, A2AError)
            return build_error_response(self.id, error)
        return build_rest_error_payload(error)

    def event(self, shown: Shown) -> str:
        return json.dumps(self.result(shown), ensure_ascii=False)

    def error_event(self, error: Exception) -> str:
        return json.dumps(self.error(error), ensure_ascii=False)


class QuickRoutes:
    """An ASGI app in front of the SDK's routes."""

    def __init__(
        self, handler: Handler, others: ASGIApp, is_rpc: Callable[[str], bool], place: str
    ) -> None:
        self._handler = handler
        self._others = others
        self._is_rpc = is_rpc
        self._rest = {place.rstrip("/") + path: method for path, method in _REST.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = scope.get("offbook.body")
        call = None if body is None else self._call(scope, body)
        if call is None:
            await self._others(scope, receive, send)
            return
        context = _context(scope)
        try:
            if call.method == _UNARY:
                answer = await self._handler.on_message_send(call.params, context)
                await _answer(
                    send,
                    200,
                    call.result(answer),
                    "application/json" if call.is_rpc else A2A_JSON_MEDIA_TYPE,
                )
                return
            async with self._handler.streaming(call.params, context) as shows:
                await send_events(shows, call.event, call.error_event, scope, receive, send)
        except A2AError as refused:
            said = call.error(refused)
            await _answer(
                send, 200 if call.is_rpc else said["error"]["code"], said, "application/json"
            )

    def _call(self, scope: Scope, body: bytes) -> _Call | None:
        """Return the request, if it is an ordinary one."""
        version = None
        for name, value in scope["headers"]:
            if name == _VERSION:
                version = value
        if version != _VERSION_1_0:
            return None
        path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
        is_rpc = self._is_rpc(path)
        method = self._rest.get(path)
        if not is_rpc and method is None:
            return None
        try:
            said = (
                json.loads(body) if is_rpc else json.loads(body, object_pairs_hook=_without_repeats)
            )
        except ValueError:
            return None
        return (
            _ordinary_call(said) if is_rpc else _read_call(method or "", said, None, is_rpc=False)
        )


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a dict, or raise ValueError: HTTP+JSON refuses an object with a repeated name."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _ordinary_call(said: object) -> _Call | None:
    if type(said) is not dict or not said.keys() <= _FIELDS or said.get("jsonrpc") != "2.0":
        return None
    method, request_id = said.get("method"), said.get("id")
    if method not in (_UNARY, _STREAM) or type(request_id) not in (str, int):
        return None
    return _read_call(method, said.get("params"), request_id, is_rpc=True)


def _read_call(
    method: str, said: object, request_id: str | int | None, *, is_rpc: bool
) -> _Call | None:
    params = pb.SendMessageRequest()
    if type(said) is not dict or not read_message(said, params):
        return None
    return _Call(method, params, request_id, is_rpc=is_rpc)


def _context(scope: Scope) -> ServerCallContext:
    """Return the caller and the requested extensions: all that the operations need."""
    principal = scope.get("offbook.principal")
    asked = [value.decode("latin-1") for name, value in scope["headers"] if name == _EXTENSIONS]
    return ServerCallContext(
        user=UnauthenticatedUser() if principal is None else KnownUser(principal),
        requested_extensions=get_requested_extensions(asked),
    )


async def _answer(send: Send, status: int, said: dict[str, object], media_type: str) -> None:
    # As Starlette writes it
    body = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", media_type.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
