"""The watchers of keys in one process.

Watchers are never called while the lock is held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

__all__ = ["Watch", "Watchers", "Watches"]


class Watches(Protocol):
    """An optional feature of a store: it reports changes, so that callers need not poll."""

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> Watch:
        """Call `changed`, in any thread, soon after any process wrote or removed the value or
        journal of one of these keys.

        It is also called when the watch becomes live, and when it stops being live (a connection
        was lost): check the keys then. Superfluous calls are possible; a live watch misses no
        change. The callback must not block, and must not call the store.
        """
        ...


class Watch:
    """One watcher. `close()` it."""

    __slots__ = ("_changed", "_keys", "_watchers")

    def __init__(
        self, watchers: Watchers, keys: frozenset[bytes], changed: Callable[[], None]
    ) -> None:
        self._watchers = watchers
        self._keys = keys
        self._changed = changed

    @property
    def is_live(self) -> bool:
        """True if every change from now on is reported."""
        return self._watchers.are_armed(self._keys)

    def close(self) -> None:
        """Stop watching. May be called again."""
        self._watchers.remove(self, self._keys)

    def tell(self) -> None:
        self._changed()


class Watchers:
    """The watchers of one store.

    A key is *armed* while every change of it is certain to be reported here.
    """

    def __init__(self, *, always: bool = False) -> None:
        self._lock = threading.Lock()
        self.by_key: dict[bytes, set[Watch]] = {}
        self._armed: set[bytes] = set()
        self._always = always  # whether every writer notifies the watchers directly
        self.version = 0
        """Changes whenever the set of watched keys does."""

    def __bool__(self) -> bool:
        return bool(self.by_key)

    def add(self, keys: Iterable[bytes], changed: Callable[[], None]) -> Watch:
        wanted = frozenset(keys)
        watch = Watch(self, wanted, changed)
        with self._lock:
            for key in wanted:
                watching = self.by_key.get(key)
                if watching is None:
                    watching = self.by_key[key] = set()
                    self.version += 1
                watching.add(watch)
        return watch

    def remove(self, watch: Watch, keys: Iterable[bytes]) -> None:
        with self._lock:
            for key in keys:
                watching = self.by_key.get(key)
                if watching is None:
                    continue
                watching.discard(watch)
                if not watching:
                    del self.by_key[key]
                    self.version += 1

    def news(self, known: set[bytes]) -> tuple[set[bytes], set[bytes]]:
        """Return the watched keys that are not known, and the known keys that are not watched.

        The latter are disarmed.
        """
        with self._lock:
            gone = {key for key in known if key not in self.by_key}
            self._armed -= gone
            return {key for key in self.by_key if key not in known}, gone

    def are_armed(self, keys: frozenset[bytes]) -> bool:
        with self._lock:
            return self._always or keys <= self._armed

    def arm(self, keys: Iterable[bytes]) -> None:
        """Note that every change of these keys is reported from now on.

        Their watchers are notified, because earlier changes were not reported.
        """
        with self._lock:
            fresh = [key for key in keys if key in self.by_key and key not in self._armed]
            self._armed.update(fresh)
        self.tell(fresh)

    def disarm(self) -> None:
        """Note that changes may be missed from now on."""
        with self._lock:
            lost = list(self._armed)
            self._armed.clear()
        self.tell(lost)

    def tell(self, keys: Iterable[bytes]) -> None:
        """Notify the watchers of changed keys."""
        if not self.by_key:
            return
        with self._lock:
            told = {watch for key in keys for watch in self.by_key.get(key, ())}
        for watch in told:
            watch.tell()
