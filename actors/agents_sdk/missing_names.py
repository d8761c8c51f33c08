"""Names of the SDK behind which there is nothing here.

Owns: that they can be imported, and say so when they are used. It must never do anything else.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from .missing import refuse

__all__ = ["OpenAIResponsesWebSocketOptions", "ResponsesWebSocketSession", "responses_websocket_session"]


class OpenAIResponsesWebSocketOptions(TypedDict, total=False):
    """Options of the Responses API by websocket, which is refused."""

    ping_interval: float | None
    ping_timeout: float | None


class ResponsesWebSocketSession:
    """Refused: the Responses API is reached by HTTP here."""

    def __init__(self, *_args: object, **_options: object) -> None:
        refuse("ResponsesWebSocketSession")


def responses_websocket_session(**_options: Any) -> Any:
    """Refused: the Responses API is reached by HTTP here."""
    refuse("responses_websocket_session()")
