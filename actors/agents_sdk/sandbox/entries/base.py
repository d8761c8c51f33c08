"""What may be in a sandbox.

Owns: the descriptions. It must never make a file.
"""

from typing import Any

from pydantic import BaseModel

__all__ = ["BaseEntry", "Mount", "MountStrategyBase"]


class BaseEntry(BaseModel, extra="allow", arbitrary_types_allowed=True):
    """What is to be at a path."""


class MountStrategyBase(BaseModel, extra="allow"):
    """How a mount is made."""

    type: str = ""


class Mount(BaseEntry):
    """A mount."""

    mount_strategy: Any = None
