"""Test tools for agents and tools: doubles with the interfaces of the real objects.

They complement `ScriptedModel`, and are a part of the product:

    manual_clock    a clock that is advanced by the test
    transcript      a run as reproducible text
    recording       a real model's answers, recorded once and replayed
    tool_contexts   a context for a tool that a test calls
    plugin          fixtures for pytest, which finds them by itself

Production code never imports this package, except that `offbook.actors` registers the maker of tool
contexts.
"""

from .manual_clock import ManualClock
from .recording import RecordingModel
from .tool_contexts import tool_context
from .transcript import transcript

__all__ = ["ManualClock", "RecordingModel", "tool_context", "transcript"]
