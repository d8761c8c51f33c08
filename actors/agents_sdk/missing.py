"""What the SDK has and this room has not.

Owns: the error that says so. It must never let such a thing pass.
"""

from typing import Final, NoReturn

from .exceptions import UserError

__all__ = ["refuse"]

_PAGE: Final = "docs/from-agents-sdk.md"


def refuse(what: str, instead: str = "") -> NoReturn:
    """Raise: that is not there yet."""
    msg = f"{what} is not supported by understudy.actors.agents_sdk{f': {instead}' if instead else ''}. {_PAGE} has the list of what is missing."
    raise UserError(msg)
