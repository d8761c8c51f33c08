"""The events of a stream, as values.

Owns: what ends a stream, what in it is an error, and what is no stream at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from ...errors import ModelError
from ..openai_errors import event_error
from .sse import EventDecoder

__all__ = ["DONE", "check_head", "decoded"]

DONE: Final = object()
"""What comes after the last event, if the provider says that it was the last."""


def decoded(events: list[bytes], who: object, decode: Callable[[bytes], object] = json.loads) -> list[object]:
    """The values; `DONE` as the last one, if there is no more to come. Raises what an event tells of."""
    items: list[object] = []
    for data in events:
        if data.startswith(b"[DONE]"):
            items.append(DONE)
            break
        item = decode(data)
        if (type(item) is dict or isinstance(item, Mapping)) and item.get("error"):
            raise event_error(item["error"], who)
        items.append(item)
    return items


def check_head(decoder: EventDecoder, who: object) -> None:
    """Raise, if what has ended is no stream of events at all, but a page."""
    head = (decoder.head or b"").strip()
    if head and not decoder.is_of_events(head):
        msg = f"{who}: the provider's answer is no stream of events, but {head.decode(errors='replace')!r}. Check the base_url."
        raise ModelError(msg, kind="malformed", retryable=True)
