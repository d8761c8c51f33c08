"""The Redis store: for many machines, as durable as that Redis is configured to be.

This module has the connection, and the order of requests. `scripts.py`, `searches.py`, `entries.py`
and `layout.py` have the scripts, and `wire.py` the encoding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, Self

from ...environment import environment
from ...errors import StoreError, UsageError
from ..arguments import is_plain_function, time_to_live
from ..risks import Risks
from ..run_entries import TEXTS
from ..store_thread import Operation, SteppedOperation
from ..threaded_store import DrivenStore, EncodedEntry, EncodedQuery
from ..troubles import REDIS, Entry, Newer, Trouble, Unusable, named
from ..watching import Watchers
from .entries import FIND_ENTRY, LIST_ENTRIES, PRUNE_ENTRIES
from .layout import prepare
from .listening import Subscriptions, sockets_of
from .risks import risks_of
from .scripts import BATCH
from .searches import AT_ONCE, HOLDER, KEYS, ORPHANS, PRUNE, PRUNE_CLAIMS, PRUNE_OWNERS
from .wire import FAILED, REFUSED, answer_of, behind, milliseconds, refusal, words_of

__all__ = ["ANSWERED_SECONDS", "RedisStore"]

_TIMEOUT: Final = 5.0  # seconds for the server to answer or to accept a connection
_PATIENCE: Final = 5.0
_SENTINEL: Final = "redis+sentinel://"
_SENTINEL_PORT: Final = 26379
ANSWERED_SECONDS: Final = 2 * (_TIMEOUT + _TIMEOUT)
"""The time within which each caller has an answer: two attempts, each with a connect."""
_LONGEST_PREFIX: Final = 200

# Errors whose class the client derives from the first word of the server's answer, which it
# removes.
_CLASSES: Final = {
    "AuthenticationError": "WRONGPASS",
    "AuthenticationWrongNumberOfArgsError": "WRONGPASS",
    "AuthorizationError": "NOPERM",
    "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
}
_WORDS: Final = 4  # leading words to search: older servers name the script first
_LARGEST: Final = 512 * 1024 * 1024  # bytes of a value, unless the server is configured for more


class _Pipeline(Protocol):
    """The used part of the client's pipelines, whose commands have no types."""

    def execute_command(self, *words: object) -> object: ...

    def execute(self, raise_on_error: bool = True) -> list[Any]: ...  # noqa: FBT001, FBT002 -- as the client defines it


class _Client(Protocol):
    """The used part of the client. The type of an answer depends on the command."""

    def execute_command(self, *words: object) -> Any: ...

    def pipeline(self, *, transaction: bool) -> _Pipeline: ...

    def close(self) -> None: ...


class RedisStore(DrivenStore):
    """A store in Redis, version 6 or newer; a single server or a primary, not a cluster.

    `url`: for example `redis://user:password@host:6379/0`, also `rediss` and `unix`;
    `redis+sentinel://user:password@host:26379,host:26379/service/0` asks sentinels for the primary,
    whose own login is `?sentinel_username=…&sentinel_password=…`. A function that returns a url is
    called for each connection, for credentials that change.

    `prefix` starts all keys: stores with different prefixes are independent, even if one prefix
    starts with the other. `ttl`: the lifetime of a key in seconds, since it was last written; None:
    forever. When the server is unavailable, operations wait for it for some seconds.

    Owners are timed by the server's clock. Redis cannot prove that a process has ended: the claims
    of a dead owner are free when it expires or is revoked. A server that was emptied, or has lost
    its newest writes, does not know the owner, the claim or the journal's position of a write, and
    refuses it. `maxmemory-policy` must be `noeviction`: evicted keys are lost. A full server
    accepts an operation as a whole or not at all, and still renews owners.
    """

    _largest = _LARGEST

    def __init__(
        self,
        url: str | Callable[[], str] = "redis://localhost:6379/0",
        *,
        prefix: str = "offbook:",
        ttl: float | None = None,
    ) -> None:
        if not isinstance(url, str) and not is_plain_function(url):
            msg = (
                "RedisStore: url must be a string such as redis://localhost:6379/0, or a "
                f"function (`def`) that returns one, got a {type(url).__name__}."
            )
            raise UsageError(msg)
        if (
            not isinstance(prefix, str)
            or len(prefix.encode("utf-8", "surrogatepass")) > _LONGEST_PREFIX
            or "\0" in prefix
        ):
            msg = (
                f"RedisStore: prefix must be a string of at most {_LONGEST_PREFIX} bytes "
                f"without NUL, got {prefix!r:.80}."
            )
            raise UsageError(msg)
        self._prefix = prefix
        self._ttl = time_to_live("RedisStore", ttl)
        self._url = url
        self._address = _without_secrets(url)
        if isinstance(url, str):
            _client(url).close()  # validates the url
        super().__init__("RedisStore")

    @classmethod
    def from_env(cls, *, prefix: str = "offbook:", ttl: float | None = None) -> Self:
        """Make a store in the Redis that REDIS_ADDR names: `host:port`, or a url; by default
        localhost:6379.

        The variable may be set in a `.env` file in the current folder or one of its parents.
        """
        address = environment().get("REDIS_ADDR", "").strip() or "localhost:6379"
        if "://" not in address:
            address = f"redis://{'localhost' if address.startswith(':') else ''}{address}/0"
        return cls(address, prefix=prefix, ttl=ttl)

    def __repr__(self) -> str:
        return f"RedisStore({self._address!r}, prefix={self._prefix!r})"

    def _make_backend(self) -> _Server:
        return _Server(
            repr(self), self._url, self._prefix.encode("utf-8", "surrogatepass"), self._ttl
        )

    def _make_source(self, watchers: Watchers) -> Subscriptions:
        url = self._url
        return Subscriptions(
            watchers, lambda: _client(url), self._prefix.encode("utf-8", "surrogatepass") + b"\0"
        )


