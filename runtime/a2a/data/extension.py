"""The URI of the protocol extension that reports the steps inside a task."""

from __future__ import annotations

from typing import Final

__all__ = ["STEPS_EXTENSION"]

STEPS_EXTENSION: Final = "https://offbook.dev/a2a/steps/v1"
"""The extension whose clients get tool calls, reasoning and transfers as status updates."""
