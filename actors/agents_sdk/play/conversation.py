"""What the provider keeps of a conversation, so that it is not sent again.

Owns: which items were sent or came from there. It must never leave out an item that the provider does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..items.helpers import ItemHelpers
from ..items.history import as_input, complete, fingerprint, run_item_to_input
from ..tool_names import part

__all__ = ["Conversation"]


class Conversation:
    """A conversation that the provider keeps: by its own id, or by that of the last response."""

    def __init__(self, conversation_id: str | None, previous_response_id: str | None, *, auto: bool, without_ids: bool) -> None:
        self.conversation_id = conversation_id
        self.previous_response_id = previous_response_id
        self.auto = auto
        self._without_ids = without_ids
        self._begun = False
        self._unsent: list[Any] = []
        """What of the input has not been sent, or has to be sent again."""
        self._there: list[Any] = []
        """Raw items that the provider has. They are held, so that their ids stay theirs."""
        self._ids: set[int] = set()
        self._item_ids: set[str] = set()
        self._outputs: set[str] = set()
        """Ids of calls whose results the provider has."""
        self._texts: set[str] = set()
        self._sources: dict[int, tuple[Any, Any]] = {}

    def _note(self, raw: Any) -> None:
        if id(raw) not in self._ids:
            self._ids.add(id(raw))
            self._there.append(raw)

    def resume(self, asked: Any, generated: Sequence[Any], responses: Sequence[Any], unsent: set[str]) -> None:
        """All that was said before the run goes on is there, but for the results of these calls."""
        self._begun = True
        for item in ItemHelpers.input_to_new_input_list(asked):
            self._texts.add(fingerprint(item))
        for response in responses:
            self.received(response)
        for item in generated:
            raw = item.raw_item
            call_id, has_output = part(raw, "call_id"), _has_output(raw)
            if isinstance(call_id, str) and has_output and call_id in unsent:
                continue
            if part(raw, "id") is not None or isinstance(call_id, str) or item.type == "input_item":
                self._note(raw)
                if isinstance(call_id, str) and has_output:
                    self._outputs.add(call_id)

    def received(self, response: Any) -> None:
        """A response has come."""
        for raw in response.output:
            self._note(raw)
            item_id, call_id = part(raw, "id"), part(raw, "call_id")
            if isinstance(item_id, str) and item_id and item_id != "__fake_id__":
                self._item_ids.add(item_id)
            if isinstance(call_id, str) and _has_output(raw):
                self._outputs.add(call_id)
        if self.conversation_id is None and (self.previous_response_id is not None or self.auto) and response.response_id is not None:
            self.previous_response_id = response.response_id

    def prepare(self, asked: Any, generated: Sequence[Any]) -> list[Any]:
        """What is to be sent now."""
        self._sources = {}
        if not self._begun:
            self._begun = True
            self._unsent = [item for item in ItemHelpers.input_to_new_input_list(asked) if item is not None]
        first = []
        for item in self._unsent:
            said = as_input(item)
            self._sources[id(said)] = (said, item)
            first.append(said)
        later = []
        for item in generated:
            raw = getattr(item, "raw_item", item)
            if getattr(item, "type", None) == "tool_approval_item" or raw is None or id(raw) in self._ids:
                continue
            item_id, call_id = part(raw, "id"), part(raw, "call_id")
            if (isinstance(item_id, str) and item_id in self._item_ids) or (isinstance(call_id, str) and _has_output(raw) and call_id in self._outputs):
                continue
            said = as_input(run_item_to_input(item, without_ids=self._without_ids))
            self._sources[id(said)] = (said, raw)
            later.append(said)
        return [*first, *(later if not later else _with_calls(later))]

    def sent(self, items: Sequence[Any]) -> None:
        """These have been sent."""
        said = {fingerprint(item) for item in items}
        for item in items:
            self._note(self._sources.get(id(item), (None, item))[1])
        self._unsent = [item for item in self._unsent if id(item) not in self._ids and fingerprint(item) not in said]

    def take_back(self, items: Sequence[Any]) -> None:
        """They have to be sent again."""
        again = [self._sources.get(id(item), (None, item))[1] for item in items]
        gone = {id(item) for item in again}
        self._ids -= gone
        self._there = [item for item in self._there if id(item) not in gone]
        self._unsent = [*again, *(item for item in self._unsent if id(item) not in gone)]


def _has_output(raw: Any) -> bool:
    return part(raw, "output") is not None or str(part(raw, "type") or "").endswith("_output")


def _with_calls(items: list[Any]) -> list[Any]:
    """Without calls that have no result here; but results whose calls the provider has stay."""
    return complete(items)
