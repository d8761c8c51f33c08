"""Agents that speak, by the SDK's names: the package `understudy.actors.realtime`.

Owns its modules' names, under which a program finds what it imports from the SDK's (`agent`, `audio_formats`, `config`, `events`, `handoffs`, `items`, `model`,
`model_events`, `model_inputs`, `openai_realtime`, `runner`, `session`, `testing`), and the SDK's errors of `realtime_handoff`. It must never define anything
else itself.
"""

from ...realtime import *  # noqa: F403 -- the same package, by another name
from ...realtime import __all__ as __all__
from .handoffs import realtime_handoff as realtime_handoff
