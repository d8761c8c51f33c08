"""What is named as `"module:attribute"`, so that no function or class has to travel.

Owns: whether such a name is one, whether a cluster lets it in, and loading it. It must never load what was not allowed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from ..errors import UsageError

__all__ = ["allowed_prefixes", "check_cluster_name", "check_name", "load", "load_allowed"]

_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_CLUSTER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def check_name(name: object, what: str) -> str:
    """Raise, unless it is `"module:attribute"`."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    if callable(name):
        own = f"{getattr(name, '__module__', 'module')}:{getattr(name, '__qualname__', 'name')}"
        msg = f"{what}({name!r}): an object cannot go to another machine. Give its name, as a text that each host can import: {own!r}."
    else:
        msg = f"{what}({name!r}): give the name of it as 'module:attribute', for example 'shop:host'."
    raise UsageError(msg)


def check_cluster_name(name: object) -> str:
    """Raise, unless a cluster may be called so."""
    if not isinstance(name, str) or not _CLUSTER.fullmatch(name):
        msg = f"Cluster(name={name!r}): give a name of letters, digits, '-', '_' and '.', 100 at most, for example 'shop'."
        raise UsageError(msg)
    return name


def load(name: str, what: str) -> Any:
    """What is called so. Raises `UsageError` that says which part of it is not there."""
    module, _, attributes = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise
        msg = f"{what}({name!r}): a host cannot import {module!r}. Install it on each node, or give ray_options={{'runtime_env': ...}} that brings it."
        raise UsageError(msg) from error
    try:
        return reduce(getattr, attributes.split("."), found)
    except AttributeError as error:
        msg = f"{what}({name!r}): the module {module!r} of the host has no {attributes!r}."
        raise UsageError(msg) from error


def allowed_prefixes(allow: Sequence[str] | None, factory: str) -> tuple[str, ...]:
    """The modules of which classes may be named: those that were given, or that of the factory with what is beside it."""
    if allow is None:
        return (factory.partition(":")[0].split(".")[0] + ".",)
    if isinstance(allow, str) or not all(isinstance(one, str) and one for one in allow):
        msg = f"Cluster.start(allow={allow!r}): give a tuple of the beginnings of module names, for example allow=('shop.',)."
        raise UsageError(msg)
    return tuple(allow)


def load_allowed(name: str, allow: Sequence[str], what: str) -> Any:
    """What is called so, if the cluster lets it in."""
    check_name(name, what)
    module = name.partition(":")[0]
    if not any((module + ".").startswith(prefix) for prefix in allow):
        msg = f"{what}({name!r}): this cluster lets in only names that begin with {', '.join(map(repr, allow)) or 'nothing'}. Start it with allow=(...)."
        raise UsageError(msg)
    return load(name, what)
