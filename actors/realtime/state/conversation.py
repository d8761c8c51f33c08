"""The items of a session's conversation, in order.

When an item is updated, known text that the update lacks is preserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..items import (
    AssistantAudio,
    AssistantMessageItem,
    AssistantText,
    InputAudio,
    RealtimeItem,
    RealtimeToolCallItem,
    UserMessageItem,
    text_of_item,
)

__all__ = ["Conversation", "heard_part"]

_MOST: Final = 1_000


class Conversation:
    """The items of one session."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._items: dict[str, RealtimeItem] = {}
        self._growing: dict[str, list[str]] = {}  # deltas of growing texts
        self._cut: dict[str, str] = {}  # heard text of interrupted items

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    def snapshot(self) -> tuple[RealtimeItem, ...]:
        """Return all items in their current state."""
        for item_id in tuple(self._growing):
            self.settle(item_id)
        return tuple(self._items[one] for one in self._order)

    def get(self, item_id: str) -> RealtimeItem | None:
        if item_id in self._growing:
            self.settle(item_id)
        return self._items.get(item_id)

    def find_call(self, call_id: str) -> RealtimeToolCallItem | None:
        """Return the item of a call; the newest if a server has used the id twice."""
        for item_id in reversed(self._order):
            item = self._items[item_id]
            if isinstance(item, RealtimeToolCallItem) and item.call_id == call_id:
                return item
        return None

    def put(self, item: RealtimeItem) -> bool:
        """Add an item after its predecessor, or update it.

        Returns whether it is new.
        """
        known = self.get(item.item_id)
        if known is None:
            self._insert(item)
            return True
        self._items[item.item_id] = _merged(known, item, self._cut.get(item.item_id))
        return False

    def _insert(self, item: RealtimeItem) -> None:
        self._items[item.item_id] = item
        previous = item.previous_item_id
        index = len(self._order)
        if previous is not None and previous in self._items:
            while index and self._order[index - 1] != previous:
                index -= 1
        self._order.insert(index if index or previous is None else len(self._order), item.item_id)
        if len(self._order) > _MOST:
            gone = self._order.pop(0)
            for kept in (self._items, self._growing, self._cut):
                kept.pop(gone, None)

    def replace(self, item: RealtimeItem) -> None:
        """Replace an item."""
        self._growing.pop(item.item_id, None)
        self._items[item.item_id] = item

    def remove(self, item_id: str) -> bool:
        """Remove an item."""
        if self._items.pop(item_id, None) is None:
            return False
        self._order.remove(item_id)
        self._growing.pop(item_id, None)
        self._cut.pop(item_id, None)
        return True

    def grow(self, item_id: str, delta: str, kind: type[AssistantAudio | AssistantText]) -> bool:
        """Add a delta of the model's output. Return whether the item is new."""
        if item_id in self._cut:
            return False
        is_new = item_id not in self._items
        if is_new:
            self._insert(
                AssistantMessageItem(item_id=item_id, status="in_progress", content=[kind()])
            )
        if item_id not in self._growing:
            item = self._items[item_id]
            said = text_of_item(item) if isinstance(item, AssistantMessageItem) else ""
            if isinstance(item, AssistantMessageItem) and not item.content:
                self._items[item_id] = item.model_copy(update={"content": [kind()]})
            self._growing[item_id] = [said] if said else []
        self._growing[item_id].append(delta)
        return is_new

    def settle(self, item_id: str) -> None:
        """Join the deltas of a text."""
        pieces = self._growing.pop(item_id, None)
        item = self._items.get(item_id)
        if pieces and isinstance(item, AssistantMessageItem):
            text = "".join(pieces)
            self._items[item_id] = _with_text(item, text)

    def text(self, item_id: str) -> str:
        """Return the text of an item, as far as it is known."""
        item = self.get(item_id)
        return "" if item is None or isinstance(item, RealtimeToolCallItem) else text_of_item(item)

    def cut(self, item_id: str, share: float, end_ms: int) -> None:
        """Truncate an item to the share that the user has heard."""
        item = self.get(item_id)
        if not isinstance(item, AssistantMessageItem):
            return
        heard = heard_part(text_of_item(item), share)
        self._cut[item_id] = heard
        extra: dict[str, Any] = {"status": "incomplete", "audio_end_ms": end_ms}
        self._items[item_id] = _with_text(item, heard).model_copy(update=extra)

    def correct(self, item_id: str, text: str) -> None:
        """Set the text of a truncated item that the server reports."""
        item = self.get(item_id)
        if isinstance(item, AssistantMessageItem):
            self._cut[item_id] = text
            self._items[item_id] = _with_text(item, text)

    def is_cut(self, item_id: str) -> bool:
        return item_id in self._cut

    def transcribe(self, item_id: str, text: str | None) -> bool:
        """Set the transcript of the user's speech; None if it failed.

        Return whether the item is new.
        """
        item = self._items.get(item_id)
        if item is None:
            self._insert(UserMessageItem(item_id=item_id, content=[InputAudio(transcript=text)]))
            return True
        if isinstance(item, UserMessageItem):
            content = [
                part.model_copy(update={"transcript": text})
                if isinstance(part, InputAudio)
                else part
                for part in item.content
            ]
            self._items[item_id] = item.model_copy(
                update={"content": content or [InputAudio(transcript=text)]}
            )
        return False

    def mark(self, item_id: str, **extra: Any) -> None:
        """Set attributes of an item."""
        item = self.get(item_id)
        if item is not None:
            self._items[item_id] = item.model_copy(update=extra)

    def fill(
        self, items: Iterable[RealtimeItem], seen: Callable[[RealtimeItem], object] | None = None
    ) -> None:
        """Add these items."""
        for item in items:
            self.put(item)
            if seen is not None:
                seen(item)


