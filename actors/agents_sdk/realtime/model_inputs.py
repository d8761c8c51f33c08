"""The SDK's name for `understudy.actors.realtime.model_inputs`.

Owns nothing: it must never define anything itself.
"""

from ...realtime.model_inputs import *  # noqa: F403 -- the same module, by another name

__all__: list[str] = []
