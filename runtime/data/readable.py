"""A short `repr` that omits default values.

It never omits a difference between unequal values.
"""

from __future__ import annotations

from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

__all__ = ["readable"]


def readable(value: Any) -> str:
    """Return the class and fields of a value, without defaults and fields that are not compared."""
    shown = (
        f"{field.name}={getattr(value, field.name)!r}"
        for field in fields(value)
        if field.name not in value.NOT_COMPARED
        and not _is_default(field, getattr(value, field.name))
    )
    return f"{type(value).__name__}({', '.join(shown)})"


def _is_default(field: FieldInfo, value: object) -> bool:
    factory = field.default_factory
    default = field.default if factory is NODEFAULT else factory()
    return default is not NODEFAULT and type(default) is type(value) and bool(default == value)
