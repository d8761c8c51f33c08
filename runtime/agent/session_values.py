"""The values that the agents of one run share.

Code without a context finds the `SessionValues` of its run through a context variable, which is
also copied into the threads of tools. Values are never copied: an agent reads the very object that
another one stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Final, TypeVar, overload

from ..errors import UsageError
from ..log import at_work, work_for

__all__ = [
    "SessionValues",
    "add_session_value",
    "add_session_values",
    "bind_session",
    "current_session",
    "get_session_value",
    "get_session_values",
]

T = TypeVar("T")

_MISSING: Final = object()


class SessionValues(MutableMapping[str, Any]):
    """A thread-safe mapping.

    Each call is atomic: no reader sees half of an `update`.
    """

    __slots__ = ("_guard", "_lock", "_values", "run_id", "session_id")

    run_id: str | None  # the run that has these values, for the log; set by the run
    session_id: str | None

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, Any] = {}
        self._guard: Callable[[Mapping[str, Any]], None] | None = None
        self._lock = threading.Lock()
        if values:
            self.update(values)

    def __repr__(self) -> str:
        return f"SessionValues({self.to_dict()!r})"

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def guard(self, check: Callable[[Mapping[str, Any]], None]) -> None:
        """Call `check` with the current values, and from now on with values before they are stored.

        It raises if a value is not allowed.
        """
        check(self._values)
        self._guard = check

    def __setitem__(self, key: str, value: Any) -> None:
        _check_key(key)
        if self._guard is not None:
            self._guard({key: value})
        with self._lock:
            self._values[key] = value

    def __delitem__(self, key: str) -> None:
        with self._lock:
            del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())  # a copy, because other threads may add values meanwhile

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SessionValues):
            return self.to_dict() == other.to_dict()
        return self.to_dict() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable

    def get(self, key: str, default: object = None) -> Any:
        return self._values.get(key, default)

    def set(self, key: str, value: object) -> None:
        """Set a value, like `values[key] = value`."""
        self[key] = value

    def delete(self, key: str) -> None:
        """Remove a value, if present."""
        self.pop(key, None)

    @overload
    def pop(self, key: str, /) -> Any: ...
    @overload
    def pop(self, key: str, /, default: object) -> Any: ...

    def pop(self, key: str, default: object = _MISSING) -> Any:
        with self._lock:
            return self._values.pop(key) if default is _MISSING else self._values.pop(key, default)

    def popitem(self) -> tuple[str, Any]:
        with self._lock:
            return self._values.popitem()

    def setdefault(self, key: str, default: object = None) -> Any:
        _check_key(key)
        if self._guard is not None and key not in self._values:
            self._guard({key: default})
        with self._lock:
            return self._values.setdefault(key, default)

    def update(self, *others: object, **more: object) -> None:
        news = dict(*others, **more)
        for key in news:
            _check_key(key)
        if self._guard is not None:
            self._guard(news)
        with self._lock:
            self._values.update(news)

    def put_under(self, values: Mapping[str, object]) -> None:
        """Add the values whose keys are not set yet."""
        with self._lock:
            self._values = {**values, **self._values}

    def clear(self) -> None:
        with self._lock:
            self._values.clear()

    def to_dict(self) -> dict[str, Any]:
        """Return a plain copy."""
        if not self._values:
            return {}
        with self._lock:
            return self._values.copy()


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        msg = f"the key of a session value must be a string, got {key!r}."
        raise UsageError(msg)


class _Outside(SessionValues):
    """The values outside of any run: empty, and read-only."""

    __slots__ = ()

    def __setitem__(self, key: str, value: object) -> None:
        self.update({key: value})

    def setdefault(self, key: str, default: object = None) -> Any:
        self.update({key: default})

    def update(self, *others: object, **more: object) -> None:
        names = ", ".join(repr(key) for key in dict(*others, **more))
        msg = (
            f"session value {names} cannot be added here, because no run is active. Add it "
            "in an agent, a tool or a hook, or pass runner.run(..., "
            "session_values={...})."
        )
        raise UsageError(msg)


_OUTSIDE: Final = _Outside()


def bind_session(values: SessionValues) -> None:
    """Use these values in this context and in all its copies."""
    work_for(values)


def current_session() -> SessionValues:
    """Return the session values of the current run.

    Outside of a run they are empty, and adding a value is an error.
    """
    found = at_work()
    return found if isinstance(found, SessionValues) else _OUTSIDE


def get_session_value(key: str) -> tuple[Any, bool]:
    """Return a value of the current run, and True if it exists."""
    value = current_session().get(key, _MISSING)
    return (None, False) if value is _MISSING else (value, True)


def get_session_values() -> dict[str, Any]:
    """Return a copy of all values of the current run."""
    return current_session().to_dict()


def add_session_value(key: str, value: object) -> None:
    """Set a value in the current run."""
    current_session()[key] = value


def add_session_values(values: Mapping[str, object]) -> None:
    """Set several values in the current run, atomically."""
    current_session().update(values)