class _Server:
    """The backend: a client with one connection, made on first use."""

    patience = _PATIENCE
    closes_at_fork = False

    def __init__(
        self, name: str, url: str | Callable[[], str], prefix: bytes, ttl: float | None
    ) -> None:
        from hashlib import sha1  # noqa: PLC0415 -- as the client's package: only who uses it needs it

        self._name = name
        self._url = url
        self._prefix = prefix
        self._root = prefix + b"\0"
        self._ttl = 0 if ttl is None else milliseconds(ttl)
        self._writer = os.urandom(16).hex()
        # The largest epoch received here: a server that has lost it, and whose clock is behind,
        # still returns a larger one.
        self._epoch = 0
        self._client: _Client | None = None
        self._risks = Risks()
        self._hash = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
        self._reads = {
            "get": self._get,
            "read": self._read,
            "holder": self._holder,
            "keys": self._keys,
            "run_entry": self._run_entry,
        }
        self._searches: dict[str, Callable[[_Client, Any], object]] = {
            "orphans": self._orphans,
            "prune": self._prune,
            "run_entries": self._run_entries,
        }

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        try:
            self._do_all(self._open(), batch, number)
        except Exception as error:
            if self.judge(error) is Trouble.WAITED_FOR:
                self.close()  # the address may lead to another server by now
            raise

    def _do_all(self, client: _Client, batch: Sequence[Operation], number: int) -> None:
        searches = [operation for operation in batch if operation.name in self._searches]
        reads = [operation for operation in batch if operation.name in self._reads]
        writes = [
            operation
            for operation in batch
            if operation.name not in self._reads and operation.name not in self._searches
        ]
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
            elif operation.name == "run_entry":
                operation.result = None if answer is None else _entry(answer)
            else:
                operation.result = answer
        for operation in searches:  # each is alone in its batch
            operation.result = self._searches[operation.name](client, operation)

    def judge(self, error: Exception) -> Trouble:
        known = _known(error)
        return Trouble.REFUSED if known is None else known.trouble

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        key = f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""
        known = _known(error)
        advice = None if known is None else known.advice
        if isinstance(error, Newer):
            advice = "a newer version of offbook wrote it: update offbook, or pass another prefix="
        return StoreError(
            f"{self._name}.{operation.name}{key}: "
            f"{str(error) or type(error).__name__}{f' ({advice})' if advice else ''}."
        )

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            _close(client)

    def before_fork(self) -> None:
        """Do nothing: the connection stays as it is."""

    def descriptors(self) -> list[int]:
        return sockets_of(self._client)

    def _open(self) -> _Client:
        if self._client is None:
            client = _client(self._url)
            try:
                _see_what_it_is(client)
                prepare(client, self._prefix)
                self._risks.tell(self._name, risks_of(client))
            except BaseException:
                _close(client)
                raise
            self._client = client
        return self._client

    def _send(self, client: _Client, commands: Sequence[tuple[object, ...]]) -> list[Any]:
        """Send all commands at once.

        Connection errors are raised; the error of one command takes the place of its answer.
        """
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
            if _is(answer, "NoScriptError"):  # the server was restarted, or has never seen it
                answers[index] = _answer(client, "EVAL", BATCH, *commands[index][2:])
            found = answers[index]
            # A failed read has its own error: the writes before it have been done.
            if isinstance(found, Exception) and self.judge(found) is Trouble.WAITED_FOR:
                raise found
        return answers

    # ---- writes

    def _words(self, writes: Sequence[Operation], number: int) -> list[object]:
        words: list[object] = [self._prefix, self._writer, number, self._ttl]
        for operation in writes:
            words += words_of(operation, self._epoch)
        return words

    def _take(
        self, writes: Sequence[Operation], answer: Exception | Sequence[tuple[int, Any]]
    ) -> None:
        if isinstance(answer, Exception):
            raise answer
        for how, found in answer:
            # The server accepts no writes now, and so has done none of these.
            if how == FAILED and self.judge(error := _refusal(found)) is Trouble.WAITED_FOR:
                raise error
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

    def _run_entry(self, operation: Operation) -> tuple[object, ...]:
        return ("EVAL", FIND_ENTRY, 0, self._prefix, operation.key)

    # ---- searches, in steps

    def _orphans(self, client: _Client, operation: Operation) -> list[bytes]:
        prefix, limit = operation.key, operation.arguments[0]
        found: list[tuple[int, bytes]] = []
        for index in ("runs:claims", "keys"):
            fresh, start = 0, b"[" + prefix
            # Keys come sorted, and zero attempts is the minimum: with enough of those, no later
            # key of this index can rank before them.
            while start != b"(" and (limit is None or fresh < limit):
                last, step = client.execute_command(
                    "EVAL", ORPHANS, 0, self._prefix, start, behind(prefix), AT_ONCE, index
                )
                more = list(zip(step[1::2], step[::2], strict=True))
                fresh += sum(1 for attempts, _key in more if not attempts)
                found += more
                start = b"(" + last
        found.sort()
        return [key for _attempts, key in found[:limit]]

    def _run_entries(self, client: _Client, operation: Operation) -> list[EncodedEntry]:
        query: EncodedQuery = operation.arguments[0]
        place, last = b"", b""
        if query.after is not None:
            behind = client.execute_command("EVAL", FIND_ENTRY, 0, self._prefix, query.after)
            if behind is None:
                return []
            place, last = behind[_STARTED], query.after
        found = [
            entry
            for status in query.statuses
            for entry in self._of_status(client, query, status, place, last)
        ]
        found.sort(key=lambda entry: (entry[2][0], entry[0]), reverse=True)
        return found[: query.limit]

    def _of_status(
        self, client: _Client, query: EncodedQuery, status: bytes, place: bytes, last: bytes
    ) -> list[EncodedEntry]:
        found: dict[bytes, EncodedEntry] = {}
        who, belongs = (
            b"0" if text is None else b"1" + text for text in (query.agent, query.session)
        )
        wanted = (status, who, belongs, query.since, query.until)
        most = min(AT_ONCE, query.limit + 1)
        while len(found) < query.limit:
            place, last, step = client.execute_command(
                "EVAL", LIST_ENTRIES, 0, self._prefix, *wanted, most, place, last, *query.labels
            )
            found |= {entry[0]: _entry(entry) for entry in step}
            if not last:
                break
            most = AT_ONCE
        return list(found.values())

    def _prune(self, client: _Client, operation: SteppedOperation) -> int:
        """Do one step: one script."""
        age = -1 if operation.arguments[0] is None else int(operation.arguments[0] * 1000)
        stage, place, gone = operation.progress or ("keys", b"-", 0)
        if stage == "keys":
            more = client.execute_command("EVAL", PRUNE, 0, self._prefix, age, AT_ONCE)
            gone += more
            stage = stage if more == AT_ONCE else "runs"
        elif stage == "runs":
            more = client.execute_command("EVAL", PRUNE_ENTRIES, 0, self._prefix, age, AT_ONCE)
            stage = stage if more == AT_ONCE else "claims"
        elif stage == "claims":
            last, more = client.execute_command(
                "EVAL", PRUNE_CLAIMS, 0, self._prefix, place, AT_ONCE
            )
            gone += more
            stage, place = (stage, b"(" + last) if last else ("owners", 0)
        else:
            place = client.execute_command("EVAL", PRUNE_OWNERS, 0, self._prefix, place, AT_ONCE)
            stage = stage if place >= 0 else ""
        operation.progress, operation.is_done = (stage, place, gone), not stage
        count: int = gone
        return count


