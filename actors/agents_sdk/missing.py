"""What the SDK has and this room has not.

Owns: the error that says so. It must never let such a thing pass.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from .exceptions import UserError

__all__ = ["nothing_in", "refuse"]

_PAGE: Final = "docs/from-agents-sdk.md"


def refuse(what: str, instead: str = "") -> NoReturn:
    """Raise: that is not there yet."""
    msg = f"{what} is not supported by understudy.actors.agents_sdk{f': {instead}' if instead else ''}. {_PAGE} has the list of what is missing."
    raise UserError(msg)


def nothing_in(module: str, instead: str = "") -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module of the SDK that is not there yet: a program that imports a name from it is told so, by an `ImportError`."""

    def refused(name: str) -> NoReturn:
        if name.startswith("__"):
            msg = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(msg)
        msg = f"{module}.{name} is not supported{f': {instead}' if instead else ''}. {_PAGE} has the list of what is missing."
        raise ImportError(msg, name=module)

    return refused
