"""The values that the agents of one run share.

Owns: `SessionValues`, and how code without a context in reach finds those of its run: through a context variable, which goes along into the threads of tools.
It must never copy a value: what one agent puts in is what the other takes out.
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
    """A mapping that any number of threads may use. Each call is one step: no reader sees half of an `update`."""

    __slots__ = ("_guard", "_lock", "_values", "run_id", "session_id")

    run_id: str | None  # of the run whose they are, for the log: set by that
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
        """From now on call that with whatever is put in, before it is; it raises, if it must not be. At once with what is there."""
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
        return iter(self.to_dict())  # of a copy: other threads may add while this one iterates

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SessionValues):
            return self.to_dict() == other.to_dict()
        return self.to_dict() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    def get(self, key: str, default: object = None) -> Any:
        return self._values.get(key, default)

    def set(self, key: str, value: object) -> None:
        """The same as `values[key] = value`."""
        self[key] = value

    def delete(self, key: str) -> None:
        """Remove it, if it is there."""
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
        """Put those in that have no value yet."""
        with self._lock:
            self._values = {**values, **self._values}

    def clear(self) -> None:
        with self._lock:
            self._values.clear()

    def to_dict(self) -> dict[str, Any]:
        """A plain copy."""
        if not self._values:
            return {}
        with self._lock:
            return self._values.copy()


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        msg = f"session values go by names: {key!r} is no text."
        raise UsageError(msg)


class _Outside(SessionValues):
    """What there is where no run is: nothing, and no place to put something."""

    __slots__ = ()

    def __setitem__(self, key: str, value: object) -> None:
        self.update({key: value})

    def setdefault(self, key: str, default: object = None) -> Any:
        self.update({key: default})

    def update(self, *others: object, **more: object) -> None:
        names = ", ".join(repr(key) for key in dict(*others, **more))
        msg = (
            f"session value {names} cannot be added here: no run is under way. Session values live in a run: add them in an agent, a tool or a hook, "
            "or give runner.run(..., session_values={...})."
        )
        raise UsageError(msg)


_OUTSIDE: Final = _Outside()


def bind_session(values: SessionValues) -> None:
    """From here on, in this context and all that are copied from it, these are the values."""
    work_for(values)


def current_session() -> SessionValues:
    """The values of the run in which this is called. Outside of a run: empty, and adding is an error."""
    found = at_work()
    return found if isinstance(found, SessionValues) else _OUTSIDE


def get_session_value(key: str) -> tuple[Any, bool]:
    """The value of that name in the current run, and whether there is one."""
    value = current_session().get(key, _MISSING)
    return (None, False) if value is _MISSING else (value, True)


def get_session_values() -> dict[str, Any]:
    """A copy of all values of the current run."""
    return current_session().to_dict()


def add_session_value(key: str, value: object) -> None:
    """Put a value into the current run, in place of one that has that name."""
    current_session()[key] = value


def add_session_values(values: Mapping[str, object]) -> None:
    """Put several values into the current run, all at once."""
    current_session().update(values)
