"""The store in a Redis: for many machines, as durable as that Redis was set up to be.

Owns: the connection, what is asked of the server in which order, and what the errors of `redis` mean. What happens in the server is in `redis_scripts.py`,
`redis_searches.py` and `redis_layout.py`; how it is put on the wire, in `redis_wire.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, Protocol, Self

from ...environment import environment
from ...errors import StoreError, UsageError
from ..arguments import time_to_live
from ..store_thread import Operation, Trouble
from ..threaded_store import DrivenStore, EncodedEntry, EncodedQuery
from ..watching import Watchers
from .entries import FIND_ENTRY, LIST_ENTRIES, PRUNE_ENTRIES
from .layout import Newer, prepare
from .listening import Subscriptions
from .scripts import BATCH
from .searches import AT_ONCE, HOLDER, KEYS, ORPHANS, PRUNE, PRUNE_CLAIMS, PRUNE_OWNERS
from .wire import FAILED, REFUSED, answer_of, behind, milliseconds, refusal, words_of

__all__ = ["RedisStore"]

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

    `prefix` stands before all that it writes: stores with different ones know nothing of each other, also if one begins with the other. `ttl`: the seconds for
    which a key is there after it was last written; None: for ever. When the server is away, what is asked waits for it for some seconds.

    Owners live by the server's clock. Nothing in a Redis proves that a process has ended: what a dead one had is free when its time is over, or when it is
    revoked. A server that was emptied, or has lost its newest writes, does not know the owner, the claim or the journal's position that a write names, and
    refuses it. `maxmemory-policy` has to be `noeviction`: what the server throws away by itself is lost. One that has no room left takes an operation as a
    whole or not at all, and lets owners live on.
    """

    def __init__(self, url: str = "redis://localhost:6379/0", *, prefix: str = "understudy:", ttl: float | None = None) -> None:
        if not isinstance(url, str):
            msg = f"RedisStore: url is a {type(url).__name__}; give a text as redis://localhost:6379/0."
            raise UsageError(msg)
        if not isinstance(prefix, str) or len(prefix.encode("utf-8", "surrogatepass")) > _LONGEST_PREFIX or "\0" in prefix:
            msg = f"RedisStore: prefix={prefix!r:.80} is no text of at most {_LONGEST_PREFIX} bytes, none of them NUL."
            raise UsageError(msg)
        self._prefix = prefix
        self._ttl = time_to_live("RedisStore", ttl)
        self._url = url
        self._address = _without_secrets(url)
        _client(url).close()  # says at once what is wrong with the url
        super().__init__("RedisStore")

    @classmethod
    def from_env(cls, *, prefix: str = "understudy:", ttl: float | None = None) -> Self:
        """The store in the Redis that REDIS_ADDR names: `host:port`, or a url; without it, the one at localhost:6379.

        The variable may stand in a `.env` file in the current folder or one of its parents.
        """
        address = environment().get("REDIS_ADDR", "").strip() or "localhost:6379"
        if "://" not in address:
            address = f"redis://{'localhost' if address.startswith(':') else ''}{address}/0"
        return cls(address, prefix=prefix, ttl=ttl)

    def __repr__(self) -> str:
        return f"RedisStore({self._address!r}, prefix={self._prefix!r})"

    def _make_backend(self) -> _Server:
        return _Server(repr(self), self._url, self._prefix.encode("utf-8", "surrogatepass"), self._ttl)

    def _make_source(self, watchers: Watchers) -> Subscriptions:
        url = self._url
        return Subscriptions(watchers, lambda: _client(url), self._prefix.encode("utf-8", "surrogatepass") + b"\0")


