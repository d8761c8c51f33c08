"""Sessions that OpenAI makes shorter.

Owns: `OpenAIResponsesCompactionSession`: when a session is made shorter, and what stands in it then. It must never lose an item when a request fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from .session import OpenAIResponsesCompactionArgs, SessionABC, is_openai_conversation
from .session_settings import SessionSettings

__all__ = ["OpenAIResponsesCompactionMode", "OpenAIResponsesCompactionSession", "default_should_trigger_compaction", "select_compaction_candidate_items"]

OpenAIResponsesCompactionMode: TypeAlias = Literal["previous_response_id", "input", "auto"]

DEFAULT_COMPACTION_THRESHOLD: Final = 10


def select_compaction_candidate_items(items: list[Any]) -> list[Any]:
    """What could be made shorter: all that the user has not said, and is not short already."""
    return [
        item
        for item in items
        if not (isinstance(item, dict) and (item.get("type") == "compaction" or (item.get("role") == "user" and item.get("type") in (None, "message"))))
    ]


def default_should_trigger_compaction(context: dict[str, Any]) -> bool:
    """Whether it is time: ten such items or more."""
    return len(context["compaction_candidate_items"]) >= DEFAULT_COMPACTION_THRESHOLD


class OpenAIResponsesCompactionSession(SessionABC):
    """Another session, which OpenAI makes shorter when it is time."""

    def __init__(
        self,
        session_id: str,
        underlying_session: Any,
        *,
        client: Any = None,
        model: str = "gpt-4.1",
        compaction_mode: OpenAIResponsesCompactionMode = "auto",
        should_trigger_compaction: Callable[[dict[str, Any]], bool] | None = None,
    ) -> None:
        if is_openai_conversation(underlying_session):
            msg = "OpenAIResponsesCompactionSession cannot wrap OpenAIConversationsSession because it manages its own history on the server."
            raise ValueError(msg)
        if isinstance(underlying_session, OpenAIResponsesCompactionSession):
            msg = "OpenAIResponsesCompactionSession cannot wrap another OpenAIResponsesCompactionSession."
            raise ValueError(msg)  # noqa: TRY004 -- the SDK's
        self.session_id = session_id
        self.underlying_session = underlying_session
        self.model = model
        self.compaction_mode = compaction_mode
        self._client = client
        self._is_time = should_trigger_compaction or default_should_trigger_compaction
        self._response_id: str | None = None

    @property
    def session_settings(self) -> SessionSettings | None:  # type: ignore[override]  # the other session's
        settings: SessionSettings | None = getattr(self.underlying_session, "session_settings", None)
        return settings

    @property
    def client(self) -> Any:
        """OpenAI's client."""
        if self._client is None:
            from ..models.settings import client_for  # noqa: PLC0415 -- it brings OpenAI's client

            self._client = client_for(None)
        return self._client

    async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
        """Make it shorter, if it is time or `force` says so."""
        given = dict(args or {})
        self._response_id = given.get("response_id") or self._response_id  # type: ignore[assignment]  # a text
        items = await self.underlying_session.get_items()
        mode = given.get("compaction_mode") or self.compaction_mode
        if mode == "auto":
            mode = "input" if given.get("store") is False or self._response_id is None else "previous_response_id"
        if mode == "previous_response_id" and self._response_id is None:
            msg = "OpenAIResponsesCompactionSession.run_compaction requires a response_id when using previous_response_id compaction."
            raise ValueError(msg)
        context = {
            "response_id": self._response_id,
            "compaction_mode": mode,
            "compaction_candidate_items": select_compaction_candidate_items(items),
            "session_items": items,
        }
        if not given.get("force") and not self._is_time(context):
            return
        named: dict[str, Any] = {"previous_response_id": self._response_id} if mode == "previous_response_id" else {"input": items}
        compacted = await self.client.responses.compact(model=self.model, **named)
        output = [item if isinstance(item, dict) else item.model_dump(exclude_unset=True, warnings=False) for item in compacted.output or ()]
        await self._replace(items, output)

    async def _replace(self, before: list[Any], after: list[Any]) -> None:
        await self.underlying_session.clear_session()
        try:
            if after:
                await self.underlying_session.add_items(after)
        except BaseException:
            await self.underlying_session.clear_session()
            await self.underlying_session.add_items(before)
            raise

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items: list[Any] = await self.underlying_session.get_items(limit)
        return items

    async def add_items(self, items: list[Any]) -> None:
        await self.underlying_session.add_items(items)

    async def pop_item(self) -> Any | None:
        return await self.underlying_session.pop_item()

    async def clear_session(self) -> None:
        await self.underlying_session.clear_session()
        self._response_id = None
