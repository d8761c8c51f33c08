"""Awaiting results that may or may not be awaitable.

They come from user functions, which may be `def` or `async def`. The caller calls the function and
handles its exceptions.
"""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["maybe_await"]


async def maybe_await(value: object) -> Any:
    """Return the value; if it is awaitable, its result."""
    return await value if inspect.isawaitable(value) else value
