"""Which client, key and API models use that are not told.

Owns: these settings of the process. It must never make a request.
"""

from __future__ import annotations

from typing import Any, Literal

from ..exceptions import UserError

__all__ = [
    "client_for",
    "defaults",
    "set_default_openai_agent_registration",
    "set_default_openai_api",
    "set_default_openai_client",
    "set_default_openai_harness",
    "set_default_openai_key",
    "set_default_openai_responses_transport",
]


class _Defaults:
    def __init__(self) -> None:
        self.key: str | None = None
        self.client: Any = None
        self.uses_responses: bool | None = None
        """None: nothing was said; then the address decides."""
        self.transport: Literal["http", "websocket"] = "http"
        self.registration: Any = None


_defaults = _Defaults()


def defaults() -> _Defaults:
    """The settings."""
    return _defaults


def client_for(given: Any) -> Any:
    """OpenAI's client: that one, the one that was set, or one of its own."""
    if given is not None:
        return given
    if _defaults.client is not None:
        return _defaults.client
    from openai import AsyncOpenAI  # noqa: PLC0415 -- it takes its time

    return AsyncOpenAI() if _defaults.key is None else AsyncOpenAI(api_key=_defaults.key)


def set_default_openai_key(key: str, use_for_tracing: bool = True) -> None:
    """The key that models use. No trace goes to OpenAI unless an exporter is set up: `use_for_tracing` is for that one."""
    _defaults.key = key
    if use_for_tracing:
        from ..tracing import set_tracing_export_api_key  # noqa: PLC0415 -- built on nothing of models

        set_tracing_export_api_key(key)


def set_default_openai_client(client: Any, use_for_tracing: bool = True) -> None:
    """The client that models use."""
    _defaults.client = client
    key = getattr(client, "api_key", None)
    if use_for_tracing and isinstance(key, str):
        from ..tracing import set_tracing_export_api_key  # noqa: PLC0415 -- built on nothing of models

        set_tracing_export_api_key(key)


def set_default_openai_api(api: Literal["chat_completions", "responses"]) -> None:
    """The API that models use."""
    if api not in ("chat_completions", "responses"):
        msg = f"Invalid OpenAI API {api!r}: expected 'chat_completions' or 'responses'."
        raise ValueError(msg)
    _defaults.uses_responses = api == "responses"


def set_default_openai_responses_transport(transport: Literal["http", "websocket"]) -> None:
    """How the Responses API is reached. Only `http` is supported."""
    if transport not in ("http", "websocket"):
        msg = "Invalid OpenAI Responses transport. Expected one of: 'http', 'websocket'."
        raise ValueError(msg)
    if transport == "websocket":
        from ..missing import refuse  # noqa: PLC0415 -- for those who ask for it

        refuse('set_default_openai_responses_transport("websocket")', 'leave it at "http"')
    _defaults.transport = transport


def set_default_openai_agent_registration(registration: Any) -> None:
    """What OpenAI is told of the program. It is kept, and nothing is sent."""
    _defaults.registration = registration


def set_default_openai_harness(harness_id: str | None) -> None:
    """By which name OpenAI knows the program. It is kept, and nothing is sent."""
    if harness_id is not None and not isinstance(harness_id, str):
        msg = "harness_id must be a string or None"
        raise UserError(msg)
    from .openai_agent_registration import OpenAIAgentRegistrationConfig  # noqa: PLC0415 -- for those who use it

    _defaults.registration = None if harness_id is None else OpenAIAgentRegistrationConfig(harness_id)
