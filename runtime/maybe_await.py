"""The result of a user's function, which may be `def` or `async def`.

Owns: the one place that tells the two apart. It must never call the function: the caller does, and handles its exceptions.
"""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["maybe_await"]


async def maybe_await(value: object) -> Any:
    """The value; if it is awaitable, its result."""
    return await value if inspect.isawaitable(value) else value
