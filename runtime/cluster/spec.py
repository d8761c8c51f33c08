"""The data that each host of a cluster is started with.

Two specs are compared, because two programs must not share a name.
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
    """The spec of one cluster, at one version."""

    cluster: str
    factory: str
    version: str | None = None
    allow: tuple[str, ...] = ()
    pin: bool = False
    node: str = ""
    """The machine of the program that started it.

    A store that is a local file must be on that machine.
    """
    starter: str = field(default="", compare=False)
    """The program that has started this host, if several start the cluster at once."""
    limits: Limits = field(default_factory=Limits)
    resources: dict[str, Any] = field(default_factory=dict, compare=False)
    ray_options: dict[str, Any] = field(default_factory=dict, compare=False)

    def pack(self) -> bytes:
        said = {
            name: getattr(self, name)
            for name in (
                "cluster",
                "factory",
                "version",
                "pin",
                "node",
                "starter",
                "resources",
                "ray_options",
            )
        }
        return pack(
            {"format": _FORMAT, **said, "allow": list(self.allow), "limits": self.limits.data()}
        )

    @staticmethod
    def read(data: bytes) -> ClusterSpec:
        """Make a spec from the result of `pack`. Raise `CheckpointError`."""
        said = unpack(data)
        try:
            if said.pop("format") > _FORMAT:
                raise CheckpointError(
                    "the cluster was started by a newer version of offbook. Update offbook in "
                    "this process."
                )
            return ClusterSpec(
                **{**said, "allow": tuple(said["allow"]), "limits": read_limits(said["limits"])}
            )
        except (AttributeError, KeyError, TypeError) as error:
            msg = (
                "the settings that the host was started with are damaged: "
                f"{type(error).__name__}: {error}. Start the cluster again, with the same "
                "version of offbook on all nodes"
            )
            raise CheckpointError(msg) from error

    def at(self, version: str | None, factory: str | None = None) -> ClusterSpec:
        """Return the spec of the same cluster at another version."""
        return replace(self, version=version, factory=factory or self.factory)
