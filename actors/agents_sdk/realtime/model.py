"""The SDK's name for `understudy.actors.realtime.model`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.model import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
