"""Files and mounts of sandboxes.

Owns their descriptions: `base`. It must never make a file or mount anything.
"""

from .base import BaseEntry, Mount, MountStrategyBase

__all__ = ["BaseEntry", "Mount", "MountStrategyBase"]
