"""The connection of this process to Ray, which all its clients share.

When another Ray cluster has replaced the one that the process is connected to, Ray refuses every
call, so the connection is made again.

A connection that the program itself has made is never replaced, because its options are the
program's.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ..errors import ClusterError
from .environment import NAMESPACE

__all__ = ["RayConnection", "is_replaced", "ray_connection"]

T = TypeVar("T")

_REPLACED: Final = "WrongClusterID"
_NO_CLUSTER: Final = (
    "there is no Ray cluster to connect to. Set RAY_ADDRESS, or run on one of its nodes; `ray "
    "start --head` starts one."
)


def is_replaced(error: BaseException) -> bool:
    """Return whether Ray refuses a call because its head belongs to another cluster."""
    return _REPLACED in str(error)


class RayConnection:
    """The connection. Its methods block: they are called in threads of `RayCalls`."""

    __slots__ = ("_is_own", "_lock", "number")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_own = False  # whether it was made here, and not by the program
        self.number = 0
        """The number of the current connection. Objects from an earlier one are invalid."""

    def open(self, ray: Any, *, may_start: bool = False) -> bool:
        """Connect, if the process is not connected. Return whether Ray was started for it."""
        with self._lock:
            return not ray.is_initialized() and self._connect(ray, may_start=may_start)

    def renew(self, ray: Any, number: int) -> None:
        """Connect to the cluster that has replaced the one of that connection."""
        with self._lock:
            if self.number != number and ray.is_initialized():
                return  # another client has done it
            if ray.is_initialized():
                if not self._is_own:
                    msg = (
                        "this program is connected to a Ray cluster that another one has "
                        "replaced. Call ray.shutdown() and ray.init() again."
                    )
                    raise ClusterError(msg)
                # at once: Ray connects by itself when it is called without a connection
                self.number += 1
                ray.shutdown()
            self._connect(ray, may_start=False)

    def ask(self, ray: Any, function: Callable[[], T]) -> T:
        """Call a function that asks the head.

        Without a connection, Ray would make one by itself.
        """
        if not ray.is_initialized():
            raise ClusterError("the program is reconnecting to Ray. Try again later.")
        return function()

    def _connect(self, ray: Any, *, may_start: bool) -> bool:
        options: dict[str, Any] = {
            "namespace": NAMESPACE,
            "logging_level": logging.WARNING,
            "log_to_driver": False,
        }
        hook, started = sys.excepthook, False
        try:
            ray.init(address="auto", **options)
        except ConnectionError as error:
            if not may_start:
                raise ClusterError(_NO_CLUSTER) from error
            ray.init(address="local", include_dashboard=False, **options)
            started = True
        finally:
            # Ray's hook asks the head, and blocks the end of a process without it
            sys.excepthook = hook
        self._is_own = True
        self.number += 1
        return started


ray_connection: Final = RayConnection()
