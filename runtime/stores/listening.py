"""The one thread in which a store hears of what other processes write, while something is watched.

It is started by the first watch, and ends some seconds after the last one. What hears is a `Source`, with a connection of its own: when that fails, the keys
are no longer armed, so that who watches them looks again and again, and it is opened anew, with a growing pause between two attempts.

Owns: the thread, what wakes it, and when a source is opened again. It must never know a backend's client, nor write what a store keeps.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Protocol

from ..log import loggers
from .watching import Watch, Watchers

__all__ = ["Listener", "Source", "wait_for_any"]

_LINGER: Final = 5.0
"""Seconds without a watcher after which the thread ends, and the connection with it."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0


class Source(Protocol):
    """What hears of changes. All its methods are called in the listener's thread."""

    def open(self) -> None:
        """Connect."""

    def follow(self, added: Collection[bytes], gone: Collection[bytes]) -> None:
        """Listen for some keys more, and for others no longer. Those that it hears of from now on it arms, now or while it waits."""

    def wait(self, wake: socket.socket, seconds: float) -> None:
        """Tell of what changes, and return after so long, or when there is something to be read from `wake`, which is left there."""

    def close(self) -> None:
        """Let go of the connection, if there is one. It must not raise because that is lost."""


class Listener:
    """The watchers of one store in one process, and the thread that tells them."""

    def __init__(self, name: str, make_source: Callable[[Watchers], Source]) -> None:
        self.watchers = Watchers()
        self._name = name
        self._source = make_source(self.watchers)
        self._lock = threading.Lock()
        self._ended: Future[None] | None = None  # of the thread that runs
        self._wake: socket.socket | None = None
        self._closed = False

    def add(self, keys: Collection[bytes], changed: Callable[[], None]) -> Watch:
        watch = self.watchers.add(keys, changed)
        with self._lock:
            if self._closed:
                return watch  # it is never live
            if self._ended is None:
                self._begin()
            else:
                self._stir()
        return watch

    def close(self) -> Future[None] | None:
        """End the thread. What is returned is done when it has ended."""
        with self._lock:
            self._closed = True
            self._stir()
            return self._ended

    def _stir(self) -> None:
        if self._wake is not None:
            with suppress(BlockingIOError):  # it is full: the thread wakes up anyway
                self._wake.send(b"\0")

    def _begin(self) -> None:
        self._wake, woken = socket.socketpair()
        self._wake.setblocking(False)
        woken.setblocking(False)
        self._ended = Future()
        threading.Thread(target=self._listen, args=(woken, self._wake, self._ended), name=f"{self._name}-listener", daemon=True).start()

    # ---- in the thread

    def _listen(self, woken: socket.socket, wake: socket.socket, ended: Future[None]) -> None:
        process, pause = os.getpid(), _FIRST_PAUSE
        try:
            while True:
                try:
                    self._source.open()
                    pause = _FIRST_PAUSE
                    if self._follow(woken):
                        return
                except Exception as error:  # noqa: BLE001 -- every error of every client: those who watch look for themselves meanwhile
                    if pause == _FIRST_PAUSE:
                        loggers.stores.info("%s cannot hear of changes for now, and looks for them: %s: %s", self._name, type(error).__name__, error)
                finally:
                    self.watchers.disarm()
                    self._source.close()
                if self._rest(woken, pause):
                    return
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            if os.getpid() == process:
                with self._lock:
                    self._ended = self._wake = None
                    if self.watchers and not self._closed:
                        self._begin()  # what has come at this very moment
                wake.close()
                woken.close()
                ended.set_result(None)

    def _follow(self, woken: socket.socket) -> bool:
        """Tell of changes until the source fails. Returns True when there is nothing left to do."""
        known: set[bytes] = set()
        version = -1
        while not self._closed:
            _drain(woken)
            if version != self.watchers.version:
                version = self.watchers.version
                added, gone = self.watchers.news(known)
                self._source.follow(added, gone)
                known = (known | added) - gone
            self._source.wait(woken, _LINGER)
            if not self.watchers and not known:
                return True
        return True

    def _rest(self, woken: socket.socket, seconds: float) -> bool:
        """Wait before the next attempt. Returns True when there is nothing left to do."""
        wait_for_any([woken], seconds)
        _drain(woken)
        return self._closed or not self.watchers


def wait_for_any(sockets: Collection[socket.socket | int], seconds: float) -> bool:
    """Wait until one of them can be read. Returns whether one can."""
    if hasattr(select, "poll"):  # numbers above 1,024 are nothing to `select`
        poll = select.poll()
        for one in sockets:
            poll.register(one, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    return bool(select.select(list(sockets), [], [], seconds)[0])


def _drain(woken: socket.socket) -> None:
    with suppress(BlockingIOError):  # it is empty
        while woken.recv(4096):
            pass
