"""Conversion of an agent's values to JSON.

Numbers that JSON cannot represent exactly become strings, and so do unknown values. The conversion
never raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from ...data.value import table_of

__all__ = ["as_json"]

_EXACT: Final = 2**53
_DEEPEST: Final = 24
"""Deeper values become strings.

Each level is up to three of protobuf, and protobuf's parsers fail at 100.
"""


def as_json(value: Any, depth: int = 0) -> Any:
    """Return the value as a string, a number, a list or a dict."""
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
    if (table := table_of(value)) is not None:
        return {name: as_json(item, depth + 1) for name, item in table.items()}
    if isinstance(value, Mapping):
        return {str(key): as_json(one, depth + 1) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        return [as_json(one, depth + 1) for one in value]
    return str(value)
