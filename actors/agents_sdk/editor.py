"""An editor that applies a model's patches.

Owns: what a program's editor is given and returns. It must never touch a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["ApplyPatchEditor", "ApplyPatchOperation", "ApplyPatchResult"]


@dataclass
class ApplyPatchOperation:
    """A file is to be made, changed or deleted."""

    type: Literal["create_file", "update_file", "delete_file"]
    path: str
    diff: str | None = None
    ctx_wrapper: Any | None = None
    move_to: str | None = None


@dataclass
class ApplyPatchResult:
    """What has become of it."""

    status: Literal["completed", "failed"] | None = None
    output: str | None = None


@runtime_checkable
class ApplyPatchEditor(Protocol):
    """Applies operations. Each method may be `async def`."""

    def create_file(self, operation: ApplyPatchOperation) -> Any: ...
    def update_file(self, operation: ApplyPatchOperation) -> Any: ...
    def delete_file(self, operation: ApplyPatchOperation) -> Any: ...
