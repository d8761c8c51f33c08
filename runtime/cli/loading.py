"""An agent from a file or a module, as a command names it: `FILE_OR_MODULE[:NAME]`.

Owns: the finding, and what is said when it is not found. It must never guess: without a name it is `agent`.
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
    """What that names. A `UsageError` says what is missing; what the file itself raises is raised."""
    place, name = _split(target)
    module = _module(place)
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = ", ".join([one for one in sorted(vars(module)) if _is_playable(vars(module)[one])][:20])
            msg = f"{place} has no {name!r}: write {place}:NAME. It has: {known or 'no agent and no Runner'}."
            raise UsageError(msg)
        found = getattr(found, part)
    return found


def _is_playable(found: object) -> bool:
    """Whether it is what a command takes, an agent, a Runner or an app, and not one of their classes."""
    return not isinstance(found, type) and (isinstance(found, Runner) or hasattr(found, "sub_agents") or hasattr(found, "lifespan"))


def import_agents() -> None:
    """Import `understudy.actors`, whose types stand in what a store holds. By its name: what runs agents never imports it."""
    importlib.import_module("understudy.actors")


def with_types_of(target: str | None, work: Callable[[], int]) -> int:
    """Import a file or a module, for the types that it registers, and do that."""
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
            if error.name is None or not (place == error.name or place.startswith(f"{error.name}.")):
                raise  # of the module's own imports
            msg = f"{place}: there is no such file, and no such module."
            raise UsageError(msg) from error
    if not path.is_file():
        msg = f"{place}: there is no such file."
        raise UsageError(msg)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"{place}: that is no Python file."
        raise UsageError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import what lies beside it
    spec.loader.exec_module(module)
    return module
