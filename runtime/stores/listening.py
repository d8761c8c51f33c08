"""The thread in which a store receives changes by other processes, while something is watched.

It is started by the first watch, and ends some seconds after the last one. It reads from a
`Source`, which has its own connection. When that fails, the keys are disarmed, so that watchers
poll instead, and the source is reopened with growing pauses between attempts. This module never
writes to the store.
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
from . import forks
from .watching import Watch, Watchers

__all__ = ["Listener", "Source", "wait_for_any"]

_LINGER: Final = 5.0
"""Seconds without a watcher after which the thread ends and its connection is closed."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0


class Source(Protocol):
    """A source of changes. Its methods run in the listener's thread, except where noted."""

    def open(self) -> None:
        """Connect."""

    def follow(self, added: Collection[bytes], gone: Collection[bytes]) -> None:
        """Listen for additional keys, and stop listening for others.

        Keys whose changes it receives from now on are armed, now or during `wait`.
        """

    def wait(self, wake: socket.socket, seconds: float) -> None:
        """Report changes. Returns after `seconds`, or as soon as `wake` is readable.

        It does not read from `wake`.
        """

    def close(self) -> None:
        """Close the connection, if there is one. A lost connection must not raise."""

    def before_fork(self) -> None:
        """Close the connection, if a child process must not have a copy of it. From any thread.

        The connection stays unused until the fork is over.
        """

    def after_fork(self) -> None:
        """From the same thread, in the parent: the fork is over."""

    def descriptors(self) -> list[int]:
        """Return the descriptors that the child releases. Called in the child; only reads."""


class Listener:
    """The watchers of one store in one process, and the thread that notifies them."""

    def __init__(self, name: str, make_source: Callable[[Watchers], Source]) -> None:
        self.watchers = Watchers()
        self._name = name
        self._source = make_source(self.watchers)
        self._lock = threading.Lock()
        self._ended: Future[None] | None = None  # set when the thread ends; None: no thread
        self._wake: socket.socket | None = None
        self._closed = False
        # Held while the source is opened, which may import a client, and during a fork.
        self._opening = threading.Lock()
        self._is_held = False  # whether the fork holds it
        forks.watch(self)

    def before_fork(self) -> None:
        self._is_held = self._opening.acquire(timeout=forks.SECONDS)
        self._source.before_fork()

    def after_fork(self) -> None:
        self._source.after_fork()
        if self._is_held:
            self._opening.release()

    def after_fork_in_child(self) -> None:
        forks.disconnect(self._source.descriptors())

    def add(self, keys: Collection[bytes], changed: Callable[[], None]) -> Watch:
        watch = self.watchers.add(keys, changed)
        with self._lock:
            if self._closed:
                return watch  # a closed store's watch is never live
            if self._ended is None:
                self._begin()
            else:
                self._stir()
        return watch

    def close(self) -> Future[None] | None:
        """End the thread. The returned future is done when it has ended."""
        with self._lock:
            self._closed = True
            self._stir()
            return self._ended

    def _stir(self) -> None:
        if self._wake is not None:
            # the socket's buffer is full: the thread wakes up anyway
            with suppress(BlockingIOError):
                self._wake.send(b"\0")

    def _begin(self) -> None:
        """Start the thread.

        If no descriptor or thread is left, watchers poll, and the next watch tries again.
        """
        made: list[socket.socket] = []
        try:
            made += socket.socketpair()
            wake, woken = made
            wake.setblocking(False)
            woken.setblocking(False)
            ended: Future[None] = Future()
            threading.Thread(
                target=self._listen,
                args=(woken, wake, ended),
                name=f"{self._name}-listener",
                daemon=True,
            ).start()
        except (OSError, RuntimeError) as error:
            for one in made:
                one.close()
            loggers.stores.info(
                "%s receives no notifications for now, and polls instead: %s: %s",
                self._name,
                type(error).__name__,
                error,
            )
        else:
            self._wake, self._ended = wake, ended

    # ---- in the thread

    def _listen(self, woken: socket.socket, wake: socket.socket, ended: Future[None]) -> None:
        process, pause = os.getpid(), _FIRST_PAUSE
        try:
            while True:
                try:
                    with self._opening:
                        self._source.open()
                    pause = _FIRST_PAUSE
                    if self._follow(woken):
                        return
                except Exception as error:  # noqa: BLE001 -- any client's error: watchers poll in the meantime
                    if pause == _FIRST_PAUSE:
                        loggers.stores.info(
                            "%s receives no notifications for now, and polls instead: %s: %s",
                            self._name,
                            type(error).__name__,
                            error,
                        )
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
                        self._begin()  # for a watch that was added just now
                wake.close()
                woken.close()
                ended.set_result(None)

    def _follow(self, woken: socket.socket) -> bool:
        """Report changes until the source fails. Returns True when nothing is left to do."""
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
        """Wait before the next attempt. Returns True when nothing is left to do."""
        wait_for_any([woken], seconds)
        _drain(woken)
        return self._closed or not self.watchers


def wait_for_any(sockets: Collection[socket.socket | int], seconds: float) -> bool:
    """Wait until one of them can be read. Returns whether one can."""
    if hasattr(select, "poll"):  # `select` does not support descriptors above 1,024
        poll = select.poll()
        for one in sockets:
            poll.register(one, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    return bool(select.select(list(sockets), [], [], seconds)[0])


def _drain(woken: socket.socket) -> None:
    with suppress(BlockingIOError):  # the socket is empty
        while woken.recv(4096):
            pass
