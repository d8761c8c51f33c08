"""Which items a folded history holds as they are.

A folded history may hold some of the run's own items, which are recorded as well: code that puts history and record together must not say them twice.

Owns: the marks of such items, and finding them again after the history was changed. It must never look at what an item says but by its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..invocation import as_dict
from .transcript import without_session_keys

__all__ = ["Owned", "digest", "still_owned"]


@dataclass(frozen=True)
class Owned:
    """One item of a run that is in a history, at that index."""

    item: Any
    """The item of the run."""
    index: int
    digest: str


def digest(item: Any) -> str | None:
    """What tells one input item from another; an assistant's text alone is the same as its message."""
    said = without_session_keys(as_dict(item))
    if said is None:
        return None
    if said.get("role") == "assistant":
        if isinstance(said.get("content"), str):
            said["content"] = [{"type": "output_text", "text": said["content"]}]
        if said.get("status") in (None, "completed"):
            said.pop("status", None)
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def still_owned(history: str | Sequence[Any], owned: Sequence[Owned]) -> list[Owned]:
    """Those that are in the history still: at their index, or else where there is one that says the same. What is there twice must be known by its index."""
    if isinstance(history, str) or not owned:
        return []
    digests = [digest(item) for item in history]
    found: list[Owned] = []
    used: set[int] = set()
    for one in owned:
        places = [index for index, said in enumerate(digests) if said == one.digest and index not in used]
        wanted = sum(other.digest == one.digest for other in owned) - sum(other.digest == one.digest for other in found)
        index = one.index if one.index in places else places[0] if places and len(places) <= wanted else None
        if index is not None:
            used.add(index)
            found.append(Owned(one.item, index, one.digest))
    return found
