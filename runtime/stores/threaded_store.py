"""What the stores with a client that blocks have in common: their methods, as operations for the worker.

Owns: the methods, the worker of this process, and closing. It must never look into what a backend does.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from ..errors import UsageError
from .arguments import count, key_bytes, key_list, owner_name, record_list, span, text, value_bytes
from .store_thread import Backend, Operation, Worker

__all__ = ["DrivenStore"]

_SMALL: Final = 64  # bytes that an operation takes beside what is written


class DrivenStore:
    """The base of the stores that have a worker."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._closed = False
        # One for each process: a forked one has neither the thread nor, for its own use, the connection.
        self._workers: dict[int, Worker] = {}
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
        result: int = await self._do(Operation("append", encoded, listed, size=_SMALL + sum(map(len, listed))))
        return result

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        encoded = self._key("read", key)
        result: list[bytes] = await self._do(Operation("read", encoded, count(f"{self._name}.read", after)))
        return result

    async def keys(self, prefix: str = "") -> list[str]:
        found: list[bytes] = await self._do(Operation("keys", text(f"{self._name}.keys", prefix)))
        return [key.decode("utf-8", "surrogatepass") for key in found]

    async def create(self, key: str, value: bytes) -> bool:
        encoded = self._key("create", key)
        value_bytes(f"{self._name}.create", value)
        result: bool = await self._do(Operation("create", encoded, value, size=_SMALL + len(value)))
        return result

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        encoded = self._key("acquire", key)
        call = f"{self._name}.acquire"
        result: bool = await self._do(Operation("acquire", encoded, owner_name(call, owner), span(call, seconds), size=_SMALL))
        return result

    async def renew(self, keys: Sequence[str], owner: str, seconds: float) -> list[str]:
        call = f"{self._name}.renew"
        listed = key_list(call, keys)
        by_bytes = {key.encode("utf-8", "surrogatepass"): key for key in listed}
        owner_bytes, seconds = owner_name(call, owner), span(call, seconds)
        if not listed:
            return []
        own: list[bytes] = await self._do(Operation("renew", min(by_bytes), list(by_bytes), owner_bytes, seconds, size=_SMALL * len(by_bytes)))
        return [by_bytes[key] for key in own]

    async def release(self, key: str, owner: str) -> None:
        encoded = self._key("release", key)
        await self._do(Operation("release", encoded, owner_name(f"{self._name}.release", owner), size=_SMALL))

    async def holder(self, key: str) -> str | None:
        found: bytes | None = await self._do(Operation("holder", self._key("holder", key)))
        return None if found is None else found.decode("utf-8", "surrogatepass")

    async def prune(self, older_than: float | None = None) -> int:
        if older_than is not None:
            older_than = span(f"{self._name}.prune", older_than, name="older_than", zero=True)
        result: int = await self._do(Operation("prune", b"", older_than, size=_SMALL))
        return result

    async def aclose(self) -> None:
        self._closed = True
        await self._worker().aclose()

    def close(self) -> None:
        """As `aclose()`, for code without a loop."""
        self._closed = True
        self._worker().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _make_backend(self) -> Backend:
        """What does the operations in this process. It connects when there is something to do."""
        raise NotImplementedError

    def _key(self, operation: str, key: str) -> bytes:
        return key_bytes(f"{self._name}.{operation}", key)

    async def _do(self, operation: Operation) -> Any:
        if self._closed:
            msg = f"{self!r}.{operation.name}: the store is closed; make another one."
            raise UsageError(msg)
        return await self._worker().do(operation)

    def _worker(self) -> Worker:
        process = os.getpid()
        worker = self._workers.get(process)
        if worker is None:
            for inherited in self._workers.values():
                _keep_for_ever(inherited)
            made = Worker(repr(self), self._make_backend())
            worker = self._workers.setdefault(process, made)
            if worker is made:
                # A store that nobody has closed lets go of its connection when it is collected, or when the interpreter ends.
                weakref.finalize(self, _abandon, worker, process)
        return worker


def _abandon(worker: Worker, process: int) -> None:
    if os.getpid() == process:
        worker.abandon()


def _keep_for_ever(worker: Worker) -> None:
    """Never let the connection of another process be closed here: for some backends that would end what the other one is doing."""
    import ctypes  # noqa: PLC0415 -- only a forked process needs it

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(worker))