def heard_part(text: str, share: float) -> str:
    """Return that share of a text, shortened to the end of a word."""
    if share >= 1:
        return text
    end = int(len(text) * max(0.0, share))
    if end < len(text) and not text[end].isspace():
        end = text.rfind(" ", 0, end) if " " in text[:end] else 0
    return text[:end].rstrip()


def _with_text(item: AssistantMessageItem, text: str) -> AssistantMessageItem:
    first = item.content[0] if item.content else AssistantAudio()
    key = "text" if isinstance(first, AssistantText) else "transcript"
    return item.model_copy(
        update={"content": [first.model_copy(update={key: text}), *item.content[1:]]}
    )


def _merged(known: RealtimeItem, told: RealtimeItem, cut: str | None) -> RealtimeItem:
    """Merge an updated item. Known values that the update lacks are preserved."""
    update: dict[str, Any] = {}
    if told.previous_item_id is None and known.previous_item_id is not None:
        update["previous_item_id"] = known.previous_item_id
    update.update(
        {
            name: value
            for name, value in (known.model_extra or {}).items()
            if name not in (told.model_extra or {})
        }
    )
    if isinstance(known, RealtimeToolCallItem):
        if isinstance(told, RealtimeToolCallItem):
            update.update(
                output=known.output,
                status=known.status,
                arguments=told.arguments or known.arguments,
                name=told.name or known.name,
            )
        return told.model_copy(update=update)
    if isinstance(told, RealtimeToolCallItem):
        return told
    content: list[Any] = list(told.content)
    for index, part in enumerate(known.content):
        key = "transcript" if isinstance(part, InputAudio | AssistantAudio) else "text"
        text = getattr(part, key, None)
        if index >= len(content):
            content.append(part)
        elif text and not getattr(content[index], key, None):
            content[index] = content[index].model_copy(update={key: text})
    update["content"] = content
    merged = told.model_copy(update=update)
    if cut is not None and isinstance(merged, AssistantMessageItem):
        return _with_text(merged, cut).model_copy(update={"status": "incomplete"})
    return merged
