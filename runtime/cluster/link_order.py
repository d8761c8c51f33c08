"""The order of one client's requests to one host, and that none is lost or done twice.

Calls of Ray's async actors overtake each other, and a link may break with requests and replies on their way. So batches bear numbers, and requests ids: the
host takes batches in order, and a client that opens a new link sends again, under the same ids, what has no reply yet.

Owns: both ends, as plain objects without time and without a network: what comes in, and what is to go out. It must never wait, nor know what a request asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from ..codec.packing import pack, unpack
from ..errors import CheckpointError

__all__ = ["Inbox", "Outbox", "Reply", "Request", "read_replies"]

T = TypeVar("T")

_FORMAT: Final = 1
_MOST_EARLY: Final = 1_000
"""Batches that may come before one that is missing: if there are more, the link is lost."""


class Request(NamedTuple):
    """What a client asks of a host. The body is bytes of the codec: it is read when the request is handled, and a damaged one harms no other."""

    id: int
    kind: str
    head: dict[str, Any]
    body: bytes


class Reply(NamedTuple):
    """What the host says to it: how it went, and bytes of the codec."""

    id: int
    code: str
    body: bytes


class Outbox:
    """The client's end."""

    __slots__ = ("_acks", "_last_id", "_seq", "_unsent", "pending")

    def __init__(self) -> None:
        self._last_id = 0
        self._seq = 0
        self._unsent: deque[int] = deque()
        self._acks: list[int] = []  # replies that were received, and that the host need not keep any more
        self.pending: dict[int, Request] = {}  # that have no reply yet, in the order of their ids

    def post(self, kind: str, head: dict[str, Any], body: bytes = b"") -> Request:
        """Put a request into the next batch. Its head may be changed until it is sent."""
        self._last_id += 1
        request = self.pending[self._last_id] = Request(self._last_id, kind, head, body)
        self._unsent.append(request.id)
        return request

    def is_unsent(self, request_id: int) -> bool:
        """Whether it waits for the next batch."""
        return request_id in self._unsent

    @property
    def has_batch(self) -> bool:
        return bool(self._unsent or self._acks)

    def take_batch(self, most: int, *, even_empty: bool = False) -> tuple[int, bytes] | None:
        """The next batch, with its number; None if there is nothing to send."""
        if not (self.has_batch or even_empty):
            return None
        ids = [self._unsent.popleft() for _ in range(min(most, len(self._unsent)))]
        requests = [self.pending[one] for one in ids if one in self.pending]
        acks, self._acks = self._acks[:most], self._acks[most:]
        number, self._seq = self._seq, self._seq + 1
        rows = [[one.id, one.kind, one.head, one.body] for one in requests]
        return number, pack([_FORMAT, acks, rows], binaries=len(rows))

    def receive(self, replies: Sequence[Reply]) -> list[tuple[Request, Reply]]:
        """The requests that are answered by this. A reply that came before is dropped."""
        found = []
        for reply in replies:
            request = self.pending.pop(reply.id, None)
            self._acks.append(reply.id)
            if request is not None:
                found.append((request, reply))
        return found

    def reopen(self) -> None:
        """The link is a new one: what has no reply is sent again."""
        self._seq = 0
        self._unsent = deque(self.pending)


class Inbox:
    """The host's end, of one client."""

    __slots__ = ("_early", "_next_seq", "_unsent", "answers", "last_id", "link")

    def __init__(self) -> None:
        self.link = ""
        self.last_id = 0  # of the requests that were taken
        self.answers: dict[int, Reply] = {}  # that the client has not said it has
        self._next_seq = 0
        self._early: dict[int, bytes] = {}
        self._unsent: deque[int] = deque()

    def open(self, link: str) -> None:
        """A new link of this client: what comes over an older one is dropped."""
        self.link = link
        self._next_seq = 0
        self._early.clear()
        self._unsent.clear()

    @property
    def has_gap(self) -> bool:
        """Whether a batch is missing, behind which others are here."""
        return bool(self._early)

    def take(self, link: str, number: int, data: bytes) -> list[Request]:
        """The requests that are to be handled now, in order. Raises `CheckpointError` if the link cannot go on."""
        if link != self.link or number < self._next_seq:
            return []
        self._early[number] = data
        if len(self._early) > _MOST_EARLY:
            msg = f"{len(self._early)} batches wait for one that is missing"
            raise CheckpointError(msg)
        found: list[Request] = []
        while (batch := self._early.pop(self._next_seq, None)) is not None:
            self._next_seq += 1
            acks, requests = _read_batch(batch)
            for ack in acks:
                self.answers.pop(ack, None)
            for request in requests:
                if request.id > self.last_id:
                    self.last_id = request.id
                    found.append(request)
                elif request.id in self.answers:
                    self._unsent.append(request.id)  # it was answered, and the answer was lost
        return found

    def answer(self, reply: Reply) -> None:
        self.answers[reply.id] = reply
        self._unsent.append(reply.id)

    @property
    def has_replies(self) -> bool:
        return bool(self._unsent)

    def take_replies(self, most: int, list_number: int) -> bytes:
        """The next batch of replies, with the number of the list of hosts that this host knows."""
        ids = [self._unsent.popleft() for _ in range(min(most, len(self._unsent)))]
        rows = [list(self.answers[one]) for one in ids if one in self.answers]
        return pack([_FORMAT, list_number, rows], binaries=len(rows))


def _read_batch(data: bytes) -> tuple[list[int], list[Request]]:
    return _read(data, lambda found: (list(found[1]), [Request(*row) for row in found[2]]))


def read_replies(data: bytes) -> tuple[int, list[Reply]]:
    """The number of the list that the host knows, and its replies. Raises `CheckpointError`."""
    return _read(data, lambda found: (int(found[1]), [Reply(*row) for row in found[2]]))


def _read(data: bytes, make: Callable[[Any], T]) -> T:
    found = unpack(data)
    try:
        if found[0] > _FORMAT:
            raise CheckpointError("a batch was written by a newer version of understudy: update this one.")
        return make(found)
    except (IndexError, TypeError, ValueError) as error:
        msg = f"a batch is damaged: {type(error).__name__}: {error}"
        raise CheckpointError(msg) from error
