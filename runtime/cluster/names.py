"""Names of the form `"module:attribute"`, so that no function or class must be sent.

A name is checked, and loaded only if the cluster allows it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from functools import reduce
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from ..errors import UsageError

__all__ = ["allowed_prefixes", "check_cluster_name", "check_name", "load", "load_allowed"]

_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_CLUSTER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def check_name(name: object, what: str) -> str:
    """Return the name. Raise unless it has the form `"module:attribute"`."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    if callable(name):
        own = f"{getattr(name, '__module__', 'module')}:{getattr(name, '__qualname__', 'name')}"
        msg = (
            f"{what}: {name!r} is an object, which cannot be sent to another machine. Pass "
            f"its name, which each host can import, as a string: {own}."
        )
    else:
        msg = (
            f"{what}: the name must have the form 'module:attribute', for example "
            f"'shop:host', got {name!r}."
        )
    raise UsageError(msg)


def check_cluster_name(name: object) -> str:
    """Return the name. Raise unless it is valid for a cluster."""
    if not isinstance(name, str) or not _CLUSTER.fullmatch(name):
        msg = (
            "Cluster: name must have at most 100 letters, digits, '-', '_' or '.', for "
            f"example 'shop', got {name!r}."
        )
        raise UsageError(msg)
    return name


def load(name: str, what: str) -> Any:
    """Load the named object. Raise `UsageError` that names the missing part."""
    module, _, attributes = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        msg = (
            f"{what}({name!r}): a host cannot import {module!r}. Install it on each node, or "
            "pass ray_options={'runtime_env': ...} with it."
        )
        raise UsageError(msg) from error
    try:
        return reduce(getattr, attributes.split("."), found)
    except AttributeError as error:
        msg = (
            f"{what}({name!r}): the module {module!r} of the host has no {attributes!r}. Correct "
            "the name, or install the same version on each node."
        )
        raise UsageError(msg) from error


def allowed_prefixes(allow: Sequence[str] | None, factory: str) -> tuple[str, ...]:
    """Return the allowed module prefixes: those of `allow`, or the factory's top-level package."""
    if allow is None:
        return (factory.partition(":")[0].split(".")[0] + ".",)
    if isinstance(allow, str) or not all(isinstance(one, str) and one for one in allow):
        msg = (
            f"Cluster.start(): allow must be a tuple of prefixes of module names, got {allow!r}. "
            "Pass allow=('shop.',), for example."
        )
        raise UsageError(msg)
    return tuple(allow)


def load_allowed(name: str, allow: Sequence[str], what: str) -> Any:
    """Load the named object, if the cluster allows it."""
    check_name(name, what)
    module = name.partition(":")[0]
    if not any((module + ".").startswith(prefix) for prefix in allow):
        msg = (
            f"{what}({name!r}): this cluster accepts only names that start with "
            f"{', '.join(map(repr, allow)) or 'nothing'}. Start it with allow=(...)."
        )
        raise UsageError(msg)
    found = load(name, what)
    place: Any = sys.modules[module]
    for part in name.partition(":")[2].split("."):
        place = getattr(place, part)
        is_foreign = isinstance(place, type | FunctionType | BuiltinFunctionType) and not any(
            f"{place.__module__}.".startswith(one) for one in allow
        )
        if isinstance(place, ModuleType) or is_foreign:
            msg = (
                f"{what}({name!r}): {part!r} is defined outside the modules that this cluster "
                f"accepts, although {module!r} imports it. Pass the name of something defined in "
                "them."
            )
            raise UsageError(msg)
    return found
