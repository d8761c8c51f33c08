"""Tool calls that come in pieces, put together.

Owns: which piece belongs to which call, and that no two calls have one id. Providers differ in what they leave out: the index, the id, or that either is
unique.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..data.chat import ToolCall, ToolCallDelta, new_id

__all__ = ["ToolCallMerger", "arguments_text", "with_unique_ids"]


class _Open:
    """A call that is being put together. `given` is the id as the provider wrote it, `id` the one that it has here."""

    __slots__ = ("arguments", "given", "id", "index", "name")

    def __init__(self, index: int, given: str, unique: str) -> None:
        self.index = index
        self.given = given
        self.id = unique
        self.name = ""
        self.arguments = ""


class ToolCallMerger:
    """Takes the pieces in the order in which they come, with the index that the provider gives (None if it gives none)."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = taken  # a set of them as soon as there is a call, which most replies have not
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}

    def add(self, index: int | None, call_id: str, name: str, arguments: str) -> ToolCallDelta:
        """The piece as it is shown: with the place of its call among all, and with the id and name only where they are news."""
        call = self._find(index, call_id, name, arguments)
        is_new = call is None
        if call is None:
            if not isinstance(self._taken, set):
                self._taken = set(self._taken)
            call = _Open(len(self._calls), call_id, _unique(call_id, self._taken))
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        more = ""
        if name and name != call.name and not call.arguments:
            more = name
            call.name += name
        call.arguments += arguments
        return ToolCallDelta(call.index, call.id if is_new else "", more, arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(call.id, call.name, call.arguments or "{}") for call in self._calls)

    def _find(self, index: int | None, call_id: str, name: str, arguments: str) -> _Open | None:
        """The call that the piece continues, or None if it begins one."""
        if index is not None:
            call = self._by_index.get(index)
            # The same index with another id and a name: a provider that gives all its calls the index 0.
            return None if call is not None and name and call_id and call.given and call_id != call.given else call
        call = self._calls[-1] if self._calls else None
        if call is None:
            return None
        if call_id and call_id != call.given:
            return next((other for other in self._calls if other.given == call_id), None)
        if not name:
            return call
        # The name once more: some providers repeat it in each piece, others have begun the next call with it.
        return call if name == call.name and not _is_whole(call.arguments) else None if call.name and (arguments or call.arguments) else call


def with_unique_ids(calls: Iterable[tuple[str, str, str]], taken: Iterable[str] = ()) -> tuple[ToolCall, ...]:
    """Whole calls of id, name and arguments, with a new id for each whose own is missing or taken."""
    calls = list(calls)
    if not calls:
        return ()
    known = set(taken)
    return tuple(ToolCall(_unique(call_id, known), name, arguments or "{}") for call_id, name, arguments in calls)


def arguments_text(value: object) -> str:
    """The arguments as text: some providers send them as an object."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _unique(call_id: str, taken: set[str]) -> str:
    if not call_id or call_id in taken:
        call_id = f"call_{new_id()}"
    taken.add(call_id)
    return call_id


def _is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
