"""What is to be in a sandbox.

Owns: `Manifest`. It must never make a file.
"""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Manifest"]


class Manifest(BaseModel):
    """The files and mounts of a sandbox, and its environment."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", arbitrary_types_allowed=True)

    version: int = 1
    root: str = "/workspace"
    entries: dict[str, Any] = Field(default_factory=dict)
    environment: Any = None
    users: list[Any] = Field(default_factory=list)
    groups: list[Any] = Field(default_factory=list)
