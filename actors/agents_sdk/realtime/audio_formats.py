"""The SDK's name for `understudy.actors.realtime.audio_formats`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.audio_formats import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
