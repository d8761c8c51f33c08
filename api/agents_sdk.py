"""Programs of OpenAI's Agents SDK, with stored runs: the package `offbook.actors.agents_sdk`.

Needs the extra `agents-sdk`.
"""

from .actors.agents_sdk import (
    OffbookRunner,
    ReplayMismatch,
    Runner,
    SdkAgent,
    StoreSession,
    as_sdk_agent,
    idempotency_key,
    install,
)

__all__ = [
    "OffbookRunner",
    "ReplayMismatch",
    "Runner",
    "SdkAgent",
    "StoreSession",
    "as_sdk_agent",
    "idempotency_key",
    "install",
]
