"""The SDK's name for `understudy.actors.realtime.handoffs`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.handoffs import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
