"""How a run is traced, as programs say it.

Owns: the type. It must never read it.
"""

from typing_extensions import TypedDict

__all__ = ["TracingConfig"]


class TracingConfig(TypedDict, total=False):
    """How a run is traced."""

    api_key: str
    """The key with which an exporter sends it."""
    include_task_and_turn_spans: bool
    """Whether the run and its turns have spans of their own, as they have unless this is False."""
