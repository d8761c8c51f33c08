"""Completion of messages of versions 0.2.5 and 0.3, which may lack ids, kinds or lists.

Missing fields are added in JSON, before the SDK parses it. Existing ones are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

__all__ = ["FORMER_METHODS", "complete_event", "complete_message"]

FORMER_METHODS: Final = frozenset(("message/send", "message/stream"))
_ENDED: Final = frozenset(
    ("completed", "canceled", "failed", "rejected", "input-required", "auth-required")
)
_PARTS: Final = ("text", "file", "data")


def complete_message(said: Any) -> Any:
    """Return a message with an id, and a kind for each of its parts."""
    if not isinstance(said, Mapping):
        return said
    found = {name: value for name, value in said.items() if value is not None}
    if found.get("messageId", "") == "":
        found["messageId"] = str(uuid4())
    for name in ("taskId", "contextId"):
        if found.get(name) == "":
            del found[name]
    return {"kind": "message", **found, "parts": _parts(found.get("parts"))}


def _parts(said: Any) -> Any:
    return (
        [_part(part) for part in said] if isinstance(said, list) else [] if said is None else said
    )


def _part(said: Any) -> Any:
    if not isinstance(said, Mapping):
        return said
    found = {name: value for name, value in said.items() if value is not None}
    kind = next((name for name in _PARTS if name in found), None)
    return found if kind is None else {"kind": kind, **found}


def complete_event(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task, a message or an update of a server, with the kind that its fields imply."""
    found = {name: value for name, value in said.items() if value is not None}
    kind = found.get("kind")
    if not kind:
        is_update = "id" not in found
        kind = (
            "artifact-update"
            if "artifact" in found
            else "status-update"
            if "status" in found and is_update
            else "task"
            if "status" in found
            else "message"
        )
    if kind == "message":
        return dict(complete_message(found))
    found = {"contextId": "", **found, "kind": kind}
    if isinstance(found.get("status"), Mapping):
        found["status"] = _status(found["status"])
    if kind == "status-update":
        return {"final": found.get("status", {}).get("state") in _ENDED, **found}
    if isinstance(found.get("artifact"), Mapping):
        found["artifact"] = _artifact(found["artifact"])
    for name, complete in (("artifacts", _artifact), ("history", complete_message)):
        if isinstance(found.get(name), list):
            found[name] = [complete(one) for one in found[name]]
    return found


def _status(said: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in said.items() if value not in (None, "")}
    if "message" in found:
        found["message"] = complete_message(found["message"])
    return found


def _artifact(said: Any) -> Any:
    if not isinstance(said, Mapping):
        return said
    found = {name: value for name, value in said.items() if value not in (None, "")}
    return {
        "artifactId": found.get("name", "artifact"),
        **found,
        "parts": _parts(found.get("parts")),
    }
