"""Calls to servers of versions 0.2.5 and 0.3 over JSON-RPC.

Such servers omit fields, which this transport fills in.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, Final

import httpx
from a2a.client import ClientCallContext
from a2a.client.client import ClientConfig
from a2a.client.transports.base import ClientTransport
from a2a.client.transports.http_helpers import get_http_args, send_http_stream_request
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as former
from a2a.compat.v0_3.jsonrpc_transport import CompatJsonRpcTransport
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import PROTOCOL_VERSION_0_3, VERSION_HEADER

from ..former import complete_event

__all__ = ["json_rpc_transport"]

_KINDS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "task": former.Task,
        "message": former.Message,
        "status-update": former.TaskStatusUpdateEvent,
        "artifact-update": former.TaskArtifactUpdateEvent,
    }
)


def json_rpc_transport(card: pb.AgentCard, url: str, config: ClientConfig) -> ClientTransport:
    """Return the transport for the version that the card's only interface names."""
    http = config.httpx_client
    assert isinstance(http, httpx.AsyncClient)
    if card.supported_interfaces[0].protocol_version.startswith(PROTOCOL_VERSION_0_3):
        return _Former(http, card, url)
    return JsonRpcTransport(http, card, url)


class _Former(CompatJsonRpcTransport):
    async def _send_request(
        self, json_data: dict[str, Any], context: ClientCallContext | None = None
    ) -> dict[str, Any]:
        answer = await super()._send_request(json_data, context)
        result = answer.get("result")
        if isinstance(result, Mapping) and ("status" in result or "parts" in result):
            answer = {**answer, "result": complete_event(result)}
        return answer

    async def _send_stream_request(
        self, json_data: dict[str, Any], context: ClientCallContext | None = None
    ) -> AsyncGenerator[pb.StreamResponse]:
        args = get_http_args(context)
        args["headers"] = {**args.get("headers", {}), VERSION_HEADER.lower(): PROTOCOL_VERSION_0_3}
        async for said in send_http_stream_request(
            self.httpx_client, "POST", self.url, self._handle_http_error, json=json_data, **args
        ):
            data = json.loads(said)
            if data.get("error"):
                raise self._create_jsonrpc_error(data["error"])
            if isinstance(data.get("result"), Mapping):
                result = complete_event(data["result"])
                if (kind := _KINDS.get(result["kind"])) is not None:
                    yield conversions.to_core_stream_response(
                        former.SendStreamingMessageSuccessResponse(
                            result=kind.model_validate(result)
                        )
                    )
