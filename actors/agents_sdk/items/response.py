"""What one call of a model gave.

Owns: `ModelResponse`. It must never say what is to be done with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..usage import Usage
from .kinds import TResponseOutputItem
from .run_items import without_creator

__all__ = ["ModelResponse"]


@dataclass
class ModelResponse:
    """The output of one call of a model, and what it has cost."""

    output: list[TResponseOutputItem]
    usage: Usage
    response_id: str | None
    """By which the provider knows the response, if it does."""
    request_id: str | None = None
    raw_usage: dict[str, Any] | None = None
    """What the provider has said of the cost, if that is asked for."""

    def to_input_items(self) -> list[Any]:
        """The output, as a model's input."""
        return [without_creator(item) for item in self.output]
