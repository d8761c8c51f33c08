"""What may be in a sandbox.

Owns: the descriptions. It must never make a file.
"""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

__all__ = ["BaseEntry", "Mount", "MountStrategyBase"]


class BaseEntry(BaseModel):
    """What is to be at a path."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", arbitrary_types_allowed=True)


class MountStrategyBase(BaseModel):
    """How a mount is made."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: str = ""


class Mount(BaseEntry):
    """A mount."""

    mount_strategy: Any = None
