"""Which classes may be written, and under which names.

Owns: the registry. Nothing is ever found by importing: a name that has not been registered is an error.
"""

from __future__ import annotations

import enum
import threading
from inspect import isabstract
from typing import Final

from ..errors import CheckpointError, UsageError
from .builtin import MODEL, TYPE, VALUE_ENCODERS, Encoder, Mark
from .kinds import Constructed, Dataclass, Enumeration, RegisteredType, Tuple
from .models import Model, is_model

__all__ = ["Registry"]

# Of a class that a `class` statement has made. An instance of any other holds more than its fields.
_MADE_BY_PYTHON: Final = 1 << 9


class Registry:
    """The classes that may be written. Written under the lock, by whole assignments; read without it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, RegisteredType] = {}
        self.entries: dict[type, RegisteredType] = {}
        self.encoders: dict[type, Encoder] = dict(VALUE_ENCODERS)
        self.known: dict[tuple[int, bytes], RegisteredType] = {}  # by the code and the payload of their marks

    def add(self, cls: type, name: str | None = None, *, own: bool = False) -> None:
        """`own` are the dataclasses of this package, which their constructors make."""
        if name is None and isinstance(cls, type):
            name = f"{cls.__module__}.{cls.__qualname__}"
        if not isinstance(name, str) or not name or "\0" in name:
            msg = f"register_type: name={name!r} is no name; give a text such as 'shop.Cart'."
            raise UsageError(msg)
        entry = Constructed(cls, name) if own else _entry(cls, name)
        encoder = entry.encoder()
        with self._lock:
            known = self._by_name.get(name)
            if known is not None and known.cls is not cls:
                msg = (
                    f"register_type: the name {name!r} of {_told(cls)} is taken by {_told(known.cls)}; give one of them another: register_type(cls, name=...)."
                )
                raise UsageError(msg)
            other = self.entries.get(cls)
            if other is not None and other.name != name:
                msg = f"register_type: {_told(cls)} is registered as {other.name!r} already; it cannot be {name!r} as well."
                raise UsageError(msg)
            if known is None:
                self._by_name[name] = entry
                self.known[entry.ext] = entry
                self.entries[cls] = entry
                self.encoders[cls] = encoder

    def mark(self, code: int, payload: bytes) -> Mark:
        """The mark with that code and payload."""
        entry = self.known.get((code, payload))
        if entry is not None:
            return entry
        name, *names = payload.decode().split("\0")
        known = self._by_name.get(name)
        if known is None:
            msg = f"the type {name[:200]!r} is not registered: register_type(...) has to be called before bytes that hold it are read."
            raise CheckpointError(msg)
        if code != known.code and not (code == TYPE and known.code == MODEL):  # which is how models were written before
            msg = f"{name[:200]} is not written as what it is."
            raise CheckpointError(msg)
        return known.other_form(tuple(names))


def _told(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _entry(cls: type, name: str) -> RegisteredType:
    if not isinstance(cls, type):
        msg = f"register_type: {cls!r} is no class."
        raise UsageError(msg)
    if issubclass(cls, enum.Enum):
        return Enumeration(cls, name)
    if is_model(cls):
        return Model(cls, name)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return Tuple(cls, name)
    if "__dataclass_fields__" not in cls.__dict__:
        msg = f"register_type: {_told(cls)} is neither a dataclass nor an enum, a pydantic model or a NamedTuple. Decorate it with @dataclass."
        raise UsageError(msg)
    foreign = next((base for base in cls.__mro__[:-1] if not base.__flags__ & _MADE_BY_PYTHON), None)
    if foreign is not None:
        msg = f"register_type: {_told(cls)} is a dataclass, but holds more than its fields, because it is a {foreign.__name__} as well."
        raise UsageError(msg)
    if not isabstract(cls) and not hasattr(cls, "__del__"):
        try:
            object.__new__(cls)
        except TypeError as error:
            msg = f"register_type: {_told(cls)} is a dataclass, but holds more than its fields: {error}."
            raise UsageError(msg) from error
    return Dataclass(cls, name)
