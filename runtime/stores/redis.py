"""The store in a Redis: for many machines, as durable as that Redis was set up to be.

Owns: the connection, how a batch is put on the wire, and what the errors of `redis` mean. What happens in the server is in `redis_scripts.py`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Final, Protocol

from ..errors import StoreError, UsageError
from .arguments import time_to_live
from .redis_scripts import BATCH, KEYS, PRUNE, PRUNED_AT_ONCE
from .store_thread import Operation, Trouble
from .threaded_store import DrivenStore

__all__ = ["RedisStore"]

_VERSION: Final = 1
_TIMEOUT: Final = 5.0  # seconds that the server may take to answer, or to be connected to
_PATIENCE: Final = 5.0
_LONGEST_PREFIX: Final = 200

# Most specific first: the name of the exception, whom it concerns, and what to do.
_ERRORS: Final = (
    ("AuthenticationError", Trouble.BATCH, "it refuses the user or the password of the url: correct it"),
    ("AuthorizationError", Trouble.BATCH, "the user of the url may not do that: see its ACL"),
    ("NoPermissionError", Trouble.BATCH, "the user of the url may not do that: see its ACL"),
    ("BusyLoadingError", Trouble.LOST, "it is still loading its data: try again when it has"),
    ("ReadOnlyError", Trouble.BATCH, "it is a replica, which cannot be written: give the url of the primary"),
    ("OutOfMemoryError", Trouble.OPERATION, "it has no memory left: prune the store, or raise maxmemory; nothing of this operation was written"),
    ("TimeoutError", Trouble.LOST, "it does not answer in time, and whether anything was written is not known: see that it is not overloaded"),
    ("ConnectionError", Trouble.LOST, "it cannot be reached: see that it runs, and that the url names its host and port"),
    ("ResponseError", Trouble.OPERATION, "it refused that: see its log"),
)

# The first word of what the server itself answers to an operation.
_ANSWERS: Final = {
    "WRONGTYPE": "something else is there under that key: give the store a prefix of its own",
    "OOM": "it has no memory left: prune the store, or raise maxmemory; nothing of this operation was written",
    "MISCONF": "it cannot save its data, and so takes no more: see its log",
    "READONLY": "it is a replica, which cannot be written: give the url of the primary",
    "NOPERM": "the user of the url may not do that: see its ACL",
    "NOREPLICAS": "it has too few replicas to take anything: see that they run",
}


class _Pipeline(Protocol):
    """What is used of the client's pipelines, whose commands have no types of their own."""

    def execute_command(self, *words: object) -> object: ...

    def execute(self, raise_on_error: bool = True) -> list[Any]: ...  # noqa: FBT001, FBT002 -- as the client has it


class _Client(Protocol):
    """What is used of the client. What it answers depends on the command."""

    def execute_command(self, *words: object) -> Any: ...

    def pipeline(self, *, transaction: bool) -> _Pipeline: ...

    def close(self) -> None: ...


class RedisStore(DrivenStore):
    """A store in a Redis, version 6 or newer; a single server or a primary, not a cluster.

    `prefix` stands before all that it writes: stores with different ones know nothing of each other. `ttl`: the seconds for which a key is there after it was
    last written; None: for ever. Leases go by the server's clock. When the server is away, what is asked waits for it for some seconds.
    """

    def __init__(self, url: str = "redis://localhost:6379/0", *, prefix: str = "understudy:", ttl: float | None = None) -> None:
        if not isinstance(url, str):
            msg = f"RedisStore: url is a {type(url).__name__}; give a text as redis://localhost:6379/0."
            raise UsageError(msg)
        if not isinstance(prefix, str) or len(prefix.encode("utf-8", "surrogatepass")) > _LONGEST_PREFIX:
            msg = f"RedisStore: prefix={prefix!r:.80} is no text of at most {_LONGEST_PREFIX} bytes."
            raise UsageError(msg)
        self._prefix = prefix
        self._ttl = time_to_live("RedisStore", ttl)
        self._url = url
        self._address = _without_secrets(url)
        _client(url).close()  # says at once what is wrong with the url
        super().__init__("RedisStore")

    def __repr__(self) -> str:
        return f"RedisStore({self._address!r}, prefix={self._prefix!r})"

    def _make_backend(self) -> _Server:
        return _Server(repr(self), self._url, self._prefix.encode("utf-8", "surrogatepass"), self._ttl)


