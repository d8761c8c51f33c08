"""Sends the output of a call to the model.

It is sent alone, or together with a call that the server does not have. It is sent at most once
over a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..items import RealtimeToolCallItem
from ..model_inputs import RealtimeModelSendItem, RealtimeModelSendToolOutput
from .responses import Wish

if TYPE_CHECKING:
    from .call import Call
    from .session_core import SessionCore

__all__ = ["send_output"]


def send_output(core: SessionCore, call: Call, item_id: str, wish: Wish | None) -> None:
    """Send the output, and request a response after it if `wish` is not None."""

    def sent() -> None:
        call.sent = True

    call.queued = core.link.epoch
    if call.epoch == core.link.epoch:
        starts = wish is not None and core.responses.request_now(wish)
        event_id = wish.event_id if wish is not None and starts else None
        core.outbox.put(
            RealtimeModelSendToolOutput(
                call.as_event(), call.output or "", starts, event_id=event_id, item_id=item_id
            ),
            sent,
        )
        if starts:
            return
    else:
        item = core.conversation.get(call.item_id)
        if isinstance(item, RealtimeToolCallItem):
            call.epoch = core.link.epoch
            core.outbox.put(
                RealtimeModelSendItem(item.model_copy(update={"output": call.output})), sent
            )
    if wish is not None:
        core.responses.wish(wish)
