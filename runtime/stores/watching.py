"""Who wants to hear of which keys, in one process.

Owns: the registry, and that each watcher is told. It must never know how a change is noticed, nor call a watcher while it holds its lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

__all__ = ["Watch", "Watchers", "Watches"]


class Watches(Protocol):
    """What a store may have besides: it tells of changes, so that who waits for one need not look again and again."""

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> Watch:
        """Call `changed`, in whichever thread, soon after value or journal of one of these keys were written or removed, by whichever process.

        It is also called when that begins to be so, and when it ends (a connection was lost): look then. A call more than needed does no harm; from one that
        says that it is live, none is missing. The call must not block, and must not call the store.
        """
        ...


class Watch:
    """One watcher. `close()` it."""

    __slots__ = ("_changed", "_keys", "_watchers")

    def __init__(self, watchers: Watchers, keys: frozenset[bytes], changed: Callable[[], None]) -> None:
        self._watchers = watchers
        self._keys = keys
        self._changed = changed

    @property
    def is_live(self) -> bool:
        """Whether every change from now on is told."""
        return self._watchers.are_armed(self._keys)

    def close(self) -> None:
        """Be told no more. May be called again."""
        self._watchers.remove(self, self._keys)

    def tell(self) -> None:
        self._changed()


class Watchers:
    """The watchers of one store. A key is *armed* while every change of it is certain to be told here."""

    def __init__(self, *, always: bool = False) -> None:
        self._lock = threading.Lock()
        self.by_key: dict[bytes, set[Watch]] = {}
        self._armed: set[bytes] = set()
        self._always = always  # what is written is told by the very one who writes it
        self.version = 0
        """Another one whenever other keys are wanted."""

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
        """The keys that are watched now and are not known, and those that are known and not watched any more, which are armed no longer."""
        with self._lock:
            gone = {key for key in known if key not in self.by_key}
            self._armed -= gone
            return {key for key in self.by_key if key not in known}, gone

    def are_armed(self, keys: frozenset[bytes]) -> bool:
        with self._lock:
            return self._always or keys <= self._armed

    def arm(self, keys: Iterable[bytes]) -> None:
        """From now on every change of these is told. Who watches them looks once more: what came before that was not."""
        with self._lock:
            fresh = [key for key in keys if key in self.by_key and key not in self._armed]
            self._armed.update(fresh)
        self.tell(fresh)

    def disarm(self) -> None:
        """Changes may be missed from now on."""
        with self._lock:
            lost = list(self._armed)
            self._armed.clear()
        self.tell(lost)

    def tell(self, keys: Iterable[bytes]) -> None:
        """These have changed."""
        if not self.by_key:
            return
        with self._lock:
            told = {watch for key in keys for watch in self.by_key.get(key, ())}
        for watch in told:
            watch.tell()
