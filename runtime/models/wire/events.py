"""The events of a stream, as values; its end, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from ...errors import ModelError
from ..openai_errors import error_in, event_error
from .sse import EventDecoder

__all__ = ["DONE", "check_head", "decoded"]

DONE: Final = object()
"""Follows the last event, if the provider marks the end of the stream."""


def decoded(
    events: list[bytes], who: object, decode: Callable[[bytes], object] = json.loads
) -> list[object]:
    """Return the values; `DONE` is the last one, if the stream is complete.

    Raises the error that an event reports.
    """
    items: list[object] = []
    for data in events:
        if data.startswith(b"[DONE]"):
            items.append(DONE)
            break
        item = decode(data)
        if (error := error_in(item)) is not None:
            raise event_error(error, who)
        items.append(item)
    return items


def check_head(decoder: EventDecoder, who: object) -> None:
    """Raise if the response that has ended was not a stream of events at all, but a page."""
    head = (decoder.head or b"").strip()
    if head and not decoder.is_of_events(head):
        msg = (
            f"{who}: the provider's answer must be a stream of events, got "
            f"{head.decode(errors='replace')!r}. Check the base_url."
        )
        raise ModelError(msg, kind="malformed", retryable=True)
