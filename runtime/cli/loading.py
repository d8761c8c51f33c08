"""Loads an agent from a file or a module, as named on the command line: `FILE_OR_MODULE[:NAME]`.

The default name is `agent`; other names are never guessed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..runner import Runner

__all__ = ["import_agents", "load", "with_types_of"]

_DEFAULT = "agent"


def load(target: str) -> Any:
    """Load the object that the target names.

    A `UsageError` names the missing part; errors of the file itself are raised.
    """
    place, name = _split(target)
    module = _module(place)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = ", ".join(
                [one for one in sorted(vars(module)) if _is_playable(vars(module)[one])][:20]
            )
            msg = (
                f"{place} has no {name!r}. Pass {place}:NAME. It has: "
                f"{known or 'no agent and no Runner'}."
            )
            raise UsageError(msg)
        found = getattr(found, part)
    return found


def _is_playable(found: object) -> bool:
    """Return whether a command accepts it: an agent, a Runner or an app, but not a class."""
    return not isinstance(found, type) and (
        isinstance(found, Runner) or hasattr(found, "sub_agents") or hasattr(found, "lifespan")
    )


def import_agents() -> None:
    """Import `offbook.actors`, whose types a store may contain.

    By its name: `runtime` never imports it statically.
    """
    importlib.import_module("offbook.actors")


def with_types_of(target: str | None, work: Callable[[], int]) -> int:
    """Import a file or a module, for the types that it registers, and call `work`."""
    if target is not None:
        _module(_split(target)[0] if ":" in target and not Path(target).exists() else target)
    return work()


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    if not colon or not name.replace(".", "_").isidentifier():
        return target, _DEFAULT
    return place, name


def _module(place: str) -> Any:
    path = Path(place)
    if path.suffix != ".py" and not path.exists():
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not (
                place == error.name or place.startswith(f"{error.name}.")
            ):
                raise  # an import of the module itself failed
            msg = (
                f"{place}: file or module not found. Pass FILE.py:NAME or MODULE:NAME, from the "
                "right folder."
            )
            raise UsageError(msg) from error
    if not path.is_file():
        msg = f"{place}: file not found. Check the path, or change to its folder."
        raise UsageError(msg)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{place} must be a Python file with the suffix .py."
        raise UsageError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours
    spec.loader.exec_module(module)
    return module
