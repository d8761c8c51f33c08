"""Encryption at rest: a wrapper that encrypts values and journals before another store receives
them.

Each value and record is encrypted by AES-256 in SIV mode, bound to the key under which it is
stored: data that is moved to another key cannot be read. The encryption is deterministic, because a
store compares values: the same value under the same key has the same bytes. Everything that a store
must find and compare remains in plain text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from ..codec.packing import pack, unpack
from ..errors import StoreError, UsageError
from ..unpicklable import Unpicklable
from .marks import MARKS
from .protocol import JournalStore, ListsRuns
from .run_entries import ExpectEntry, RunEntry, RunQuery
from .writes import Append, Claim, Ending, Expect, Put, Write

__all__ = ["EncryptedStore", "encrypted"]

_MAGIC: Final = b"\xc1ob1"
"""The prefix of all encrypted data.

No value of this library starts with it: msgpack never uses this byte.
"""
_ID_SIZE: Final = 4
_KEY_SIZE: Final = 32
_METHODS: Final = (
    "append",
    "read",
    "keys",
    "create",
    "keep_alive",
    "revoke",
    "claim",
    "commit",
    "holder",
    "orphans",
    "prune",
    "aclose",
)


def encrypted(
    store: JournalStore, *, keys: Sequence[str | bytes] | str | bytes, accept_plain: bool = False
) -> EncryptedStore:
    """Return a store that encrypts values and journals, and stores them in another one.

        store = encrypted(PostgresStore(dsn), keys=[os.environ["STORE_KEY"]])

    A key is 32 random bytes, or their URL-safe base64 text. New data is encrypted with the first
    key; data encrypted with any of the others can still be read. To rotate, put a new key first.
    `accept_plain`: read data that was stored before encryption was enabled as it is. Needs the
    package `cryptography`. Ids, labels, agents' names, statuses and times remain in plain text.
    """
    if isinstance(store, EncryptedStore):
        msg = (
            f"encrypted: {store!r} is already encrypted. To rotate keys, pass all of them "
            "in one list, the new one first."
        )
        raise UsageError(msg)
    missing = [
        name
        for name in ("get", "set", "delete", *_METHODS)
        if not callable(getattr(store, name, None))
    ]
    if missing or isinstance(store, type):
        msg = (
            "encrypted: store must be a JournalStore such as SQLiteStore('runs.db'), got "
            f"{store!r}, which has no {', '.join(missing) or 'instance'}."
        )
        raise UsageError(msg)
    ciphers = _Ciphers(
        [keys] if isinstance(keys, str | bytes) else list(keys), accept_plain=accept_plain
    )
    return (_ListingStore if isinstance(store, ListsRuns) else EncryptedStore)(store, ciphers)


class _Ciphers:
    """The keys, and the methods that encrypt and decrypt."""

    def __init__(self, keys: Sequence[str | bytes], *, accept_plain: bool) -> None:
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415 -- an extra, which only who uses it needs
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415
        except ImportError as error:
            msg = "encrypted() needs the package cryptography: pip install 'offbook[encryption]'."
            raise UsageError(msg) from error
        from hashlib import blake2b  # noqa: PLC0415 -- a part of the standard library that most programs do without

        if not keys:
            msg = "encrypted: keys must not be empty. Pass one or more; the first one encrypts."
            raise UsageError(msg)
        self.accepts_plain = accept_plain
        self._invalid = InvalidTag
        self._by_id: dict[bytes, Any] = {}
        for key in map(_key_bytes, keys):
            name = blake2b(b"offbook: name of a key", key=key, digest_size=_ID_SIZE).digest()
            self._by_id[name] = AESSIV(
                blake2b(b"offbook: AES-256-SIV", key=key, digest_size=64).digest()
            )
        self._first = next(iter(self._by_id))

    @property
    def may_differ(self) -> bool:
        """True if stored data may differ from what `encrypt` returns for the same value."""
        return self.accepts_plain or len(self._by_id) > 1

    def encrypt(self, kind: bytes, key: str, data: bytes) -> bytes:
        """Encrypt `data`, prefixed with a byte: some versions of the package refuse empty data."""
        if not isinstance(data, bytes):
            return data  # the store refuses it
        sealed: bytes = self._by_id[self._first].encrypt(b"\0" + data, [kind, _bytes(key)])
        return _MAGIC + self._first + sealed

    def decrypt(self, kind: bytes, key: str, data: bytes) -> bytes:
        if data[: len(_MAGIC)] != _MAGIC:
            if self.accepts_plain:
                return data
            msg = (
                f"the data stored under {key!r} is not encrypted. If it was written before "
                "encryption was enabled, pass encrypted(..., accept_plain=True)."
            )
            raise StoreError(msg)
        name = data[len(_MAGIC) : len(_MAGIC) + _ID_SIZE]
        cipher = self._by_id.get(name)
        if cipher is None:
            msg = (
                f"the data stored under {key!r} was encrypted with another key (its name is "
                f"{name.hex()}). Add that key to encrypted(keys=...), after the first one."
            )
            raise StoreError(msg)
        try:
            plain: bytes = cipher.decrypt(data[len(_MAGIC) + _ID_SIZE :], [kind, _bytes(key)])
        except (self._invalid, ValueError) as error:
            msg = (
                f"the data stored under {key!r} cannot be decrypted: it was damaged, or moved "
                "there from another key. Restore it from a backup."
            )
            raise StoreError(msg) from error
        return plain[1:]


_VALUE: Final = b"value"
_RECORD: Final = b"record"
_ENTRY: Final = b"entry"
_SECRET: Final = (
    "last_agent",
    "error",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "requests",
)
"""The columns of an entry that are encrypted: the wrapped store has them empty."""


class EncryptedStore(Unpicklable):
    """The store that `encrypted` returns."""

    __why_not_pickled__ = (
        "its keys and its store belong to this process. Make the store in each process."
    )

    def __init__(self, store: Any, ciphers: _Ciphers) -> None:
        self.store = store
        self._ciphers = ciphers

    def __repr__(self) -> str:
        return f"encrypted({self.store!r})"

    def __getattr__(self, name: str) -> Any:
        # Optional methods of the wrapped store.
        if name in ("watch", "backup", "close", "revoke_soon"):
            return getattr(self.store, name)
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)

    async def get(self, key: str) -> bytes | None:
        found = await self.store.get(key)
        return None if found is None else self._opened(key, found)

    async def set(self, key: str, value: bytes) -> None:
        await self.store.set(key, self._sealed(key, value))

    async def delete(self, key: str) -> None:
        await self.store.delete(key)

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        held: int = await self.store.append(key, self._records(key, records))
        return held

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        decrypt = self._ciphers.decrypt
        return [decrypt(_RECORD, key, record) for record in await self.store.read(key, after)]

    async def keys(self, prefix: str = "") -> list[str]:
        return list(await self.store.keys(prefix))

    async def create(self, key: str, value: bytes) -> bool:
        return bool(await self.store.create(key, self._sealed(key, value)))

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        return bool(await self.store.keep_alive(owner, seconds, first=first))

    async def revoke(self, owner: str) -> None:
        await self.store.revoke(owner)

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = ()) -> Claim | None:
        found: Claim | None = await self.store.claim(key, owner, await self._writes(writes))
        return found

    async def commit(
        self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep"
    ) -> None:
        await self.store.commit(claim, await self._writes(writes), then=then)

    async def holder(self, key: str) -> str | None:
        found: str | None = await self.store.holder(key)
        return found

    async def orphans(self, prefix: str = "", limit: int | None = None) -> list[str]:
        return list(await self.store.orphans(prefix, limit))

    async def prune(self, older_than: float | None = None) -> int:
        return int(await self.store.prune(older_than))

    async def aclose(self) -> None:
        await self.store.aclose()

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
        self.store.close()

    def _sealed(self, key: str, value: bytes) -> bytes:
        # Marks must be readable without a key, and an empty value counts as none.
        return value if key in MARKS or not value else self._ciphers.encrypt(_VALUE, key, value)

    def _opened(self, key: str, data: bytes) -> bytes:
        return data if key in MARKS or not data else self._ciphers.decrypt(_VALUE, key, data)

    def _records(self, key: str, records: Sequence[bytes]) -> Sequence[bytes]:
        encrypt = self._ciphers.encrypt
        # The store refuses it
        return (
            [encrypt(_RECORD, key, record) for record in records]
            if isinstance(records, list | tuple)
            else records
        )

    async def _writes(self, writes: Sequence[Write]) -> list[Write]:
        return [
            self._write(write) if type(write) is not Expect else await self._expect(write)
            for write in writes
        ]

    def _write(self, write: Write) -> Write:
        if type(write) is Put:
            return write.replace(value=self._sealed(write.key, write.value))
        if type(write) is Append:
            return write.replace(records=tuple(self._records(write.key, write.records)))
        if type(write) is RunEntry:
            return self._sealed_entry(write)
        if type(write) is ExpectEntry and write.entry is not None:
            return write.replace(entry=self._sealed_entry(write.entry))
        return write

    def _sealed_entry(self, entry: RunEntry) -> RunEntry:
        """Move the columns that nobody may read into the value, and encrypt that."""
        if type(entry.value) is not bytes:
            return entry  # the store refuses it
        whole = pack([entry.value, *(getattr(entry, name) for name in _SECRET)])
        value = self._ciphers.encrypt(_ENTRY, entry.key, whole)
        return RunEntry(
            entry.key,
            entry.agent,
            entry.session,
            entry.status,
            entry.started,
            entry.labels,
            value,
            entry.seconds,
            entry.claim,
            entry.checkpoint,
            updated=entry.updated,
            ended=entry.ended,
            attempts=entry.attempts,
            steps=entry.steps,
        )

    async def _expect(self, write: Expect) -> Expect:
        """Return the expectation that the wrapped store compares.

        The same value encrypted with another key, or in plain text, has other bytes: then the
        stored bytes are expected.
        """
        if write.value is None or write.key in MARKS:
            return write
        if self._ciphers.may_differ:
            found = await self.store.get(write.key)
            if found is not None and self._opened(write.key, found) == write.value:
                return Expect(write.key, found)
        return Expect(write.key, self._sealed(write.key, write.value))


class _ListingStore(EncryptedStore):
    """An encrypted store around one that lists its runs."""

    async def run_entry(self, run_id: str) -> RunEntry | None:
        found: RunEntry | None = await self.store.run_entry(run_id)
        return None if found is None else self._entry(found)

    async def run_entries(self, query: RunQuery) -> list[RunEntry]:
        return [self._entry(found) for found in await self.store.run_entries(query)]

    def _entry(self, found: RunEntry) -> RunEntry:
        if found.value[: len(_MAGIC)] != _MAGIC and self._ciphers.accepts_plain:
            return found
        value, *secret = unpack(self._ciphers.decrypt(_ENTRY, found.key, found.value))
        return found.replace(value=value, **dict(zip(_SECRET, secret, strict=True)))


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _key_bytes(key: object) -> bytes:
    """Decode and check a key. The error never contains the key, which is a secret."""
    found: object = key
    if isinstance(key, str):
        try:
            found = base64.urlsafe_b64decode(key.strip() + "=" * (-len(key.strip()) % 4))
        except (ValueError, binascii.Error):
            found = None
    if not isinstance(found, bytes) or len(found) != _KEY_SIZE:
        msg = (
            "encrypted(keys=...): a key must be 32 random bytes, or these in URL-safe "
            "base64. Make one: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
        raise UsageError(msg)
    return found
