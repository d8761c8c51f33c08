"""Assembly of streamed tool calls.

This module assigns deltas to calls, and makes ids unique. Providers differ in what they omit: the
index, the id, or the uniqueness of either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from ..data.chat import ToolCall, ToolCallDelta, new_id
from ..data.whole_reply import is_cut_off

__all__ = ["ToolCallMerger", "arguments_text", "no_arguments", "with_unique_ids"]


_STRUCTURE: Final = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)


class _Open:
    """A call that is being assembled.

    `given` is the id as the provider wrote it, `id` the unique one used here.
    """

    __slots__ = (
        "_depth",
        "_has_begun",
        "_in_string",
        "_is_escaped",
        "_looked_at",
        "given",
        "id",
        "index",
        "name",
        "pieces",
    )

    def __init__(self, index: int, given: str, unique: str) -> None:
        self.index = index
        self.given = given
        self.id = unique
        self.name = ""
        # Of its arguments: concatenating strings would copy the text for each delta.
        self.pieces: list[str] = []
        self._looked_at = self._depth = 0
        self._has_begun = self._in_string = self._is_escaped = False

    def is_whole(self) -> bool:
        """Return whether the arguments are a whole JSON object. Scans each delta once."""
        while self._looked_at < len(self.pieces):
            piece = self.pieces[self._looked_at]
            self._looked_at += 1
            tokens = _STRUCTURE.findall(piece[1:] if self._is_escaped else piece)
            self._is_escaped = bool(tokens) and tokens[-1] == "\\"
            self._has_begun = self._has_begun or bool(tokens)
            for mark in tokens:
                if mark == '"':
                    self._in_string = not self._in_string
                elif mark[0] != "\\" and not self._in_string:
                    self._depth += 1 if mark in "{[" else -1
        return self._has_begun and self._depth == 0 and not self._in_string


class ToolCallMerger:
    """Collects deltas in order of arrival, with the provider's index (None if it sends none)."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = taken  # converted to a set at the first call; most replies have none
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._by_given: dict[str, _Open] = {}

    def add(self, index: int | None, call_id: str, name: str, arguments: str) -> ToolCallDelta:
        """Add a delta, and return the one to show.

        It has the position of its call, and id and name only when they are new.
        """
        call = self._find(index, call_id, name, arguments)
        is_new = call is None
        if call is None:
            if not isinstance(self._taken, set):
                self._taken = set(self._taken)
            call = _Open(len(self._calls), call_id, _unique(call_id, self._taken))
            self._calls.append(call)
            self._by_given.setdefault(call_id, call)
        if index is not None:
            self._by_index[index] = call
        more = ""
        if name and name != call.name and not call.pieces:
            more = name
            call.name += name
        if arguments:
            call.pieces.append(arguments)
        return ToolCallDelta(call.index, call.id if is_new else "", more, arguments)

    def calls(self, finish_reason: str | None = None) -> tuple[ToolCall, ...]:
        none = no_arguments(finish_reason)
        return tuple(
            ToolCall(call.id, call.name, "".join(call.pieces) or none) for call in self._calls
        )

    def _find(self, index: int | None, call_id: str, name: str, arguments: str) -> _Open | None:
        """Return the call that the delta continues, or None if it starts one."""
        if index is not None:
            call = self._by_index.get(index)
            # The same index with another id and a name: a provider that gives all its calls the
            # index 0.
            return (
                None
                if call is not None and name and call_id and call.given and call_id != call.given
                else call
            )
        call = self._calls[-1] if self._calls else None
        if call is None:
            return None
        if call_id and call_id != call.given:
            return self._by_given.get(call_id)
        if not name:
            return call
        # The same name again: some providers repeat it in each delta, others start the next call
        # with it.
        return (
            call
            if name == call.name and not call.is_whole()
            else None
            if call.name and (arguments or call.pieces)
            else call
        )


def no_arguments(finish_reason: str | None) -> str:
    """Return the arguments of a call that came without any.

    In a reply that was cut off, they may be missing.
    """
    return "" if is_cut_off(finish_reason) else "{}"


def with_unique_ids(
    calls: Iterable[tuple[str, str, str]], taken: Iterable[str], finish_reason: str | None
) -> tuple[ToolCall, ...]:
    """Convert triples of id, name and arguments to calls.

    A call whose id is missing or taken gets a new one.
    """
    calls = list(calls)
    if not calls:
        return ()
    known, none = set(taken), no_arguments(finish_reason)
    return tuple(
        ToolCall(_unique(call_id, known), name, arguments or none)
        for call_id, name, arguments in calls
    )


def arguments_text(value: object) -> str:
    """Return the arguments as text: some providers send them as an object."""
    if value is None:
        return ""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    )


def _unique(call_id: str, taken: set[str]) -> str:
    if not call_id or call_id in taken:
        call_id = f"call_{new_id()}"
    taken.add(call_id)
    return call_id
