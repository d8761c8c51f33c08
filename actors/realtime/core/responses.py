"""The responses of a session, one at a time.

It tracks the state of the default conversation (idle, requested, active, cancelling), the waiting
requests, and the agent of each response. Every request for a response passes through here, and none
starts while another is active.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from ....runtime.data.chat import new_id
from ..model_inputs import RealtimeModelSendResponse
from ..state.settings import AgentSettings

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Response", "Responses", "Wish"]

_KEPT: Final = 64


@dataclass(eq=False, slots=True)
class Response:
    """One response of the model."""

    id: str | None
    settings: AgentSettings
    number: int
    """The number of items that the conversation had when the response started."""
    generation: int = 0
    out_of_band: bool = False
    implied: bool = False
    """The response was never announced; one of its messages arrived."""
    interrupted: bool = False
    cancelling: bool = False
    done: bool = False
    tripped: bool = False
    handoff_call: str | None = None
    usage: Any = None
    began_at: float = 0.0
    speech_ended_at: float | None = None
    first_audio_at: float | None = None
    status: str = "in_progress"


@dataclass(eq=False, slots=True)
class Wish:
    """A requested response."""

    kind: Literal["auto", "raw"] = "auto"
    event_id: str = field(default_factory=lambda: f"event_{new_id()}")
    items: tuple[str, ...] = ()
    """The items that it answers."""
    tool_choice: str | None = None
    other_data: Mapping[str, Any] | None = None


class Responses:
    """The responses of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.active: Response | None = None
        self.requested: Wish | None = None
        self.wishes: list[Wish] = []
        self.known: dict[str, Response] = {}
        self.generation = 0
        self.count = 0
        # the sequence number at which the conversation received an item
        self._told: dict[str, int] = {}
        self._number = 0
        self._answered: Wish | None = None  # the request that the active response answers
        self._cancels_next = False
        self._cancels: list[str] = []

    @property
    def is_idle(self) -> bool:
        return self.active is None and self.requested is None

    @property
    def is_quiet(self) -> bool:
        """Whether no response is active, requested or waiting."""
        return self.is_idle and not self.wishes

    def told(self, item_id: str) -> None:
        """Record that the server has an item."""
        self._number += 1
        self._told.setdefault(item_id, self._number)
        if len(self._told) > 10 * _KEPT:
            del self._told[next(iter(self._told))]

    # --- requests ---

    def wish(self, wish: Wish) -> None:
        """Request a response as soon as one may start. Waiting automatic requests are merged."""
        if wish.kind == "auto":
            for other in self.wishes:
                if other.kind == "auto" and other.tool_choice == wish.tool_choice:
                    other.items += wish.items
                    return
        self.wishes.append(wish)

    def request_now(self, wish: Wish) -> bool:
        """Return whether a response can be requested together with an input.

        If so, it counts as requested.
        """
        if not self._may_begin() or self.wishes or wish.tool_choice is not None:
            return False
        self.requested = wish
        return True

    def _may_begin(self) -> bool:
        core = self._core
        return (
            self.is_idle
            and core.link.is_ready
            and not core.handoffs.is_pending
            and not core.outbox.has_commit
            and not core.is_closing
        )

    def pump(self) -> None:
        """Send the next request, if a response may start."""
        if not self.wishes or not self._may_begin():
            return
        wish = self.requested = self.wishes.pop(0)
        self._core.outbox.put(
            RealtimeModelSendResponse(wish.event_id, wish.tool_choice, wish.other_data)
        )

    def refused(self, event_id: str, code: str | None) -> bool:
        """Handle the server's refusal of a response.

        Returns whether the error must be shown.
        """
        for wish in (self.requested, self._answered):
            if wish is None or wish.event_id != event_id:
                continue
            if self.requested is wish:
                self.requested = None
            else:
                self._answered = None
            if code == "conversation_already_has_active_response":
                if not self._covers(self.active, wish):
                    self.wishes.insert(0, wish)
                return False
            return True
        return True

    def _covers(self, response: Response | None, wish: Wish) -> bool:
        """Return whether a response started after the items of a request."""
        if response is None or wish.kind == "raw" or not wish.items:
            return False
        return all(self._told.get(one, self._number + 1) <= response.number for one in wish.items)

    def void(self) -> None:
        """Discard the requests of a lost connection."""
        if self.requested is not None and self.requested.kind == "raw":
            self.wishes.insert(0, self.requested)
        self.requested = self._answered = None
        self._told.clear()

    # --- responses ---

    def of(self, response_id: str | None) -> Response | None:
        """Return the response with that id. Make one up if it was never announced."""
        if response_id is None:
            return self.active
        found = self.known.get(response_id)
        if found is not None:
            return found
        if self.active is not None and self.active.id is None:
            self.active.id = response_id
            self.known[response_id] = self.active
            return self.active
        made = Response(
            response_id, self._core.in_force, self._number, self.generation, implied=True
        )
        self._keep(made)
        return made

    def _keep(self, response: Response) -> None:
        if response.id is not None:
            self.known[response.id] = response
        if len(self.known) > _KEPT:
            oldest = next(iter(self.known))
            if self.known[oldest] is not self.active:
                del self.known[oldest]

    def began(self, response_id: str | None, *, out_of_band: bool) -> Response:
        """Handle the start of a response."""
        found = self.known.get(response_id) if response_id is not None else None
        response = found or Response(response_id, self._core.in_force, self._number)
        response.out_of_band, response.implied = out_of_band, False
        response.began_at = self._core.now()
        self._keep(response)
        if out_of_band:
            return response
        self.generation += 1
        self.count += 1
        response.generation = self.generation
        self.active = response
        self._answered, self.requested = self.requested, None
        # Waiting requests that this response answers need no other response.
        for wish in tuple(self.wishes):
            if wish.kind == "auto" and self._covers(response, wish):
                self.wishes.remove(wish)
        if self._cancels_next:
            self._cancels_next = False
            response.interrupted = True
        return response

    def ended(self, response_id: str | None) -> Response | None:
        """Handle the end of a response. Return None if it is unknown."""
        response = self.active if response_id is None else self.known.get(response_id)
        if response is None:
            if self.active is not None and self.active.id is None:
                response = self.active
            else:
                return None
        response.done = True
        if response is self.active:
            self.active = self._answered = None
        return response

    def cancel_next(self) -> None:
        """Cancel the requested response as soon as it starts."""
        if self.requested is not None:
            self._cancels_next = True

    def cancel_id(self) -> str:
        """Return the id of a cancel message.

        The response may end before the message arrives. The server's refusal is not an error then.
        """
        self._cancels = [*self._cancels[-7:], f"event_{new_id()}"]
        return self._cancels[-1]

    def is_cancel(self, event_id: str) -> bool:
        return event_id in self._cancels

    def drop_wish(self) -> None:
        """Drop all waiting automatic requests."""
        with contextlib.suppress(ValueError):
            for wish in tuple(self.wishes):
                if wish.kind == "auto":
                    self.wishes.remove(wish)
