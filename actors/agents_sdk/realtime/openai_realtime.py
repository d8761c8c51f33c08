"""The SDK's name for `understudy.actors.realtime.openai_realtime`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.openai_realtime import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
