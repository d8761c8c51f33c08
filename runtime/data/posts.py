"""Posts: messages to a session or a running run that are stored until a turn hears them."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, TypeAlias

from .chat import Message
from .value import Value

__all__ = ["BOUNDARIES", "Boundary", "Post", "Posted"]

Boundary: TypeAlias = Literal["safe_point", "turn_end", "preempt"]
"""The point at which a post is heard.

At the next safe point of the running turn; by the next turn; or by the next turn, for which the
running one ends at its next safe point.
"""

BOUNDARIES: Final[tuple[Boundary, ...]] = ("safe_point", "turn_end", "preempt")


class Post(Value, frozen=True):
    """A stored message that no turn has heard yet."""

    id: str
    seq: int
    """Its number in its inbox. Numbers grow; they are not always consecutive."""
    message: Message
    when: Boundary
    not_before: datetime | None
    """The time before which it is not heard."""
    sender: str | None
    posted_at: datetime


class Posted(Value, frozen=True):
    """The receipt of a post, which is stored. Events of heard posts have it, too."""

    id: str
    seq: int
    session_id: str | None = None
    run_id: str | None = None
    duplicate: bool = False
    """True if the post was stored before, with the same id and content."""
    sender: str | None = None
