"""What is to be in a sandbox.

Owns: `Manifest`. It must never make a file.
"""

from typing import Any

from pydantic import BaseModel, Field

__all__ = ["Manifest"]


class Manifest(BaseModel, extra="allow", arbitrary_types_allowed=True):
    """The files and mounts of a sandbox, and its environment."""

    version: int = 1
    root: str = "/workspace"
    entries: dict[str, Any] = Field(default_factory=dict)
    environment: Any = None
    users: list[Any] = Field(default_factory=list)
    groups: list[Any] = Field(default_factory=list)
