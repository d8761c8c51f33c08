"""The same operations over gRPC, alongside the app, with the same answers."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import a2a.types.a2a_pb2_grpc as service
import grpc  # type: ignore[import-untyped]
from a2a.auth.user import UnauthenticatedUser, User
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc as former_service
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.request_handlers.grpc_handler import (
    DefaultGrpcServerCallContextBuilder,
    GrpcHandler,
)
from a2a.utils.constants import VERSION_HEADER

from ...errors import UsageError
from .auth import Principal
from .call_context import KnownUser

if TYPE_CHECKING:
    from a2a.server.request_handlers.request_handler import RequestHandler

    from .auth import Authenticator
    from .gate import Bounds

__all__ = ["GrpcServer"]

_STOP_SECONDS: Final = 2.0
_SPOKEN: Final = ("1.", "0.3")
# Set by the interceptor, and read by the handler: both are in the task of the call.
_caller: Final[contextvars.ContextVar[Principal | None]] = contextvars.ContextVar(
    "a2a_caller", default=None
)


class _Builder(DefaultGrpcServerCallContextBuilder):
    def build_user(self, context: grpc.aio.ServicerContext) -> User:  # noqa: ARG002 -- the SDK's
        principal = _caller.get()
        return UnauthenticatedUser() if principal is None else KnownUser(principal)


class _Entrance(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Accepts only known callers, and supported versions."""

    def __init__(self, auth: Authenticator | None, logger: logging.Logger) -> None:
        self._auth = auth
        self._logger = logger

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        headers = {
            str(key).lower(): value
            for key, value in details.invocation_metadata or ()
            if isinstance(value, str)
        }
        code, why = await self._refusal(headers)
        handler = await continuation(details)
        if code is None or handler is None:
            return handler

        async def refuse(_request: object, context: grpc.aio.ServicerContext) -> Any:
            await context.abort(code, why)

        async def refuse_stream(_request: object, context: grpc.aio.ServicerContext) -> Any:
            await context.abort(code, why)
            yield

        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                refuse_stream, handler.request_deserializer, handler.response_serializer
            )
        return grpc.unary_unary_rpc_method_handler(
            refuse, handler.request_deserializer, handler.response_serializer
        )

    async def _refusal(self, headers: dict[str, str]) -> tuple[Any, str]:
        """Return a status and a text if the call is refused. Otherwise the status is None."""
        version = headers.get(VERSION_HEADER.lower(), "")
        if version and not version.startswith(_SPOKEN):
            return (
                grpc.StatusCode.UNIMPLEMENTED,
                f"A2A version {version[:20]!r} is not spoken here; 1.0 and 0.3 are.",
            )
        if self._auth is None:
            return None, ""
        try:
            principal = await self._auth.authenticate(headers)
        except Exception:
            self._logger.exception("The authenticator has failed; the call is refused.")
            return (
                grpc.StatusCode.UNAVAILABLE,
                "The credentials cannot be checked now. Try again later.",
            )
        _caller.set(principal)
        if principal is None:
            return (
                grpc.StatusCode.UNAUTHENTICATED,
                "The request has no valid credentials. Send those that the card requires.",
            )
        return None, ""


class GrpcServer:
    """A gRPC server at one address."""

    def __init__(
        self, handler: RequestHandler, address: str, auth: Authenticator | None, bounds: Bounds
    ) -> None:
        self._handler = handler
        self._address = address
        self._auth = auth
        self._max = bounds.body
        self._logger = bounds.logger
        self._server: grpc.aio.Server | None = None

    async def start(self) -> str:
        """Start, and return the address with the actual port."""
        options = [("grpc.max_receive_message_length", self._max), ("grpc.so_reuseport", 0)]
        server = grpc.aio.server(
            interceptors=(_Entrance(self._auth, self._logger),), options=options
        )
        service.add_A2AServiceServicer_to_server(GrpcHandler(self._handler, _Builder()), server)  # type: ignore[no-untyped-call]
        former_service.add_A2AServiceServicer_to_server(
            CompatGrpcHandler(self._handler, _Builder()), server
        )  # type: ignore[no-untyped-call]
        try:
            port = server.add_insecure_port(self._address)
        except RuntimeError as error:
            msg = (
                f"a2a_app: grpc={self._address!r} cannot be used: the address is in use, "
                "or does not belong to this machine. Pass another one."
            )
            raise UsageError(msg) from error
        await server.start()
        self._server = server
        return f"{self._address.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(_STOP_SECONDS)