class _Server:
    """The backend: a client with one connection, made when it is first needed."""

    patience = _PATIENCE

    def __init__(self, name: str, url: str, prefix: bytes, ttl: float | None) -> None:
        from hashlib import sha1  # noqa: PLC0415 -- as the client's package: only who uses it needs it

        self._name = name
        self._url = url
        self._prefix = prefix
        self._ttl = 0 if ttl is None else _milliseconds(ttl)
        self._writer = os.urandom(16).hex()
        self._client: _Client | None = None
        self._hash = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
        self._reads = {"get": self._get, "read": self._read, "holder": self._holder, "keys": self._keys}

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        client = self._open()
        prunes = [operation for operation in batch if operation.name == "prune"]
        reads = [operation for operation in batch if operation.name in self._reads]
        writes = [operation for operation in batch if operation.name not in self._reads and operation.name != "prune"]
        commands = [("EVALSHA", self._hash, 0, *self._words(writes, number))] if writes else []
        commands += [self._reads[operation.name](operation) for operation in reads]
        answers = self._send(client, commands)
        if writes:
            self._take(writes, answers.pop(0))
        for operation, answer in zip(reads, answers, strict=True):
            if isinstance(answer, Exception):
                self._fail(operation, answer)
            else:
                operation.result = answer
        for operation in prunes:
            operation.result = self._prune(client, operation.arguments[0])

    def judge(self, error: Exception) -> Trouble:
        return next((trouble for name, trouble, _advice in _ERRORS if _is(error, name)), Trouble.BATCH)

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        key = f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""
        advice = _ANSWERS.get(str(error).split(" ", 1)[0]) or next((advice for name, _trouble, advice in _ERRORS if _is(error, name)), None)
        if isinstance(error, _Newer):
            advice = "it was used by a newer version of understudy: update this one, or give the store another prefix"
        return StoreError(f"{self._name}.{operation.name}{key}: {str(error) or type(error).__name__}{f' ({advice})' if advice else ''}.")

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _open(self) -> _Client:
        if self._client is None:
            client = _client(self._url)
            try:
                _check_version(client, self._prefix + b"version")
            except BaseException:
                client.close()
                raise
            self._client = client
        return self._client

    def _send(self, client: _Client, commands: Sequence[tuple[object, ...]]) -> list[Any]:
        """Send all at once. What is wrong with the connection is raised; what is wrong with one of them is in the place of its answer."""
        if not commands:
            return []
        if len(commands) == 1:  # a pipeline of one takes longer
            try:
                answers = [client.execute_command(*commands[0])]
            except Exception as error:  # noqa: BLE001 -- looked at below
                answers = [error]
        else:
            pipeline = client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            answers = pipeline.execute(raise_on_error=False)
        for index, answer in enumerate(answers):
            if _is(answer, "NoScriptError"):  # the server was started again, or has never seen it
                answers[index] = client.execute_command("EVAL", BATCH, *commands[index][2:])
            elif isinstance(answer, Exception) and self.judge(answer) is not Trouble.OPERATION:
                raise answer
        return answers

    # ---- writes

    def _words(self, writes: Sequence[Operation], number: int) -> list[object]:
        words: list[object] = [self._prefix, self._writer, number, self._ttl]
        for operation in writes:
            arguments = operation.arguments
            match operation.name:
                case "append":
                    mine = [operation.key, *arguments[0]]
                case "renew":
                    keys, owner, seconds = arguments
                    mine = [owner, _milliseconds(seconds), *keys]
                case "acquire":
                    mine = [operation.key, arguments[0], _milliseconds(arguments[1])]
                case _:
                    mine = [operation.key, *arguments]
            words += (operation.name, len(mine), *mine)
        return words

    def _take(self, writes: Sequence[Operation], answer: Exception | Sequence[tuple[int, object]]) -> None:
        if isinstance(answer, Exception):
            raise answer
        for operation, (well, result) in zip(writes, answer, strict=True):
            if not well:
                self._fail(operation, _refusal(result))
            elif operation.name in ("acquire", "create"):
                operation.result = result == 1
            elif operation.name in ("append", "renew"):
                operation.result = result

    def _fail(self, operation: Operation, error: Exception) -> None:
        operation.error = self.explain(error, operation)
        operation.error.__cause__ = error

    # ---- reads

    def _get(self, operation: Operation) -> tuple[object, ...]:
        return ("GET", self._prefix + b"v:" + operation.key)

    def _read(self, operation: Operation) -> tuple[object, ...]:
        return ("LRANGE", self._prefix + b"j:" + operation.key, operation.arguments[0], -1)

    def _holder(self, operation: Operation) -> tuple[object, ...]:
        return ("GET", self._prefix + b"l:" + operation.key)

    def _keys(self, operation: Operation) -> tuple[object, ...]:
        prefix = operation.key
        behind = b"(" + prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"+"
        return ("EVAL", KEYS, 0, self._prefix, b"[" + prefix, behind)

    def _prune(self, client: _Client, older_than: float | None) -> int:
        age = -1 if older_than is None else int(older_than * 1000)
        gone = 0
        while True:
            more: int = client.execute_command("EVAL", PRUNE, 0, self._prefix, age, PRUNED_AT_ONCE)
            gone += more
            if more < PRUNED_AT_ONCE:
                return gone


class _Newer(Exception):
    """The data was written by a newer version."""


def _check_version(client: _Client, key: bytes) -> None:
    pipeline = client.pipeline(transaction=False)
    pipeline.execute_command("SETNX", key, _VERSION)
    pipeline.execute_command("GET", key)
    _made, version = pipeline.execute()
    if not version.isdigit() or int(version) > _VERSION:
        msg = f"its data is of version {version.decode(errors='replace')}, and this one knows up to {_VERSION}"
        raise _Newer(msg)


def _client(url: str) -> _Client:
    try:
        import redis  # noqa: PLC0415 -- an extra, which only who uses it needs
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError as error:
        msg = "RedisStore needs the package redis: pip install 'understudy[redis]'."
        raise UsageError(msg) from error
    try:
        # Nothing is sent again without the worker's knowing.
        return redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT, protocol=2)
    except Exception:  # noqa: BLE001 -- a text that is no url raises anything
        msg = "RedisStore: the url cannot be read (it is not shown, because it may hold a password); give one as redis://localhost:6379/0."
        raise UsageError(msg) from None


def _without_secrets(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 -- as the client's package: only who uses it needs it

    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "redis://…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


def _is(error: object, name: str) -> bool:
    """Whether it is of the client's class of that name, which is not imported for that."""
    return isinstance(error, Exception) and any(cls.__name__ == name and cls.__module__.startswith("redis.") for cls in type(error).__mro__)


def _refusal(text: object) -> Exception:
    from redis.exceptions import ResponseError  # noqa: PLC0415

    return ResponseError(text.decode(errors="replace") if isinstance(text, bytes) else str(text))
