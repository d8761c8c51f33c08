"""What a session is to the SDK.

Owns: the interface, and what tells the kinds of sessions apart. It must never keep anything.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeGuard, runtime_checkable

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from ..items import TResponseInputItem
    from .session_settings import SessionSettings

__all__ = [
    "OpenAIResponsesCompactionArgs",
    "OpenAIResponsesCompactionAwareSession",
    "Session",
    "SessionABC",
    "is_openai_conversation",
    "is_openai_responses_compaction_aware_session",
    "sanitized_for_conversation",
]


@runtime_checkable
class Session(Protocol):
    """A conversation that is kept from run to run. Whatever has these methods is one."""

    session_id: str
    session_settings: SessionSettings | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, the oldest first; the last ones alone, if there is a limit."""
        ...

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Put items behind the others."""
        ...

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away and return it; None if there is none."""
        ...

    async def clear_session(self) -> None:
        """Take all items away."""
        ...


class SessionABC(abc.ABC):
    """The same, as a class to derive from."""

    session_id: str
    session_settings: SessionSettings | None = None

    @abc.abstractmethod
    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, the oldest first; the last ones alone, if there is a limit."""

    @abc.abstractmethod
    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Put items behind the others."""

    @abc.abstractmethod
    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away and return it; None if there is none."""

    @abc.abstractmethod
    async def clear_session(self) -> None:
        """Take all items away."""


class OpenAIResponsesCompactionArgs(TypedDict, total=False):
    """What a session is told when it may make itself shorter."""

    response_id: str
    compaction_mode: Literal["previous_response_id", "input", "auto"]
    store: bool
    force: bool


@runtime_checkable
class OpenAIResponsesCompactionAwareSession(Session, Protocol):
    """A session that can make itself shorter."""

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Make it shorter, if it is time."""
        ...


def is_openai_responses_compaction_aware_session(session: Session | None) -> TypeGuard[OpenAIResponsesCompactionAwareSession]:
    """Whether a session can make itself shorter."""
    return session is not None and callable(getattr(session, "run_compaction", None)) and not inspect.isclass(session)


def is_openai_conversation(session: object) -> bool:
    """Whether OpenAI keeps the items: there, items have ids that are OpenAI's to give."""
    return bool(getattr(session, "keeps_at_openai", False)) or bool(getattr(getattr(session, "underlying_session", None), "keeps_at_openai", False))


def sanitized_for_conversation(items: Sequence[Any]) -> list[Any]:
    """Items without what OpenAI gives itself."""
    return [{key: value for key, value in item.items() if key not in ("id", "provider_data")} if isinstance(item, dict) else item for item in items]
