"""An agent as an ASGI app that supports Agent2Agent.

The actor system starts with the app's lifespan, or with the first request if the app is mounted in
another one, and ends with the lifespan. The app binds no address, except for gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final

from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, PROTOCOL_VERSION_0_3, VERSION_HEADER
from starlette.routing import BaseRoute, Mount, Route, Router

from .call_context import CallContextBuilder
from .card import extended_card, signer_of, with_address
from .gate import Bounds, Gate
from .quick_routes import QuickRoutes
from .request_forms import RequestForms
from .request_handler import Handler

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from ..push.configs import PushConfigs
    from ..tasks.keys import Owner
    from ..tasks.service import TaskService
    from .auth import Authenticator
    from .settings import AgentCardSettings

__all__ = ["A2AApp"]

_MOST_ADDRESSES: Final = 64
_FORMER_PATH: Final = "/.well-known/agent.json"
"""The path of the card for clients of former versions."""


class A2AApp:
    """The app.

    It can be mounted in FastAPI and Starlette; pass them `lifespan=app.lifespan`, so that it ends
    with them.
    """

    def __init__(
        self,
        card: pb.AgentCard,
        settings: AgentCardSettings,
        auth: Authenticator | None,
        serve: Callable[[], Any],
        configs: PushConfigs | None,
        *,
        handler_path: str,
        bounds: Bounds,
        grpc: str | None = None,
    ) -> None:
        self._card = card
        self._settings = settings
        self._serve = serve  # an async context manager that provides the service
        self._service: TaskService | None = None
        self._starting: asyncio.Lock | None = None
        self._held: Any = None
        self._path = "/" + handler_path.strip("/")
        self._card_places = {
            place + known
            for place in ("", self._path.rstrip("/"))
            for known in (AGENT_CARD_WELL_KNOWN_PATH, _FORMER_PATH)
        }
        self._signer = signer_of(settings)
        self._made_at = formatdate(usegmt=True)
        self._cards: dict[tuple[str, bool], Callable[[Request], Awaitable[Response]]] = {}
        self._bound: str | None = None  # the server's address, which no client can choose
        self._address = (
            settings.url.rstrip("/") + ("" if self._path == "/" else self._path)
            if settings.url
            else None
        )
        extended = self._extended if settings.extended is not None else None
        self.handler = Handler(self.service, card, extended, configs)
        self._app = Router(self._routes(), redirect_slashes=False, lifespan=self.lifespan)
        self._grpc = None
        if grpc is not None:
            from .grpc_server import GrpcServer  # noqa: PLC0415 -- it imports the extra

            self._grpc = GrpcServer(self.handler, grpc, auth, bounds)
        self.handler.logger = bounds.logger
        forms = RequestForms(self._app, self._is_rpc, bounds.logger)
        self._gate = Gate(
            QuickRoutes(self.handler, forms, self._is_rpc, self._path),
            auth,
            bounds,
            self._is_public,
            self._is_rpc,
        )

    def __repr__(self) -> str:
        return f"<A2AApp of {self._card.name!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._bound is None and scope["type"] == "http" and scope.get("server"):
            host, port = scope["server"]
            name = f"[{host}]" if ":" in host else host
            path = scope.get("root_path", "").rstrip("/")
            self._bound = f"{scope['scheme']}://{name}:{port}{path}"
        await self._gate(scope, receive, send)

    # --- lifetime ---

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Run the server.

        Tasks in progress at its end are left for the next one, if the store outlives it.
        """
        held = self._serve()
        self._service = await held.__aenter__()
        try:
            if self._grpc is not None:
                self._card.supported_interfaces[0].url = await self._grpc.start()
                self._cards.clear()
            yield
        finally:
            if self._grpc is not None:
                await self._grpc.stop()
            self._service = None
            await held.__aexit__(None, None, None)

    async def service(self) -> TaskService:
        """Return the service, which the first request starts if the app has no lifespan."""
        if self._service is None or self._service.system.loop.is_closed():
            if self._starting is None or self._service is not None:
                self._starting = asyncio.Lock()
            async with self._starting:
                if self._service is None or self._service.system.loop.is_closed():
                    self._held = self._serve()
                    self._service = await self._held.__aenter__()
        return self._service

    async def aclose(self) -> None:
        """Stop the service that the first request has started, if the app has no lifespan."""
        held, self._held = self._held, None
        if held is not None:
            self._service = None
            await held.__aexit__(None, None, None)

    # --- routes ---

    def _routes(self) -> list[BaseRoute]:
        builder, path = CallContextBuilder(), self._path
        routes: list[BaseRoute] = [
            Route(place, self._show_card, methods=["GET"]) for place in sorted(self._card_places)
        ]
        for url in {path, path.rstrip("/") + "/"}:
            routes += create_jsonrpc_routes(self.handler, url, builder, enable_v0_3_compat=True)
        rest = create_rest_routes(self.handler, builder, enable_v0_3_compat=True)
        return [*routes, *(rest if path == "/" else [Mount(path, routes=rest)])]

    def _is_public(self, path: str) -> bool:
        return path in self._card_places

    def _is_rpc(self, path: str) -> bool:
        return path.rstrip("/") == self._path.rstrip("/")

    async def _show_card(self, request: Request) -> Response:
        """Return the public card, with the requested address if none is set."""
        address = self._address or _address_of(request) + ("" if self._path == "/" else self._path)
        # The additional fields of 0.3 are not in the schema of 1.0: only its clients get them.
        former = request.url.path.endswith(_FORMER_PATH) or request.headers.get(
            VERSION_HEADER, ""
        ).startswith(PROTOCOL_VERSION_0_3)
        show = self._cards.get((address, former))
        if show is None:
            if len(self._cards) >= _MOST_ADDRESSES:
                self._cards.clear()
            card = self._signed(with_address(self._card, address, former=former))
            show = self._cards[address, former] = create_agent_card_routes(
                card, cache_control="public, max-age=60"
            )[0].endpoint
        response = await show(request)
        response.headers["Last-Modified"] = self._made_at
        response.headers["Vary"] = VERSION_HEADER
        return response

    def _signed(self, card: pb.AgentCard) -> pb.AgentCard:
        return card if self._signer is None else self._signer(card)

    def _extended(self, _owner: Owner) -> pb.AgentCard:
        card = extended_card(self._card, self._settings)
        address = self._address or f"{self._bound or ''}{'' if self._path == '/' else self._path}"
        return self._signed(with_address(card, address))


def _address_of(request: Request) -> str:
    """Return the app's address, as the client sees it: including the mount path."""
    path = request.scope.get("root_path", "").rstrip("/")
    return f"{request.url.scheme}://{request.url.netloc}{path}"