def _entry(found: Sequence[Any]) -> EncodedEntry:
    run, *columns, labels, value = found
    return (
        run,
        columns[: len(TEXTS)],
        [int(column) for column in columns[len(TEXTS) :]],
        labels,
        value,
    )


_STARTED: Final = 1 + len(TEXTS)  # the place of that column in an answer


def _see_what_it_is(client: _Client) -> None:
    """Refuse a cluster: data that is written in one step is spread over several of its servers."""
    said = _answer(client, "INFO", "cluster")
    if isinstance(said, dict) and str(said.get("cluster_enabled")) == "1":
        msg = (
            "it is a Redis Cluster, which cannot write several keys in one step. Pass the "
            "url of a single server or a primary"
        )
        raise Unusable(msg)


def _client(url: str | Callable[[], str]) -> _Client:
    try:
        import redis  # noqa: PLC0415 -- an extra, which only who uses it needs
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError as error:
        msg = "RedisStore needs the package redis: pip install 'offbook[redis]'."
        raise UsageError(msg) from error
    text = url if isinstance(url, str) else url()
    # The client must not retry without the worker's knowledge.
    options: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": _TIMEOUT,
        "socket_connect_timeout": _TIMEOUT,
        "protocol": 2,
    }
    try:
        client = (
            _found_by_sentinel(text, options)
            if text.startswith(_SENTINEL)
            else redis.Redis.from_url(text, **options)
        )
        decodes = client.connection_pool.connection_kwargs.get("decode_responses")
    except Exception:  # noqa: BLE001 -- an invalid url raises anything
        msg = (
            "RedisStore: url must have the form redis://localhost:6379/0. The one passed "
            "is not shown, because it may contain a password."
        )
        raise UsageError(msg) from None
    if decodes:
        _close(client)
        msg = (
            "RedisStore: the url must not set decode_responses, because values are bytes. Remove "
            "it from the url."
        )
        raise UsageError(msg)
    return client


