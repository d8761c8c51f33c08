"""Sessions, as the SDK sees them: conversations that are kept from run to run.

Owns the interface, and the kinds that there are. Its files:

    session_settings how much of a session is read
    session         the interface
    util            the callback that puts a session's items and the new ones together
    sqlite_session  in a file of SQLite, in the SDK's own form
    store_session   in a store of understudy's
    openai_conversations_session at OpenAI
    openai_responses_compaction_session made shorter by OpenAI

It must never run an agent.
"""

from importlib import import_module as _import_module
from types import MappingProxyType as _MappingProxyType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .session import OpenAIResponsesCompactionArgs, OpenAIResponsesCompactionAwareSession, Session, SessionABC, is_openai_responses_compaction_aware_session
from .session_settings import SessionSettings
from .util import SessionInputCallback

if _TYPE_CHECKING:
    from .openai_conversations_session import OpenAIConversationsSession
    from .openai_responses_compaction_session import OpenAIResponsesCompactionSession
    from .sqlite_session import SQLiteSession
    from .store_session import StoreSession

__all__ = [
    "OpenAIConversationsSession",
    "OpenAIResponsesCompactionArgs",
    "OpenAIResponsesCompactionAwareSession",
    "OpenAIResponsesCompactionSession",
    "SQLiteSession",
    "Session",
    "SessionABC",
    "SessionInputCallback",
    "SessionSettings",
    "StoreSession",
    "is_openai_responses_compaction_aware_session",
]

_LATER = _MappingProxyType(
    {
        "OpenAIConversationsSession": ".openai_conversations_session",
        "OpenAIResponsesCompactionSession": ".openai_responses_compaction_session",
        "SQLiteSession": ".sqlite_session",
        "StoreSession": ".store_session",
    }
)


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return getattr(_import_module(_LATER[name], __name__), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
