"""Whatever an agent gives, as what JSON can hold.

Owns: `as_json`. Numbers that arrive as others become text. It must never raise: what it does not know becomes its text.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

__all__ = ["as_json"]

_EXACT: Final = 2**53
_DEEPEST: Final = 24
"""What is deeper becomes text: each level is up to three of protobuf, and what reads that gives up at 100."""


def as_json(value: Any, depth: int = 0) -> Any:
    """The same as a text, a number, a list or a dict."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Enum):
        return as_json(value.value, depth)
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEEPEST:
        return str(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return as_json(dump(mode="json"), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_json(getattr(value, one.name), depth + 1) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(one, depth + 1) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        return [as_json(one, depth + 1) for one in value]
    return str(value)
