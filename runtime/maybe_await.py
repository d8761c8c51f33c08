"""What a user's function has returned, which may be `def` or `async def`.

Owns: the one place that tells the two apart. It must never call the function: who calls it knows what to do when that raises.
"""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["maybe_await"]


async def maybe_await(value: Any) -> Any:
    """The value, which is awaited first if it can be."""
    return await value if inspect.isawaitable(value) else value
