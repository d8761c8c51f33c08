"""The SDK's name for `understudy.actors.realtime.config`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.config import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