class _Server:
    """The backend: a client with one connection, made when it is first needed."""

    patience = _PATIENCE

    def __init__(self, name: str, url: str, prefix: bytes, ttl: float | None) -> None:
        from hashlib import sha1  # noqa: PLC0415 -- as the client's package: only who uses it needs it

        self._name = name
        self._url = url
        self._prefix = prefix
        self._root = prefix + b"\0"
        self._ttl = 0 if ttl is None else milliseconds(ttl)
        self._writer = os.urandom(16).hex()
        self._epoch = 0  # the largest that was given here: a server that has lost it, and whose clock is behind, gives a larger one none the less
        self._client: _Client | None = None
        self._hash = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
        self._reads = {"get": self._get, "read": self._read, "holder": self._holder, "keys": self._keys}
        self._searches = {"orphans": self._orphans, "prune": self._prune, "run_entry": self._run_entry, "run_entries": self._run_entries}

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        client = self._open()
        searches = [operation for operation in batch if operation.name in self._searches]
        reads = [operation for operation in batch if operation.name in self._reads]
        writes = [operation for operation in batch if operation.name not in self._reads and operation.name not in self._searches]
        commands = [("EVALSHA", self._hash, 0, *self._words(writes, number))] if writes else []
        commands += [self._reads[operation.name](operation) for operation in reads]
        answers = self._send(client, commands)
        if writes and _says(answers[0], "UNREADY"):
            prepare(client, self._prefix)
            answers[:1] = self._send(client, commands[:1])
        if writes:
            self._take(writes, answers.pop(0))
        for operation, answer in zip(reads, answers, strict=True):
            if isinstance(answer, Exception):
                self._fail(operation, answer)
            else:
                operation.result = answer
        for operation in searches:
            operation.result = self._searches[operation.name](client, operation)

    def judge(self, error: Exception) -> Trouble:
        return next((trouble for name, trouble, _advice in _ERRORS if _is(error, name)), Trouble.BATCH)

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        key = f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""
        advice = _ANSWERS.get(str(error).split(" ", 1)[0]) or next((advice for name, _trouble, advice in _ERRORS if _is(error, name)), None)
        if isinstance(error, Newer):
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
                prepare(client, self._prefix)
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
            answers = [_answer(client, *commands[0])]
        else:
            pipeline = client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            answers = pipeline.execute(raise_on_error=False)
        for index, answer in enumerate(answers):
            if _is(answer, "NoScriptError"):  # the server was started again, or has never seen it
                answers[index] = _answer(client, "EVAL", BATCH, *commands[index][2:])
            if isinstance(answers[index], Exception) and self.judge(answers[index]) is not Trouble.OPERATION:
                raise answers[index]
        return answers

    # ---- writes

    def _words(self, writes: Sequence[Operation], number: int) -> list[object]:
        words: list[object] = [self._prefix, self._writer, number, self._ttl]
        for operation in writes:
            words += words_of(operation, self._epoch)
        return words

    def _take(self, writes: Sequence[Operation], answer: Exception | Sequence[tuple[int, Any]]) -> None:
        if isinstance(answer, Exception):
            raise answer
        for operation, (how, found) in zip(writes, answer, strict=True):
            if how == FAILED:
                self._fail(operation, _refusal(found))
            elif how == REFUSED:
                operation.error = refusal(found)
            else:
                operation.result = answer_of(operation.name, found)
                if operation.name == "claim" and found:
                    self._epoch = max(self._epoch, found[0])

    def _fail(self, operation: Operation, error: Exception) -> None:
        operation.error = self.explain(error, operation)
        operation.error.__cause__ = error

    # ---- reads

    def _get(self, operation: Operation) -> tuple[object, ...]:
        return ("GET", self._root + b"v:" + operation.key)

    def _read(self, operation: Operation) -> tuple[object, ...]:
        return ("LRANGE", self._root + b"j:" + operation.key, operation.arguments[0], -1)

    def _holder(self, operation: Operation) -> tuple[object, ...]:
        return ("EVAL", HOLDER, 0, self._prefix, operation.key)

    def _keys(self, operation: Operation) -> tuple[object, ...]:
        return ("EVAL", KEYS, 0, self._prefix, b"[" + operation.key, behind(operation.key))

    # ---- searches, in steps

    def _orphans(self, client: _Client, operation: Operation) -> list[bytes]:
        prefix, limit = operation.key, operation.arguments[0]
        found: list[tuple[int, bytes]] = []
        fresh, start = 0, b"[" + prefix
        # Keys come sorted, and none has fewer attempts than none: with as many of these as are wanted, no later one is.
        while start != b"(" and (limit is None or fresh < limit):
            last, step = client.execute_command("EVAL", ORPHANS, 0, self._prefix, start, behind(prefix), AT_ONCE)
            more = list(zip(step[1::2], step[::2], strict=True))
            fresh += sum(1 for attempts, _key in more if not attempts)
            found += more
            start = b"(" + last
        found.sort()
        return [key for _attempts, key in found[:limit]]

    def _run_entry(self, client: _Client, operation: Operation) -> EncodedEntry | None:
        found = client.execute_command("EVAL", FIND_ENTRY, 0, self._prefix, operation.key)
        return None if found is None else _entry(found)

    def _run_entries(self, client: _Client, operation: Operation) -> list[EncodedEntry]:
        query: EncodedQuery = operation.arguments[0]
        place, last = b"", b""
        if query.after is not None:
            behind = client.execute_command("EVAL", FIND_ENTRY, 0, self._prefix, query.after)
            if behind is None:
                return []
            place, last = behind[4], query.after
        found = [entry for status in query.statuses for entry in self._of_status(client, query, status, place, last)]
        found.sort(key=lambda entry: (entry[4], entry[0]), reverse=True)
        return found[: query.limit]

    def _of_status(self, client: _Client, query: EncodedQuery, status: bytes, place: bytes, last: bytes) -> list[EncodedEntry]:
        found: dict[bytes, EncodedEntry] = {}
        who, belongs = (b"0" if text is None else b"1" + text for text in (query.agent, query.session))
        wanted = (status, who, belongs, query.since, query.until)
        most = min(AT_ONCE, query.limit + 1)
        while len(found) < query.limit:
            place, last, step = client.execute_command("EVAL", LIST_ENTRIES, 0, self._prefix, *wanted, most, place, last, *query.labels)
            found |= {entry[0]: _entry(entry) for entry in step}
            if not last:
                break
            most = AT_ONCE
        return list(found.values())

    def _prune(self, client: _Client, operation: Operation) -> int:
        age = -1 if operation.arguments[0] is None else int(operation.arguments[0] * 1000)
        gone, more = 0, AT_ONCE
        while more == AT_ONCE:
            more = client.execute_command("EVAL", PRUNE, 0, self._prefix, age, AT_ONCE)
            gone += more
        more = AT_ONCE
        while more == AT_ONCE:
            more = client.execute_command("EVAL", PRUNE_ENTRIES, 0, self._prefix, age, AT_ONCE)
        start = b"-"
        while start != b"(":
            last, more = client.execute_command("EVAL", PRUNE_CLAIMS, 0, self._prefix, start, AT_ONCE)
            gone += more
            start = b"(" + last
        place = 0
        while place >= 0:
            place = client.execute_command("EVAL", PRUNE_OWNERS, 0, self._prefix, place, AT_ONCE)
        return gone


def _entry(found: Sequence[Any]) -> EncodedEntry:
    run, agent, session, status, started, labels, value = found
    return run, agent, session, status, int(started), labels, value


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


def _is(error: object, name: str) -> bool:
    """Whether it is of the client's class of that name, which is not imported for that."""
    return isinstance(error, Exception) and any(cls.__name__ == name and cls.__module__.startswith("redis.") for cls in type(error).__mro__)


def _answer(client: _Client, *words: object) -> Any:
    try:
        return client.execute_command(*words)
    except Exception as error:  # noqa: BLE001 -- the caller looks at what it is
        return error


def _says(answer: object, word: str) -> bool:
    return isinstance(answer, Exception) and str(answer).startswith(word)


def _refusal(text: object) -> Exception:
    from redis.exceptions import ResponseError  # noqa: PLC0415

    return ResponseError(text.decode(errors="replace") if isinstance(text, bytes) else str(text))
