"""The registry of classes that may be written, and their names.

Nothing is ever found by importing: a name that is not registered is an error.
"""

from __future__ import annotations

import enum
import threading
from inspect import isabstract
from typing import Final

from msgpack import ExtType  # type: ignore[import-untyped]  # it has no stubs

from ..errors import CheckpointError, UsageError
from .builtin import VALUE_ENCODERS, Encoder, Mark
from .kinds import Constructed, Dataclass, Enumeration, RegisteredType, Tuple
from .models import Model, is_model

__all__ = ["OpaqueValue", "Registry"]


class OpaqueValue:
    """A value of a type that is not registered here.

    `type_name` and `fields` show its content; forwarding it does not change it.
    """

    __slots__ = ("_code", "_items", "_payload")

    def __init__(self, code: int, payload: bytes, items: list[object]) -> None:
        self._code = code
        self._payload = payload
        self._items = items

    @property
    def type_name(self) -> str:
        """The name of the type in the process that registered it."""
        return self._payload.decode(errors="replace").partition("\0")[0]

    @property
    def fields(self) -> dict[str, object]:
        """The values by their names, as far as the names were written."""
        return dict(
            zip(self._payload.decode(errors="replace").split("\0")[1:], self._items, strict=False)
        )

    def __repr__(self) -> str:
        return f"<{self.type_name}, not registered here: {self.fields!r:.200}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueValue):
            return NotImplemented
        return (self._code, self._payload, self._items) == (
            other._code,
            other._payload,
            other._items,
        )

    def __hash__(self) -> int:
        return hash((self._code, self._payload))

    def written(self) -> list[object]:
        """Return the list that is written for it."""
        return [ExtType(self._code, self._payload), *self._items]


# The flag of classes made by a `class` statement. Instances of others have more state than fields.
_MADE_BY_PYTHON: Final = 1 << 9


class Registry:
    """The classes that may be written.

    Written under the lock, by whole assignments; read without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, RegisteredType] = {}
        self.entries: dict[type, RegisteredType] = {}
        self.encoders: dict[type, Encoder] = {
            **dict(VALUE_ENCODERS),
            OpaqueValue: OpaqueValue.written,
        }
        # By the code and the payload of their marks.
        self.known: dict[tuple[int, bytes], RegisteredType] = {}

    def add(self, cls: type, name: str | None = None, *, own: bool = False) -> None:
        """Register a class. `own`: a dataclass of this package, made by its constructor."""
        if name is None and isinstance(cls, type):
            name = f"{cls.__module__}.{cls.__qualname__}"
        if not isinstance(name, str) or not name or "\0" in name:
            msg = f"register_type: name must be a string such as 'shop.Cart', got {name!r}."
            raise UsageError(msg)
        entry = Constructed(cls, name) if own else _entry(cls, name)
        encoder = entry.encoder()
        with self._lock:
            known = self._by_name.get(name)
            if known is not None and known.cls is not cls:
                msg = (
                    f"register_type: the name {name!r} of {_told(cls)} is taken by "
                    f"{_told(known.cls)}. "
                    "Pass another for one of them: register_type(cls, name=...)."
                )
                raise UsageError(msg)
            other = self.entries.get(cls)
            if other is not None and other.name != name:
                msg = (
                    f"register_type: {_told(cls)} is already registered as {other.name!r}, and "
                    f"cannot also be {name!r}. Keep one of the names."
                )
                raise UsageError(msg)
            if known is None:
                self._by_name[name] = entry
                self.known[entry.ext] = entry
                self.entries[cls] = entry
                self.encoders[cls] = encoder

    def mark(self, code: int, payload: bytes, *, opaque: bool = False) -> Mark:
        """Return the mark with that code and payload.

        `opaque`: a value of a type that is not registered is forwarded unchanged.
        """
        entry = self.known.get((code, payload))
        if entry is not None:
            return entry
        name, *names = payload.decode().split("\0")
        known = self._by_name.get(name)
        if known is None and opaque:
            return Mark(lambda items: OpaqueValue(code, payload, items[1:]))
        if known is None:
            msg = (
                f"the type {name[:200]!r} is not registered. Call register_type(...) for it "
                "before you read stored data."
            )
            raise CheckpointError(msg)
        if code != known.code:
            msg = (
                f"the stored data of {name[:200]} does not match the kind of its registered "
                "class. Register the class that it was stored with."
            )
            raise CheckpointError(msg)
        return known.other_form(tuple(names))


def _told(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _entry(cls: type, name: str) -> RegisteredType:
    if not isinstance(cls, type):
        msg = f"register_type: cls must be a class, got {cls!r}."
        raise UsageError(msg)
    if issubclass(cls, enum.Enum):
        return Enumeration(cls, name)
    if is_model(cls):
        return Model(cls, name)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return Tuple(cls, name)
    if "__dataclass_fields__" not in cls.__dict__:
        msg = (
            f"register_type: {_told(cls)} must be a dataclass, an enum, a pydantic model or a "
            "NamedTuple. Decorate it with @dataclass."
        )
        raise UsageError(msg)
    foreign = next(
        (base for base in cls.__mro__[:-1] if not base.__flags__ & _MADE_BY_PYTHON), None
    )
    if foreign is not None:
        msg = (
            f"register_type: {_told(cls)} has more state than its fields, because it is also a "
            f"{foreign.__name__}. Store that state in a field."
        )
        raise UsageError(msg)
    if not isabstract(cls) and not hasattr(cls, "__del__"):
        try:
            object.__new__(cls)
        except TypeError as error:
            msg = (
                f"register_type: {_told(cls)} has more state than its fields: {error}. Store "
                "that state in fields."
            )
            raise UsageError(msg) from error
    return Dataclass(cls, name)
