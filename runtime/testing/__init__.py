"""For tests of agents and tools: doubles with the interfaces of the real objects, which are part of the product.

Owns what a test of a user's own needs beside `ScriptedModel`. Its files:

    manual_clock    a clock that is moved by hand
    transcript      what a run did, as text that is the same each time
    recording       a real model's answers, recorded once and given again
    tool_contexts   a context for a tool that is called by a test
    plugin          fixtures for pytest, found by it without being named

It must never be imported by what runs; but `tool_contexts` is told by `understudy.actors` how a context is made.
"""

from .manual_clock import ManualClock
from .recording import RecordingModel
from .tool_contexts import tool_context
from .transcript import transcript

__all__ = ["ManualClock", "RecordingModel", "tool_context", "transcript"]
