"""The SDK's name for `understudy.actors.realtime.testing`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.testing import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
