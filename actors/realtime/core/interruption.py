"""Interrupts the current response.

The order is: mark, withdraw, announce, truncate, cancel, update the history. No step waits for
another. A response is cancelled only once, and an item is truncated only if it has audio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events import RealtimeAudioInterrupted
from ..model_inputs import RealtimeModelSendInterrupt, Truncation
from ..state.playback import AudioItem
from .responses import Response

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["interrupt_active", "interrupt_playback"]


def interrupt_active(core: SessionCore, *, cancel: bool, most_heard: bool = False) -> None:
    """Interrupt the current response.

    With `cancel`, the server must be told to cancel it. With `most_heard`, at most the audio that
    the consumer has taken counts as heard.
    """
    responses = core.responses
    active = responses.active
    if active is None and cancel:
        responses.cancel_next()
    items = core.playback.unheard(None if active is None else active.id)
    ids = {item.response_id for item in items}
    cancels = None
    if active is not None:
        if active.id is not None:
            ids.add(active.id)
        if cancel and not active.cancelling and not active.done:
            cancels = active
            active.cancelling = True
        active.interrupted = True
    _end(core, items, ids, cancels, most_heard=most_heard)


def interrupt_playback(core: SessionCore, response: Response) -> None:
    """Stop the playback of a finished response."""
    if response.id is None:
        return
    items = [one for one in core.playback.unheard(None) if one.response_id == response.id]
    response.interrupted = True
    _end(core, items, {response.id}, None, most_heard=False)


def _end(
    core: SessionCore,
    items: list[AudioItem],
    ids: set[str],
    cancels: Response | None,
    *,
    most_heard: bool,
) -> None:
    for one in ids:
        response = core.responses.known.get(one)
        if response is not None:
            response.interrupted = True
    core.events.take_back(ids)
    truncations = []
    cuts = []
    for item in items:
        heard = core.playback.heard_ms(item)
        if most_heard:
            heard = min(heard, item.taken_ms)
        end = int(heard)
        core.show_now(
            RealtimeAudioInterrupted, item_id=item.item_id, content_index=item.content_index
        )
        if not item.void and item.received_ms:
            truncations.append(Truncation(item.item_id, item.content_index, end))
        cuts.append((item, end, heard / item.received_ms if item.received_ms else 0.0))
    if truncations or cancels is not None:
        event = RealtimeModelSendInterrupt(
            force_response_cancel=cancels is not None,
            response_id=None if cancels is None else cancels.id,
            playback_only=cancels is None,
            truncations=tuple(truncations),
            event_id=None if cancels is None else core.responses.cancel_id(),
        )
        core.outbox.put(event)
    for item, end, share in cuts:
        core.playback.cut(item, end)
        core.conversation.cut(item.item_id, share, end)
        core.notes.record_cut(item.item_id)
        core.history_changed(item.item_id)
    if items:
        core.playback.stopped()
