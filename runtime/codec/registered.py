"""Which classes may be written, under which names, and how their instances are taken apart and made again.

A registered value is the array `[mark, values of its fields…]`. The mark's payload is the type's name and the names of the fields, so that bytes of a class
that had other fields, or the same in another order, can still be read; where nothing has changed, the payload as a whole is known, and nothing is compared.

Owns: the registry, and the four kinds of classes. Nothing is ever found by importing: a name that has not been registered is an error.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import threading
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, TypeGuard

from msgpack import ExtType  # type: ignore[import-untyped]  # it has no stubs

from ..errors import CheckpointError, UsageError
from .builtin import TYPE, VALUE_ENCODERS, Encoder, Mark

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["RegisteredType", "Registry"]

# An instance of one of these holds more than its fields.
_OF_ITS_OWN = (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, BaseException)


def _several(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    """A getter of a tuple of attributes, however many they are."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        one = attrgetter(names[0])
        return lambda value: (one(value),)
    return lambda _value: ()


class RegisteredType(Mark):
    """A registered class. The mark of its present form is the entry itself."""

    __slots__ = ("cls", "ext", "name", "names")

    def __init__(self, cls: type, name: str, names: tuple[str, ...]) -> None:
        super().__init__(self.read)
        self.cls = cls
        self.name = name
        self.names = names
        self.ext = ExtType(TYPE, "\0".join((name, *names)).encode())

    def encoder(self) -> Encoder:
        raise NotImplementedError

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        """An instance with those fields; `extra` is what comes after them."""
        raise NotImplementedError

    def parts(self, value: object) -> Iterator[tuple[str, object]]:
        """What is in an instance, with how to say where: for messages."""
        return ((f".{name}", getattr(value, name, None)) for name in self.names)

    def read(self, items: list[object]) -> object:
        return self._checked(self.names, items)

    def of_other_form(self, names: tuple[str, ...]) -> Mark:
        """The mark of bytes that were written when the class had those fields."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            msg = f"{self.name} has no field {unknown[0]!r}, but the bytes have. Give the field back, or register the class as it was under that name."
            raise CheckpointError(msg)
        if len(set(names)) != len(names):
            msg = f"{self.name} has a field twice."
            raise CheckpointError(msg)
        return Mark(lambda items: self._checked(names, items))

    def _checked(self, names: tuple[str, ...], items: list[object]) -> object:
        if len(items) <= len(names):
            msg = f"{self.name} has {len(items) - 1} values for {len(names)} fields."
            raise CheckpointError(msg)
        end = len(names) + 1
        return self.made(dict(zip(names, items[1:end], strict=True)), items[end:])

    def made(self, values: dict[str, object], extra: list[object]) -> object:
        """As `make`; whatever goes wrong there is damage, because the class's own checks are what refuses it."""
        try:
            return self.make(values, extra)
        except CheckpointError:
            raise
        except Exception as error:
            msg = f"{self.name} cannot be made of what the bytes hold: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error

    def _nothing_more(self, extra: list[object]) -> None:
        if extra:
            msg = f"{self.name} has more values than fields."
            raise CheckpointError(msg)


class _Dataclass(RegisteredType):
    """Made by its constructor, so that its own checks see what comes from outside; then each field gets back exactly what it held."""

    __slots__ = ("_has_init", "_later", "_positional")

    def __init__(self, cls: type, name: str) -> None:
        fields = dataclasses.fields(cls)
        super().__init__(cls, name, tuple(item.name for item in fields))
        self._has_init = cls.__dict__["__dataclass_params__"].init
        plain = self._has_init and all(item.init and not item.kw_only for item in fields)
        changes = not plain or hasattr(cls, "__post_init__")
        given = frozenset(item.name for item in fields if item.init) if self._has_init else frozenset()
        self._later = tuple((item.name, item.name in given) for item in fields) if changes else ()
        self._positional = plain

    def encoder(self) -> Encoder:
        ext, values_of = self.ext, _several(self.names)
        return lambda value: [ext, *values_of(value)]

    def read(self, items: list[object]) -> object:
        if not self._positional or len(items) != len(self.names) + 1:
            return super().read(items)
        try:
            made = self.cls(*items[1:])
        except Exception as error:
            msg = f"{self.name} cannot be made of what the bytes hold: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error
        if self._later:
            for (name, _), value in zip(self._later, items[1:], strict=True):
                if getattr(made, name) is not value:
                    object.__setattr__(made, name, value)
        return made

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        self._nothing_more(extra)
        if self._has_init:
            made = self.cls(**{name: values[name] for name, given in self._later or ((name, True) for name in self.names) if given and name in values})
        else:
            made = self._bare(values)
        for name, _ in self._later:
            if name in values:
                object.__setattr__(made, name, values[name])
        return made

    def _bare(self, values: dict[str, object]) -> object:
        made: object = object.__new__(self.cls)
        for item in dataclasses.fields(self.cls):
            if item.name in values:
                continue
            if item.default is not dataclasses.MISSING:
                object.__setattr__(made, item.name, item.default)
            elif item.default_factory is not dataclasses.MISSING:
                object.__setattr__(made, item.name, item.default_factory())
            else:
                msg = f"{self.name} needs a field {item.name!r}, which the bytes do not have."
                raise CheckpointError(msg)
        return made


class _NamedTuple(RegisteredType):
    __slots__ = ()

    def __init__(self, cls: type, name: str) -> None:
        super().__init__(cls, name, tuple(cls._fields))  # type: ignore[attr-defined]  # it is a named tuple

    def encoder(self) -> Encoder:
        ext = self.ext
        return lambda value: [ext, *value]

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        self._nothing_more(extra)
        return self.cls(**values)


