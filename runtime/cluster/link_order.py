"""The order of one client's requests to one host. None is lost or done twice.

Calls of Ray's async actors overtake each other, and a link may break with requests and replies in
flight. So batches have numbers, and requests have ids. The host takes batches in order. A client
that opens a new link sends all requests without a reply again, under the same ids.

Both ends are plain objects without clock and network. They never wait, and do not interpret
requests.
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
"""Batches that may arrive before a missing one. If there are more, the link is lost."""


class Request(NamedTuple):
    """A request of a client to a host.

    The body is in the codec's format. It is read when the request is handled, so a damaged body
    affects no other request.
    """

    id: int
    kind: str
    head: dict[str, Any]
    body: bytes


class Reply(NamedTuple):
    """The host's reply to a request: a code, and a body in the codec's format."""

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
        # Received replies, which the host may discard.
        self._acks: list[int] = []
        self.pending: dict[int, Request] = {}  # requests without a reply, ordered by id

    def post(self, kind: str, head: dict[str, Any], body: bytes = b"") -> Request:
        """Put a request into the next batch. Its head may be changed until it is sent."""
        self._last_id += 1
        request = self.pending[self._last_id] = Request(self._last_id, kind, head, body)
        self._unsent.append(request.id)
        return request

    def is_unsent(self, request_id: int) -> bool:
        """Return whether a request waits for the next batch."""
        return request_id in self._unsent

    @property
    def has_batch(self) -> bool:
        return bool(self._unsent or self._acks)

    def take_batch(self, most: int, *, even_empty: bool = False) -> tuple[int, bytes] | None:
        """Return the next batch with its number, or None if there is nothing to send."""
        if not (self.has_batch or even_empty):
            return None
        ids = [self._unsent.popleft() for _ in range(min(most, len(self._unsent)))]
        requests = [self.pending[one] for one in ids if one in self.pending]
        acks, self._acks = self._acks[:most], self._acks[most:]
        number, self._seq = self._seq, self._seq + 1
        rows = [[one.id, one.kind, one.head, one.body] for one in requests]
        return number, pack([_FORMAT, acks, rows], binaries=len(rows))

    def receive(self, replies: Sequence[Reply]) -> list[tuple[Request, Reply]]:
        """Return the requests that these replies answer. A duplicate reply is dropped."""
        found = []
        for reply in replies:
            request = self.pending.pop(reply.id, None)
            self._acks.append(reply.id)
            if request is not None:
                found.append((request, reply))
        return found

    def reopen(self) -> None:
        """Prepare a new link: all requests without a reply are sent again."""
        self._seq = 0
        self._unsent = deque(self.pending)


class Inbox:
    """The host's end, for one client."""

    __slots__ = ("_early", "_next_seq", "_unsent", "answers", "last_id", "link")

    def __init__(self) -> None:
        self.link = ""
        self.last_id = 0  # of the requests that were taken
        self.answers: dict[int, Reply] = {}  # replies that the client has not acknowledged
        self._next_seq = 0
        self._early: dict[int, bytes] = {}
        self._unsent: deque[int] = deque()

    def open(self, link: str) -> None:
        """Open a new link of this client. Batches from an older one are dropped."""
        self.link = link
        self._next_seq = 0
        self._early.clear()
        self._unsent.clear()

    @property
    def has_gap(self) -> bool:
        """Whether a batch is missing before one that has arrived."""
        return bool(self._early)

    def take(self, link: str, number: int, data: bytes) -> list[Request]:
        """Return the requests to handle now, in order.

        Raises `CheckpointError` if the link cannot continue.
        """
        if link != self.link or number < self._next_seq:
            return []
        self._early[number] = data
        if len(self._early) > _MOST_EARLY:
            msg = (
                f"{len(self._early)} batches wait for one that is missing. The link is opened again"
            )
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
        """Return the next batch of replies, with the number of this host's list of hosts."""
        ids = [self._unsent.popleft() for _ in range(min(most, len(self._unsent)))]
        rows = [list(self.answers[one]) for one in ids if one in self.answers]
        return pack([_FORMAT, list_number, rows], binaries=len(rows))


def _read_batch(data: bytes) -> tuple[list[int], list[Request]]:
    return _read(data, lambda found: (list(found[1]), [Request(*row) for row in found[2]]))


def read_replies(data: bytes) -> tuple[int, list[Reply]]:
    """Return the number of the host's list, and its replies. Raise `CheckpointError`."""
    return _read(data, lambda found: (int(found[1]), [Reply(*row) for row in found[2]]))


def _read(data: bytes, make: Callable[[Any], T]) -> T:
    found = unpack(data)
    try:
        if found[0] > _FORMAT:
            raise CheckpointError(
                "a batch of requests has the format of a newer version of offbook. Update "
                "offbook in this process."
            )
        return make(found)
    except (IndexError, TypeError, ValueError) as error:
        msg = (
            f"a batch of requests is damaged: {type(error).__name__}: {error}. The link is "
            "opened again"
        )
        raise CheckpointError(msg) from error
