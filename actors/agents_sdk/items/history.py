"""Items as a model's input.

Owns: what of a run's items a model is given: each call with its result, nothing twice. It must never change an item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ..invocation import as_dict
from .kinds import dumped

__all__ = [
    "as_input",
    "caller_program",
    "complete",
    "deduplicated",
    "fingerprint",
    "model_input",
    "run_item_to_input",
    "run_items_to_input",
    "without_reasoning_ids",
]

_DESCRIPTION: Final = "_agents_tool_description"
_TITLE: Final = "_agents_tool_title"
_OUTPUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "function_call": "function_call_output",
        "custom_tool_call": "custom_tool_call_output",
        "shell_call": "shell_call_output",
        "apply_patch_call": "apply_patch_call_output",
        "computer_call": "computer_call_output",
        "local_shell_call": "local_shell_call_output",
        "tool_search_call": "tool_search_output",
        "program": "program_output",
    }
)
_PAIRED: Final = frozenset((*_OUTPUT, *_OUTPUT.values()))
_FIRST: Final = frozenset(("reasoning", *_OUTPUT))
_PLACEHOLDER_ID: Final = "__fake_id__"


def run_item_to_input(item: Any, *, without_ids: bool = False) -> Any:
    """An item of a run as input; None for one that waits for an approval. What filters put in may be input already."""
    if isinstance(item, dict):
        return item
    if item.type == "tool_approval_item":
        return None
    found = item.to_input_item()
    if isinstance(found, dict) and "status" in found and found["status"] is None:
        found = {key: value for key, value in found.items() if key != "status"}
    if without_ids and item.type == "reasoning_item" and isinstance(found, dict):
        return {key: value for key, value in found.items() if key != "id"}
    return found


def run_items_to_input(items: Iterable[Any], *, without_ids: bool = False) -> list[Any]:
    """Items of a run as input."""
    return [found for item in items if (found := run_item_to_input(item, without_ids=without_ids)) is not None]


def as_input(item: Any) -> Any:
    """One item of input as a dict of its own, without what only sessions keep."""
    if type(item) is dict:
        if _DESCRIPTION not in item and _TITLE not in item:
            return item
        return {key: value for key, value in item.items() if key not in (_DESCRIPTION, _TITLE)}
    if isinstance(item, Mapping) or hasattr(item, "model_dump"):
        return as_input(dict(item) if isinstance(item, Mapping) else dumped(item))
    return item


def model_input(asked: Iterable[Any], generated: Sequence[Any]) -> list[Any]:
    """What a model is given: what the run was asked, as it is, and what came of it, complete."""
    return [*map(as_input, asked), *complete([as_input(item) for item in generated])] if generated else [as_input(item) for item in asked]


def without_reasoning_ids(items: Iterable[Any]) -> list[Any]:
    """The items; those that say what a model has thought, without their ids."""
    return [
        {key: value for key, value in item.items() if key != "id"} if isinstance(item, dict) and item.get("type") == "reasoning" and "id" in item else item
        for item in items
    ]


def complete(items: list[Any], *, only: set[int] | None = None, outputs_of: set[int] | None = None) -> list[Any]:
    """The items without calls that have no result, and without the thoughts that led to them.

    `only` are the places that are looked at, if it is not all; `outputs_of` those of which results without a call are left out, too.
    """
    if outputs_of is None and _is_whole(items):
        return items
    ended: dict[str, set[str]] = {}
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("call_id"), str):
            ended.setdefault(str(item.get("type")), set()).add(item["call_id"])
    searches = _matched_searches(items)
    orphans, active = _programs(items, only, ended)
    dropped: set[int] = set()
    for index, item in enumerate(items):
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(kind, str) or (only is not None and index not in only):
            continue
        program = caller_program(item)
        if program in orphans and program is not None:
            dropped.add(index)
            continue
        output = _OUTPUT.get(kind)
        if output is None or (program is not None and _is_hosted_shell(item)) or (kind == "program" and item.get("call_id") in active):
            continue
        call_id = item.get("call_id")
        if isinstance(call_id, str) and call_id in ended.get(output, ()):
            continue
        if not (kind == "tool_search_call" and not isinstance(call_id, str) and index in searches):
            dropped.add(index)
    calls = set(dropped)
    if outputs_of is not None:
        dropped |= _lost_outputs(items, dropped, outputs_of)
    if not dropped:
        return items
    dropped |= _thoughts_before(items, dropped, calls)
    return [item for index, item in enumerate(items) if index not in dropped]


def _is_whole(items: list[Any]) -> bool:
    """Whether each call has its result, as far as can be said at a glance: nearly all histories have calls of functions alone."""
    calls: list[str] = []
    ended: set[str] = set()
    for item in items:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind in ("function_call", "function_call_output"):
            call_id = item.get("call_id")
            if not isinstance(call_id, str):
                return False
            calls.append(call_id) if kind == "function_call" else ended.add(call_id)
        elif kind in _PAIRED:
            return False
    return ended.issuperset(calls)


def _lost_outputs(items: list[Any], dropped: set[int], places: set[int]) -> set[int]:
    there: dict[str, set[Any]] = {}
    for index, item in enumerate(items):
        output = _OUTPUT.get(str(item.get("type"))) if isinstance(item, dict) and index not in dropped else None
        if output is not None:
            there.setdefault(output, set()).add(item.get("call_id"))
    lost = set()
    for index in places - dropped:
        item = items[index] if index < len(items) else None
        if isinstance(item, dict) and item.get("type") in _OUTPUT.values() and isinstance(item.get("call_id"), str):
            if item["call_id"] not in there.get(item["type"], ()):
                lost.add(index)
    return lost


def _thoughts_before(items: list[Any], dropped: set[int], calls: set[int]) -> set[int]:
    found: set[int] = set()
    follows = False
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, dict) and item.get("type") == "reasoning" and index not in dropped:
            if follows:
                found.add(index)
            continue
        follows = index in calls
    return found


def _matched_searches(items: list[Any]) -> set[int]:
    """Searches without an id that a result follows."""
    found, waiting = set(), []
    for index, item in enumerate(items):
        if isinstance(item, dict) and not isinstance(item.get("call_id"), str):
            if item.get("type") == "tool_search_call":
                waiting.append(index)
            elif item.get("type") == "tool_search_output" and waiting:
                found.add(waiting.pop(0))
    return found


def caller_program(item: Any) -> str | None:
    """The id of the program that has made a call."""
    caller = item.get("caller") if isinstance(item, dict) else None
    caller = as_dict(caller) if caller is not None else None
    found = caller.get("caller_id") if caller is not None and caller.get("type") == "program" else None
    return found if isinstance(found, str) else None


def _is_hosted_shell(item: dict[str, Any]) -> bool:
    environment = item.get("environment")
    return item.get("type") == "shell_call" and isinstance(environment, dict) and environment.get("type") != "local"


def _programs(items: list[Any], only: set[int] | None, ended: Mapping[str, set[str]]) -> tuple[set[str], set[str]]:
    """Programs without a result: those of which nothing is left, and those that wait for results of calls."""
    orphans: set[str] = set()
    active: set[str] = set()
    for index, item in enumerate(items):
        call_id = item.get("call_id") if isinstance(item, dict) and item.get("type") == "program" else None
        if not isinstance(call_id, str) or (only is not None and index not in only) or call_id in ended.get("program_output", ()):
            continue
        own = [other for other in items if caller_program(other) == call_id]
        kept = any(other.get("type") in _OUTPUT.values() or other.get("type") not in _OUTPUT or _is_hosted_shell(other) for other in own)
        (active if kept else orphans).add(call_id)
    return orphans, active


def _key(item: Any) -> str | None:
    if not isinstance(item, dict) or item.get("role") is not None or item.get("type") == "message":
        return None
    kind, call_id, own = item.get("type"), item.get("call_id"), item.get("id")
    if isinstance(call_id, str) and kind in _PAIRED:
        return f"call:{kind}:{call_id}"
    if isinstance(own, str) and own != _PLACEHOLDER_ID:
        return f"id:{kind}:{own}"
    if isinstance(call_id, str):
        return f"call:{kind}:{call_id}"
    request = item.get("approval_request_id")
    return f"request:{kind}:{request}" if isinstance(request, str) else None


def deduplicated(items: Sequence[Any]) -> list[Any]:
    """The items, each once: the latest, where it was last; what others follow from, where it was first."""
    if len(items) < 2:  # noqa: PLR2004 -- of one there is no other
        return list(items)
    keys = [_key(item) for item in items]
    seen = [key for key in keys if key is not None]
    if len(seen) == len(set(seen)):
        return list(items)
    latest: dict[str, Any] = {}
    place: dict[str, int] = {}
    for index, (key, item) in enumerate(zip(keys, items, strict=True)):
        if key is not None:
            latest[key] = item
            if key not in place or item.get("type") not in _FIRST:
                place[key] = index
    return [item if key is None else latest[key] for index, (key, item) in enumerate(zip(keys, items, strict=True)) if key is None or place[key] == index]


def fingerprint(item: Any, *, without_id: bool = False) -> str:
    """What tells one item of input from another."""
    said = as_input(item)
    if isinstance(said, dict) and without_id:
        said = {key: value for key, value in said.items() if key != "id"}
    return json.dumps(said, sort_keys=True, default=str)