class _Enum(RegisteredType):
    """Written by the name of the member; flags, of which there may be several at once, by their number."""

    __slots__ = ()

    def __init__(self, cls: type, name: str) -> None:
        super().__init__(cls, name, ())

    def encoder(self) -> Encoder:
        ext = self.ext
        if issubclass(self.cls, enum.Flag):
            return lambda value: [ext, value.value]
        return lambda value: [ext, value.name]

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        del values
        is_flag = issubclass(self.cls, enum.Flag)
        if len(extra) != 1 or type(extra[0]) is not (int if is_flag else str):
            msg = f"{self.name}: what stands for the member is neither a name nor a number."
            raise CheckpointError(msg)
        if is_flag:
            return self.cls(extra[0])
        member = self.cls.__members__.get(extra[0])  # type: ignore[attr-defined]  # it is an enum
        if member is None:
            msg = f"{self.name} has no member {extra[0]!r}."
            raise CheckpointError(msg)
        return member


class _Model(RegisteredType):
    """A pydantic model, made by its validation: values that are instances already pass it as they are. Private attributes are not kept."""

    __slots__ = ()

    cls: type[BaseModel]

    def __init__(self, cls: type[BaseModel], name: str) -> None:
        super().__init__(cls, name, tuple(cls.__pydantic_fields__))

    def encoder(self) -> Encoder:
        ext, names = self.ext, self.names

        def encode(value: BaseModel) -> list[object]:
            held = value.__dict__
            return [ext, *[held[name] for name in names], sorted(value.__pydantic_fields_set__), value.__pydantic_extra__ or None]

        return encode

    def parts(self, value: object) -> Iterator[tuple[str, object]]:
        yield from super().parts(value)
        yield from ((f".{name}", item) for name, item in (getattr(value, "__pydantic_extra__", None) or {}).items())

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        given, more = self._shape(extra)
        if getattr(self.cls, "__pydantic_root_model__", False):
            made = self.cls.model_validate(values["root"])
        else:
            made = self.cls.model_validate({**more, **values}, by_name=True, by_alias=False)
        object.__setattr__(made, "__pydantic_fields_set__", set(given))
        return made

    def _shape(self, extra: list[object]) -> tuple[list[str], dict[str, object]]:
        given, more = extra if len(extra) == 2 else (None, None)  # noqa: PLR2004 -- as `encode` writes it
        if not isinstance(given, list) or not isinstance(more, dict | None):
            msg = f"{self.name} is not written as a model is."
            raise CheckpointError(msg)
        more = more or {}
        if more and self.cls.model_config.get("extra") != "allow":
            msg = f"{self.name} has no field {next(iter(more))!r}, but the bytes have."
            raise CheckpointError(msg)
        if not all(isinstance(name, str) and (name in self.names or name in more) for name in (*given, *more)):
            msg = f"{self.name} names fields that it does not have."
            raise CheckpointError(msg)
        return given, more


class Registry:
    """The classes that may be written. Written under the lock, by whole assignments; read without it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, RegisteredType] = {}
        self.entries: dict[type, RegisteredType] = {}
        self.encoders: dict[type, Encoder] = dict(VALUE_ENCODERS)
        self._by_payload: dict[bytes, RegisteredType] = {}

    def add(self, cls: type, name: str | None = None) -> None:
        if name is None and isinstance(cls, type):
            name = f"{cls.__module__}.{cls.__qualname__}"
        if not isinstance(name, str) or not name or "\0" in name:
            msg = f"register_type: name={name!r} is no name; give a text such as 'shop.Cart'."
            raise UsageError(msg)
        entry = _entry(cls, name)
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
                self._by_payload[entry.ext.data] = entry
                self.entries[cls] = entry
                self.encoders[cls] = encoder

    def mark(self, payload: bytes) -> Mark:
        """The mark with that payload."""
        entry = self._by_payload.get(payload)
        if entry is not None:
            return entry
        name, *names = payload.decode().split("\0")
        known = self._by_name.get(name)
        if known is None:
            msg = f"the type {name[:200]!r} is not registered: register_type(...) has to be called before bytes that hold it are read."
            raise CheckpointError(msg)
        return known.of_other_form(tuple(names))


def _told(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_model(cls: type) -> TypeGuard[type[BaseModel]]:
    """Whether it is a pydantic model. Where pydantic has not been imported there are none."""
    pydantic = sys.modules.get("pydantic")
    base = getattr(pydantic, "BaseModel", None) if pydantic is not None else None
    return isinstance(base, type) and issubclass(cls, base) and cls is not base


def _entry(cls: type, name: str) -> RegisteredType:
    if not isinstance(cls, type):
        msg = f"register_type: {cls!r} is no class."
        raise UsageError(msg)
    if issubclass(cls, enum.Enum):
        return _Enum(cls, name)
    if _is_model(cls):
        return _Model(cls, name)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _NamedTuple(cls, name)
    if "__dataclass_fields__" not in cls.__dict__:
        msg = f"register_type: {_told(cls)} is neither a dataclass nor an enum, a pydantic model or a NamedTuple. Decorate it with @dataclass."
        raise UsageError(msg)
    if issubclass(cls, _OF_ITS_OWN):
        msg = f"register_type: {_told(cls)} is a dataclass, but holds more than its fields, because it is a {cls.__mro__[-2].__name__} as well."
        raise UsageError(msg)
    needed = [
        key
        for key, item in cls.__dict__["__dataclass_fields__"].items()
        if item._field_type is dataclasses._FIELD_INITVAR and item.default is dataclasses.MISSING  # type: ignore[attr-defined]  # no public way to tell
    ]
    if needed:
        msg = f"register_type: {_told(cls)} cannot be made again, because its InitVar {needed[0]!r} is not kept. Give it a default."
        raise UsageError(msg)
    return _Dataclass(cls, name)
