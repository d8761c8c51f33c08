"""Settings that programs may give as dicts.

Owns: the making of a settings object from a dict, and what is said of a key that it does not know. It must never guess what is meant.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

__all__ = ["as_settings", "check_keys"]

T = TypeVar("T")


def as_settings(value: T | dict[str, Any], kind: type[T], what: str) -> T:
    """The settings of a dict; or what was given, if it is one."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, dict):
        msg = f"{what} must be a {kind.__name__} instance or a dict, got {type(value).__name__}"
        raise TypeError(msg)
    names = {field.name for field in fields(kind) if field.init}  # type: ignore[arg-type]  # a dataclass
    if unknown := sorted(str(name) for name in value if name not in names):
        msg = f"Unknown {what} settings: {', '.join(unknown)}"
        raise TypeError(msg)
    return kind(**value)


def check_keys(value: object, names: set[str], where: str) -> None:
    """Raise, if that is a dict with keys that are not known there."""
    if isinstance(value, dict) and (unknown := sorted(str(name) for name in value if name not in names)):
        msg = f"Unknown model settings in {where}: {', '.join(unknown)}"
        raise TypeError(msg)
