"""What a program may do with a session's items before a run is given them.

Owns: the type of that callback. It must never read a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["SessionInputCallback"]

SessionInputCallback: TypeAlias = Callable[[list[Any], list[Any]], Any]
"""Given what the session holds and what is asked now, it returns what the model is given."""
