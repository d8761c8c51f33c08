"""A conversation as lines of a summary, and back.

Owns: the form of a line, and the reading of one, also of forms that the SDK has written earlier. It must never lose what a line says.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["SESSION_KEYS", "as_line", "from_body", "without_session_keys"]

SESSION_KEYS: Final = ("_agents_tool_description", "_agents_tool_title")
"""What sessions keep with a call, and no model is given."""

_ROLES: Final = frozenset(("user", "assistant", "system", "developer"))
_NUMBER: Final = re.compile(r"\s*(\d+)\.\s*")
_NAMED: Final = re.compile(r"(.*)\((.+)\)$", re.DOTALL)


def without_session_keys(item: Any) -> Any:
    """The item, as a dict of its own, without what only sessions keep."""
    return {key: value for key, value in item.items() if key not in SESSION_KEYS} if isinstance(item, dict) else item


def as_line(item: Any) -> str:
    """One item as a line: what has a role and a short text, as `role: text`, and all else as JSON."""
    item = without_session_keys(item)
    role, content = item.get("role"), item.get("content")
    if isinstance(role, str) and (content is None or (isinstance(content, str) and "\n" not in content and "\r" not in content)):
        name = item.get("name")
        return f"{f'{role} ({name})' if isinstance(name, str) and name else role}: {content or ''}"
    return json.dumps({key: value for key, value in item.items() if key != "provider_data"}, ensure_ascii=False, default=str)


def from_body(body: str) -> list[Any]:
    """The items of the lines of a summary."""
    found = (_item(record) for record in _records(body))
    return [item for item in found if item is not None]


def _records(body: str) -> list[str]:
    """The lines, those that go on an earlier one with it."""
    records: list[str] = []
    numbered = False
    for line in body.splitlines():
        if not line.strip():
            continue
        begins = _NUMBER.match(line) is not None
        if begins or not numbered or not records:
            records.append(line.strip())
            numbered = begins
        else:
            records[-1] += f"\n{line.rstrip()}"
    return records


def _item(record: str) -> Any:
    text = _NUMBER.sub("", record, count=1) if _NUMBER.match(record) else record
    parsed = _object(text)
    if parsed is not None:
        return parsed
    said, colon, rest = text.partition(":")
    if not colon:
        role, name = _role_and_name(text.strip())
        return _message(role, name, "") if role in _ROLES else None
    if not said.strip():
        return None
    role, name = _role_and_name(said.strip())
    parsed = None if role in _ROLES else _object(rest.strip())
    return {**parsed, "type": role} if parsed is not None else _message(role, name, rest.strip())


def _object(text: str) -> Any:
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    return without_session_keys({key: value for key, value in parsed.items() if key != "provider_data"}) if isinstance(parsed, dict) else None


def _role_and_name(text: str) -> tuple[str, str | None]:
    named = _NAMED.fullmatch(text)
    if named is not None and named[2].strip():
        return named[1].strip() or "developer", named[2].strip()
    return text or "developer", None


def _message(role: str, name: str | None, content: str) -> dict[str, Any]:
    return {"role": role, **({"name": name} if name else {}), "content": content}
