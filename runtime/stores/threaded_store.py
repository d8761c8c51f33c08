"""The base class of stores with a blocking client: their methods, as operations for the worker."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from ..errors import UsageError, ValueRefused
from ..greenlets import refuse_greenlets
from ..unpicklable import Unpicklable
from .arguments import (
    checked_writes,
    count,
    key_bytes,
    limit_of,
    owner_name,
    record_list,
    span,
    text,
    value_bytes,
)
from .listening import Listener, Source
from .run_entries import ExpectEntry, RunEntry, RunQuery, checked_query, numbers_of, texts_of
from .store_thread import Backend, Operation, SteppedOperation, Worker
from .watching import Watch, Watchers
from .writes import Append, Claim, Ending, Expect, Put, Remove, Write

__all__ = ["DrivenStore", "EncodedQuery", "EncodedWrite"]

# Bytes of an operation: about the largest message of the clients and servers.
_MOST_AT_ONCE: Final = 1_000_000_000
_SMALL: Final = 64  # bytes of overhead per operation


class DrivenStore(Unpicklable):
    """The base of the stores that have a worker."""

    __why_not_pickled__ = (
        "its thread and connection belong to this process. Make the store in each process, from "
        "the same path, url or dsn."
    )

    _largest = _MOST_AT_ONCE
    """The bytes of the largest value or record that it accepts."""

    def __init__(self, name: str) -> None:
        refuse_greenlets(name)
        self._name = name
        self._closed = False
        # One for each process: a forked one has neither the thread nor a usable connection.
        self._workers: dict[int, Worker] = {}
        self._listeners: dict[int, Listener] = {}
        self._worker()

    async def get(self, key: str) -> bytes | None:
        result: bytes | None = await self._do(Operation("get", self._key("get", key)))
        return result

    async def set(self, key: str, value: bytes) -> None:
        encoded = self._key("set", key)
        value_bytes(f"{self._name}.set", value)
        await self._do(Operation("set", encoded, value, size=_SMALL + len(value)))

    async def delete(self, key: str) -> None:
        await self._do(Operation("delete", self._key("delete", key), size=_SMALL))

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        encoded = self._key("append", key)
        listed = record_list(f"{self._name}.append", records)
        result: int = await self._do(
            Operation("append", encoded, listed, size=_SMALL + sum(map(len, listed)))
        )
        return result

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        encoded = self._key("read", key)
        result: list[bytes] = await self._do(
            Operation("read", encoded, count(f"{self._name}.read", after))
        )
        return result

    async def keys(self, prefix: str = "") -> list[str]:
        found: list[bytes] = await self._do(Operation("keys", text(f"{self._name}.keys", prefix)))
        return [key.decode("utf-8", "surrogatepass") for key in found]

    async def create(self, key: str, value: bytes) -> bool:
        encoded = self._key("create", key)
        value_bytes(f"{self._name}.create", value)
        result: bool = await self._do(Operation("create", encoded, value, size=_SMALL + len(value)))
        return result

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        call = f"{self._name}.keep_alive"
        operation = Operation(
            "keep_alive", owner_name(call, owner), span(call, seconds), first, size=_SMALL
        )
        result: bool = await self._do(operation)
        return result

    async def revoke(self, owner: str) -> None:
        await self._do(Operation("revoke", owner_name(f"{self._name}.revoke", owner), size=_SMALL))

    def revoke_soon(self, owner: str) -> None:
        """Revoke it without waiting. Closing the store waits for it."""
        if not self._closed:
            self._worker().post(
                Operation("revoke", owner_name(f"{self._name}.revoke", owner), size=_SMALL)
            )

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = ()) -> Claim | None:
        call = f"{self._name}.claim"
        encoded, owner_bytes = self._key("claim", key), owner_name(call, owner)
        size = _SMALL + checked_writes(call, writes)
        found: tuple[int, int] | None = await self._do(
            Operation("claim", encoded, owner_bytes, _encoded(writes), size=size)
        )
        return None if found is None else Claim(key, owner, *found)

    async def commit(
        self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep"
    ) -> None:
        size = _SMALL + checked_writes(f"{self._name}.commit", writes)
        listed = _encoded(writes)
        if claim is None:
            first = listed[0].key if listed else b""
            await self._do(Operation("commit", first, None, listed, then, size=size))
            return
        mine = (claim.owner.encode("utf-8", "surrogatepass"), claim.epoch)
        await self._do(
            Operation("commit", self._key("commit", claim.key), mine, listed, then, size=size)
        )

    async def holder(self, key: str) -> str | None:
        found: bytes | None = await self._do(Operation("holder", self._key("holder", key)))
        return None if found is None else found.decode("utf-8", "surrogatepass")

    async def orphans(self, prefix: str = "", limit: int | None = None) -> list[str]:
        call = f"{self._name}.orphans"
        found: list[bytes] = await self._do(
            Operation("orphans", text(call, prefix), limit_of(call, limit))
        )
        return [key.decode("utf-8", "surrogatepass") for key in found]

    async def prune(self, older_than: float | None = None) -> int:
        if older_than is not None:
            older_than = span(f"{self._name}.prune", older_than, name="older_than", zero=True)
        result: int = await self._do(SteppedOperation("prune", b"", older_than, size=_SMALL))
        return result

    async def run_entry(self, run_id: str) -> RunEntry | None:
        found: EncodedEntry | None = await self._do(
            Operation("run_entry", self._key("run_entry", run_id))
        )
        return None if found is None else _decoded(found)

    async def run_entries(self, query: RunQuery) -> list[RunEntry]:
        found: list[EncodedEntry] = await self._do(
            Operation(
                "run_entries",
                b"",
                _encoded_query(checked_query(f"{self._name}.run_entries", query)),
            )
        )
        return [_decoded(entry) for entry in found]

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> Watch:
        """Call `changed`, in any thread, soon after any write to one of these keys; see
        `Watches`.
        """
        encoded = [self._key("watch", key) for key in keys]
        if self._closed:
            msg = f"{self!r}.watch: the store is closed. Make another one."
            raise UsageError(msg)
        return self._listener().add(encoded, changed)

    async def aclose(self) -> None:
        self._closed = True
        ended = self._end_listening()
        if ended is not None:
            await asyncio.wrap_future(ended)
        await self._worker().aclose()

    def close(self) -> None:
        """Close the store from code without an event loop, as `aclose()` does."""
        self._closed = True
        ended = self._end_listening()
        if ended is not None:
            ended.result()
        self._worker().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _make_backend(self) -> Backend:
        """Return the backend of this process. It connects on first use."""
        raise NotImplementedError

    def _make_source(self, watchers: Watchers) -> Source:
        """Return the source of changes by this process and others."""
        raise NotImplementedError

    def _key(self, operation: str, key: str) -> bytes:
        return key_bytes(f"{self._name}.{operation}", key)

    def _do(self, operation: Operation) -> Coroutine[Any, Any, Any]:
        if self._closed:
            msg = f"{self!r}.{operation.name}: the store is closed. Make another one."
            raise UsageError(msg)
        if operation.size > self._largest:
            self._look_at_sizes(operation)
        return self._worker().do(operation)

    def _look_at_sizes(self, operation: Operation) -> None:
        """Refuse an operation that is too large for the server.

        Otherwise the server would close the connection, or return an obscure error.
        """
        size, most = max(_sizes(operation), default=0), self._largest
        what = "a value"
        if size <= most and operation.size > _MOST_AT_ONCE:
            size, most, what = (
                operation.size,
                _MOST_AT_ONCE,
                "all that is to be written in one step",
            )
        if size > most:
            key = operation.key.decode("utf-8", "surrogatepass")
            msg = (
                f"{self!r}.{operation.name} of {key!r}: {what} must have at most {most:,} bytes, "
                f"got {size:,}. Store it elsewhere, and its name here."
            )
            raise ValueRefused(msg)

    def _worker(self) -> Worker:
        process = os.getpid()
        worker = self._workers.get(process)
        if worker is None:
            made = Worker(repr(self), self._make_backend())
            worker = self._workers.setdefault(process, made)
            if worker is made:
                # A store that was not closed closes its connection when it is collected, or when
                # the interpreter exits.
                weakref.finalize(self, _abandon, worker, process)
        return worker

    def _listener(self) -> Listener:
        process = os.getpid()
        listener = self._listeners.get(process)
        if listener is None:
            made = Listener(repr(self), self._make_source)
            listener = self._listeners.setdefault(process, made)
            if listener is made:
                weakref.finalize(self, _abandon_listener, listener, process)
        return listener

    def _end_listening(self) -> Future[None] | None:
        listener = self._listeners.get(os.getpid())
        return None if listener is None else listener.close()


class EncodedWrite(NamedTuple):
    """One write of a batch, as backends take it."""

    kind: Literal["put", "remove", "append", "expect", "entry", "drop", "expect_entry"]
    key: bytes
    value: bytes | None = None
    records: tuple[bytes, ...] = ()
    after: int = 0
    seconds: float | None = None
    numbers: tuple[int, ...] = ()
    """For an entry, `records` are its `TEXTS` and its labels, and these its `NUMBERS`."""


class EncodedQuery(NamedTuple):
    """A `RunQuery`, as backends take it."""

    statuses: tuple[bytes, ...]
    agent: bytes | None
    session: bytes | None
    labels: tuple[bytes, ...]
    since: int
    until: int
    limit: int
    after: bytes | None


EncodedEntry: TypeAlias = tuple[bytes, Sequence[bytes], Sequence[int], Sequence[bytes], bytes]
"""Run, texts, numbers, labels, value."""


_FIRST, _LAST = 0, 2**62  # the range of all start times


def _encoded_query(query: RunQuery) -> EncodedQuery:
    since, until = (
        _FIRST if query.since is None else query.since,
        _LAST if query.until is None else query.until,
    )
    statuses, labels = tuple(map(_bytes, query.statuses)), tuple(map(_bytes, query.labels))
    agent, session, after = (
        None if text is None else _bytes(text) for text in (query.agent, query.session, query.after)
    )
    return EncodedQuery(statuses, agent, session, labels, since, until, query.limit, after)


def _decoded(entry: EncodedEntry) -> RunEntry:
    key, texts, numbers, labels, value = entry
    agent, session, status, claim, checkpoint, last_agent, error = map(_text, texts)
    started, *rest = numbers
    return RunEntry(
        _text(key),
        agent,
        session,
        status,
        started,
        tuple(map(_text, labels)),
        value,
        None,
        claim,
        checkpoint,
        last_agent,
        error,
        *rest,
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "surrogatepass")


def _encoded(writes: Sequence[Write]) -> list[EncodedWrite]:
    return [_encode(write) for write in writes]


def _encode(write: Write) -> EncodedWrite:
    key = write.key.encode("utf-8", "surrogatepass")
    if type(write) is Append:
        return EncodedWrite("append", key, None, tuple(write.records), write.after)
    if type(write) is Put:
        return EncodedWrite("put", key, write.value, (), 0, write.seconds)
    if type(write) is Expect:
        return EncodedWrite("expect", key, write.value)
    if type(write) is RunEntry:
        columns = tuple(map(_bytes, (*texts_of(write), *write.labels)))
        return EncodedWrite("entry", key, write.value, columns, 0, write.seconds, numbers_of(write))
    if type(write) is ExpectEntry:
        return EncodedWrite("expect_entry", key, None if write.entry is None else write.entry.value)
    return EncodedWrite("remove" if type(write) is Remove else "drop", key)


def _sizes(operation: Operation) -> Iterator[int]:
    for argument in operation.arguments:
        if isinstance(argument, bytes):
            yield len(argument)
        elif isinstance(argument, list | tuple):
            for part in argument:
                if isinstance(part, EncodedWrite):
                    yield from map(len, (part.value or b"", *part.records))
                elif isinstance(part, bytes):
                    yield len(part)


def _abandon(worker: Worker, process: int) -> None:
    if os.getpid() == process:
        worker.abandon()


def _abandon_listener(listener: Listener, process: int) -> None:
    if os.getpid() == process:
        listener.close()