def _close(client: Any) -> None:
    """Close its connections, and those to sentinels, which it leaves open."""
    client.close()
    for sentinel in getattr(
        getattr(client.connection_pool, "sentinel_manager", None), "sentinels", ()
    ):
        sentinel.close()


def _found_by_sentinel(url: str, options: dict[str, Any]) -> Any:
    """Return a client of the primary that the sentinels name at each connection."""
    from urllib.parse import parse_qsl, unquote, urlsplit  # noqa: PLC0415

    from redis.sentinel import Sentinel  # noqa: PLC0415

    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    addresses = [
        (
            host.rpartition(":")[0] or host,
            int(host.rpartition(":")[2]) if ":" in host else _SENTINEL_PORT,
        )
        for host in hosts.split(",")
    ]
    service, _, number = parts.path.strip("/").partition("/")
    asked = dict(parse_qsl(parts.query))
    of_sentinel = {
        name.removeprefix("sentinel_"): asked.pop(name)
        for name in ("sentinel_username", "sentinel_password")
        if name in asked
    }
    if asked or not service:
        raise ValueError(url)
    sentinel: Any = Sentinel(addresses, sentinel_kwargs=of_sentinel | options, **options)  # type: ignore[no-untyped-call]  # the client has no types here
    given = {
        "username": unquote(user) or None,
        "password": unquote(password) or None,
        "db": int(number or 0),
    }
    return sentinel.master_for(unquote(service), **given)


def _without_secrets(url: str | Callable[[], str]) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 -- as the client's package: only who uses it needs it

    if not isinstance(url, str):
        return f"url by {getattr(url, '__qualname__', type(url).__name__)}"
    if url.startswith(_SENTINEL):
        parts = urlsplit(url)
        return f"{_SENTINEL}{parts.netloc.rpartition('@')[2]}{parts.path}"
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "redis://…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _known(error: Exception) -> Entry | None:
    """Return the table's row for an error, by the server's message or the client's class."""
    if not type(error).__module__.startswith("redis."):
        return None
    said = [word.lstrip("-") for word in str(error).split(" ", _WORDS)[:_WORDS]]
    names = [
        *(_CLASSES.get(cls.__name__, "") for cls in type(error).__mro__),
        *said,
        *(cls.__name__ for cls in type(error).__mro__),
    ]
    return next((entry for name in names if (entry := named(REDIS, name)) is not None), None)


def _is(error: object, name: str) -> bool:
    """Return whether its class has that name in the client, which is not imported for this."""
    return isinstance(error, Exception) and any(
        cls.__name__ == name and cls.__module__.startswith("redis.") for cls in type(error).__mro__
    )


def _answer(client: _Client, *words: object) -> Any:
    try:
        return client.execute_command(*words)
    except Exception as error:  # noqa: BLE001 -- the caller checks it
        return error


def _says(answer: object, word: str) -> bool:
    return isinstance(answer, Exception) and str(answer).startswith(word)


def _refusal(text: object) -> Exception:
    from redis.exceptions import ResponseError  # noqa: PLC0415

    return ResponseError(text.decode(errors="replace") if isinstance(text, bytes) else str(text))
