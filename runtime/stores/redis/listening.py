"""Notifications for a `RedisStore` about writes of other processes.

The scripts publish each key that they write, on a separate channel.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from typing import Any, Final

from ..listening import wait_for_any
from ..watching import Watchers

__all__ = ["Subscriptions", "sockets_of"]

_AT_ONCE: Final = 500


def sockets_of(client: Any) -> list[int]:
    """Return the descriptors of all connections of a client.

    It takes no locks of the client: a thread that no longer exists may hold them.
    """
    if client is None:
        return []
    pool = client.connection_pool
    connections = (*pool._available_connections, *pool._in_use_connections)
    return [connection._sock.fileno() for connection in connections if connection._sock is not None]


class Subscriptions:
    """One connection that is subscribed to the channels of all watched keys."""

    def __init__(self, watchers: Watchers, make_client: Callable[[], Any], root: bytes) -> None:
        self._watchers = watchers
        self._make_client = make_client
        self._root = root + b"n:"
        self._client: Any = None
        self._pubsub: Any = None
        self._is_asked = False  # whether a ping is unanswered

    def open(self) -> None:
        self._client = self._make_client()
        self._client.ping()
        self._pubsub = self._client.pubsub()
        self._is_asked = False

    def follow(self, added: Collection[bytes], gone: Collection[bytes]) -> None:
        for keys, command in ((gone, self._pubsub.unsubscribe), (added, self._pubsub.subscribe)):
            channels = [self._root + key for key in keys]
            for start in range(0, len(channels), _AT_ONCE):
                command(*channels[start : start + _AT_ONCE])

    def wait(self, wake: socket.socket, seconds: float) -> None:
        if self._read():  # the socket does not show what the client has read already
            return
        connection = self._pubsub.connection
        if connection is None:
            wait_for_any([wake], seconds)
            return
        # There is no other way to wait for two things.
        if wait_for_any([connection._sock, wake], seconds):
            self._read()
        elif self._pubsub.subscribed:
            if self._is_asked:
                msg = f"the server sent no answer for {2 * seconds:g} s"
                raise ConnectionError(msg)
            self._pubsub.ping()
            self._is_asked = True

    def before_fork(self) -> None:
        """Do nothing: the connection stays as it is."""

    def after_fork(self) -> None:
        """Do nothing: it was usable all the time."""

    def descriptors(self) -> list[int]:
        return sockets_of(self._client)

    def close(self) -> None:
        pubsub, client, self._pubsub, self._client = self._pubsub, self._client, None, None
        if pubsub is not None:
            pubsub.close()  # closes a lost connection, too
        if client is not None:
            client.close()

    def _read(self) -> bool:
        """Process the received messages. Returns whether there were any."""
        armed, told = [], []
        while (
            self._pubsub.subscribed and (message := self._pubsub.get_message(timeout=0)) is not None
        ):
            self._is_asked = False
            if message["type"] == "message":
                told.append(bytes(message["channel"]).removeprefix(self._root))
            elif message["type"] == "subscribe":
                armed.append(bytes(message["channel"]).removeprefix(self._root))
        self._watchers.arm(armed)
        self._watchers.tell(told)
        return bool(armed or told)
