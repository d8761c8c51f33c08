"""A `repr` that one can read: a value with what it says, and without what it does not.

Owns: that form. It must never leave out what tells two values apart that are not equal.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

__all__ = ["readable"]


def readable(value: Any) -> str:
    """The class and the fields of a dataclass, without those that are as they are by default, and those by which values are not compared."""
    shown = (f"{field.name}={getattr(value, field.name)!r}" for field in fields(value) if field.compare and not _is_default(field, getattr(value, field.name)))
    return f"{type(value).__name__}({', '.join(shown)})"


def _is_default(field: Field[Any], value: object) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return default is not MISSING and type(default) is type(value) and bool(default == value)
