"""Agents that speak, by the SDK's names.

Owns what describes them, so that programs which define one can be read: `agent`. It must never open a session: that is refused.
"""

from .agent import RealtimeAgent, RealtimeRunner, realtime_handoff

__all__ = ["RealtimeAgent", "RealtimeRunner", "realtime_handoff"]
