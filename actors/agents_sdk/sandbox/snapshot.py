"""What is kept of a sandbox.

Owns: the descriptions of snapshots. It must never keep one.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from ..exceptions import UserError

__all__ = ["LocalSnapshot", "LocalSnapshotSpec", "NoopSnapshot", "NoopSnapshotSpec", "SnapshotBase", "SnapshotSpec", "as_snapshot"]


class SnapshotBase(BaseModel, extra="allow"):
    """A snapshot."""

    type: str
    id: str = ""


class LocalSnapshot(SnapshotBase):
    """A snapshot in a directory."""

    type: Literal["local"] = "local"
    base_path: Path = Path()


class NoopSnapshot(SnapshotBase):
    """No snapshot."""

    type: Literal["noop"] = "noop"


class SnapshotSpec(BaseModel, extra="allow"):
    """How snapshots are to be made."""

    type: str


class NoopSnapshotSpec(SnapshotSpec):
    """None are."""

    type: Literal["noop"] = "noop"


class LocalSnapshotSpec(SnapshotSpec):
    """In a directory."""

    type: Literal["local"] = "local"
    base_path: Path = Path()


def as_snapshot(given: dict[str, Any]) -> SnapshotSpec:
    """The description of a dict."""
    kinds: dict[Any, type[SnapshotSpec]] = {"noop": NoopSnapshotSpec, "local": LocalSnapshotSpec}
    made = kinds.get(given.get("type"))
    if made is None:
        msg = f"Unknown snapshot type {given.get('type')!r}. Known are noop and local."
        raise UserError(msg)
    return made(**given)
