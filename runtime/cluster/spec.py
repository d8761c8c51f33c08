"""What a cluster is made of, as each of its hosts is told when it is started.

Owns: the form of it. What is said twice is compared: two programs must not share a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..codec.packing import pack, unpack
from ..errors import CheckpointError
from .limits import Limits, read_limits

__all__ = ["ClusterSpec"]

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """One cluster, at one version."""

    cluster: str
    factory: str
    version: str | None = None
    allow: tuple[str, ...] = ()
    pin: bool = False
    nodes: int = 1
    """Of how many machines the cluster consists, as far as its starter could see."""
    limits: Limits = field(default_factory=Limits)
    resources: dict[str, Any] = field(default_factory=dict, compare=False)
    ray_options: dict[str, Any] = field(default_factory=dict, compare=False)

    def pack(self) -> bytes:
        said = {name: getattr(self, name) for name in ("cluster", "factory", "version", "pin", "nodes", "resources", "ray_options")}
        return pack({"format": _FORMAT, **said, "allow": list(self.allow), "limits": self.limits.data()})

    @staticmethod
    def read(data: bytes) -> ClusterSpec:
        """What `pack` has returned. Raises `CheckpointError`."""
        said = unpack(data)
        try:
            if said.pop("format") > _FORMAT:
                raise CheckpointError("the cluster was started by a newer version of understudy: update this one.")
            return ClusterSpec(**{**said, "allow": tuple(said["allow"]), "limits": read_limits(said["limits"])})
        except (AttributeError, KeyError, TypeError) as error:
            msg = f"what a host was started with is damaged: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error

    def at(self, version: str | None, factory: str | None = None) -> ClusterSpec:
        """The same cluster at another version."""
        return replace(self, version=version, factory=factory or self.factory)
