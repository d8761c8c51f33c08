"""The kinds of classes that may be registered, except pydantic's, and the encoding of their
instances.

A registered value is the array `[mark, values of its fields…]`. The mark's payload is the type's
name and the names of the fields, so that bytes of a class that had other fields, or the same in
another order, can still be read; if nothing has changed, the whole payload is found in a table, and
nothing is compared. After the fields there may be a table of other attributes of the instance.

Decoding never runs a user's code: the effects of a constructor, a `__post_init__` or a default
happened when the value was made. Repeated, they might give another value, or refuse an existing
one.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from functools import cached_property
from operator import attrgetter
from types import MemberDescriptorType
from typing import Final

from msgpack import ExtType  # type: ignore[import-untyped]  # it has no stubs

from ..data.value import Value, field_names
from ..errors import CheckpointError, UsageError
from .builtin import TYPE, Encoder, Mark

__all__ = ["UNSET", "Constructed", "Dataclass", "Enumeration", "RegisteredType", "Tuple", "beside"]

UNSET: Final = object()
"""Marks a field that an instance does not have."""


def beside(cls: type, held: dict[str, object], known: frozenset[str]) -> dict[str, object]:
    """Return the attributes of an instance that are neither fields, cached properties, nor
    Python's.
    """
    return {
        name: value
        for name, value in held.items()
        if name not in known
        and not _is_pythons(name)
        and not isinstance(getattr(cls, name, None), cached_property)
    }


def _is_pythons(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _several(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    """Return a getter of a tuple of attributes, for any number of names."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        one = attrgetter(names[0])
        return lambda value: (one(value),)
    return lambda _value: ()


class RegisteredType(Mark):
    """A registered class. The entry itself is the mark of its current form."""

    __slots__ = ("cls", "ext", "name", "names")

    code = TYPE

    def __init__(self, cls: type, name: str, names: tuple[str, ...]) -> None:
        super().__init__(self.read)
        self.cls = cls
        self.name = name
        self.names = names
        self.ext = ExtType(self.code, "\0".join((name, *names)).encode())

    def encoder(self) -> Encoder:
        raise NotImplementedError

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        """Return an instance with those fields; `extra` has the items after them."""
        raise NotImplementedError

    def parts(self, value: object) -> Iterator[tuple[str, object]]:
        """Yield the parts of an instance, each with its path, for messages."""
        return ((f".{name}", getattr(value, name, UNSET)) for name in self.names)

    def read(self, items: list[object]) -> object:
        return self._checked(self.names, items)

    def other_form(self, names: tuple[str, ...]) -> Mark:
        """Return the mark of bytes that were written when the class had those fields."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            msg = (
                f"{self.name} has no field {unknown[0]!r}, but the stored data has. Add the "
                "field again, or register the former class under that name."
            )
            raise CheckpointError(msg)
        if len(set(names)) != len(names):
            msg = (
                f"the stored {self.name} has a field twice. The data is damaged: restore it from "
                "a backup."
            )
            raise CheckpointError(msg)
        return Mark(lambda items: self._checked(names, items))

    def _checked(self, names: tuple[str, ...], items: list[object]) -> object:
        if len(items) <= len(names):
            msg = (
                f"the stored {self.name} has {len(items) - 1} values for {len(names)} fields. "
                "The data is damaged: restore it from a backup."
            )
            raise CheckpointError(msg)
        end = len(names) + 1
        return self.made(dict(zip(names, items[1:end], strict=True)), items[end:])

    def made(self, values: dict[str, object], extra: list[object]) -> object:
        """Call `make`, and report any error as damage: it comes from the class's own checks."""
        try:
            return self.make(values, extra)
        except CheckpointError:
            raise
        except Exception as error:
            msg = (
                f"{self.name} cannot be built from the stored data: {type(error).__name__}: "
                f"{error}. Let the class accept the stored values."
            )
            raise CheckpointError(msg) from error

    def _nothing_more(self, extra: list[object]) -> None:
        if extra:
            msg = (
                f"the stored {self.name} has more values than fields. The data is damaged: "
                "restore it from a backup."
            )
            raise CheckpointError(msg)


class Constructed(RegisteredType):
    """A value of this package, made by its constructor.

    The constructor validates data from outside, and changes no field.
    """

    __slots__ = ()

    def __init__(self, cls: type, name: str) -> None:
        is_value = issubclass(cls, Value)
        names = field_names(cls) if is_value else [item.name for item in dataclasses.fields(cls)]
        super().__init__(cls, name, tuple(names))

    def encoder(self) -> Encoder:
        ext, values_of = self.ext, _several(self.names)
        return lambda value: [ext, *values_of(value)]

    def read(self, items: list[object]) -> object:
        if len(items) != len(self.names) + 1:
            return super().read(items)
        try:
            return self.cls(*items[1:])
        except Exception as error:
            msg = (
                f"{self.name} cannot be built from the stored data: {type(error).__name__}: "
                f"{error}. Let the class accept the stored values."
            )
            raise CheckpointError(msg) from error

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        self._nothing_more(extra)
        return self.cls(**values)


class Dataclass(RegisteredType):
    """A user's dataclass: all fields and other attributes get back exactly their stored values."""

    __slots__ = ("_hidden", "_in_dict", "_known", "_slots")

    def __init__(self, cls: type, name: str) -> None:
        super().__init__(cls, name, tuple(item.name for item in dataclasses.fields(cls)))
        self._known = frozenset(self.names)
        self._slots = {
            item: found.__set__ for item in self.names if (found := _slot(cls, item)) is not None
        }
        self._in_dict = self._known - self._slots.keys()
        hidden = {
            item
            for klass in cls.__mro__
            for item, found in vars(klass).items()
            if type(found) is MemberDescriptorType
        } - self._known
        self._hidden = {
            item: found.__set__
            for item in sorted(hidden)
            if (found := _slot(cls, item)) is not None
        }

    def encoder(self) -> Encoder:
        ext, values_of = self.ext, _several(self.names)
        if not self.cls.__dictoffset__ and not self._hidden:
            return lambda value: [ext, *values_of(value)]
        in_dict = self._in_dict

        def encode(value: object) -> list[object]:
            items = [ext, *values_of(value)]
            if self._hidden or vars(value).keys() != in_dict:
                more = self._more(value)
                if more:
                    items.append(more)
            return items

        return encode

    def _more(self, value: object) -> dict[str, object]:
        more = beside(self.cls, vars(value), self._known) if self.cls.__dictoffset__ else {}
        more.update(
            (name, item)
            for name in self._hidden
            if (item := getattr(value, name, UNSET)) is not UNSET
        )
        return more

    def parts(self, value: object) -> Iterator[tuple[str, object]]:
        yield from super().parts(value)
        yield from ((f".{name}", item) for name, item in self._more(value).items())

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        more = self._checked_more(extra) if extra else {}
        if len(values) != len(self.names):
            self._add_missing(values)
        made: object = object.__new__(self.cls)
        for name, put in self._slots.items():
            put(made, values.pop(name))
        for name, item in more.items():
            put_hidden = self._hidden.get(name)
            if put_hidden is None:
                values[name] = item
            else:
                put_hidden(made, item)
        if values:
            object.__getattribute__(made, "__dict__").update(values)
        return made

    def _checked_more(self, extra: list[object]) -> dict[str, object]:
        more = extra[0]
        if len(extra) != 1 or type(more) is not dict or not all(type(name) is str for name in more):
            msg = (
                f"the stored {self.name} has more values than fields. The data is damaged: "
                "restore it from a backup."
            )
            raise CheckpointError(msg)
        for name in more:
            if (
                name in self._known
                or _is_pythons(name)
                or not (name in self._hidden or self.cls.__dictoffset__)
            ):
                msg = (
                    f"{self.name} has no field {name!r}, but the stored data has it. Add the "
                    "field again."
                )
                raise CheckpointError(msg)
        return more

    def _add_missing(self, values: dict[str, object]) -> None:
        """Fill in fields that the class has gained since the bytes were written."""
        for item in dataclasses.fields(self.cls):
            if item.name in values:
                continue
            if item.default is not dataclasses.MISSING:
                values[item.name] = item.default
            elif item.default_factory is not dataclasses.MISSING:
                values[item.name] = item.default_factory()
            else:
                msg = (
                    f"the stored {self.name!r} lacks the field {item.name!r}. Add a "
                    "default to the field."
                )
                raise CheckpointError(msg)


def _slot(cls: type, name: str) -> MemberDescriptorType | None:
    """Return the slot of that attribute; None if it is in the `__dict__` of instances."""
    found = next((vars(klass)[name] for klass in cls.__mro__ if name in vars(klass)), None)
    if type(found) is MemberDescriptorType:
        return found
    if hasattr(type(found), "__set__"):
        msg = (
            f"register_type: the field {name!r} of {cls.__qualname__} is a "
            f"{type(found).__name__}, whose contents are unknown. Make it a plain field."
        )
        raise UsageError(msg)
    return None


class Tuple(RegisteredType):
    """A named tuple."""

    __slots__ = ()

    def __init__(self, cls: type, name: str) -> None:
        super().__init__(cls, name, tuple(cls._fields))  # type: ignore[attr-defined]  # it is a named tuple

    def encoder(self) -> Encoder:
        ext, length = self.ext, len(self.names)

        def encode(value: tuple[object, ...]) -> list[object]:
            if len(value) != length or getattr(value, "__dict__", None):
                msg = (
                    f"{self.name} must have one value for each field, but the stored data has "
                    "not. Add or remove fields to match it."
                )
                raise CheckpointError(msg)
            return [ext, *value]

        return encode

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        self._nothing_more(extra)
        if len(values) != len(self.names):
            values = {**self.cls._field_defaults, **values}  # type: ignore[attr-defined]  # it is a named tuple
        missing = [name for name in self.names if name not in values]
        if missing:
            msg = (
                f"the stored {self.name!r} lacks the field {missing[0]!r}. Add a default "
                "to the field."
            )
            raise CheckpointError(msg)
        made: object = tuple.__new__(self.cls, [values[name] for name in self.names])
        return made


class Enumeration(RegisteredType):
    """An enum, written by the name of the member; flags, which can be combined, by their number."""

    __slots__ = ()

    def __init__(self, cls: type, name: str) -> None:
        super().__init__(cls, name, ())

    def encoder(self) -> Encoder:
        ext = self.ext
        if issubclass(self.cls, enum.Flag):
            return lambda value: [ext, value.value]
        members = self.cls.__members__  # type: ignore[attr-defined]  # it is an enum

        def encode(value: enum.Enum) -> list[object]:
            if members.get(value.name) is not value:
                msg = (
                    f"{self.name} has no member {value.name!r}, but the stored data has. Add the "
                    "member again."
                )
                raise CheckpointError(msg)
            return [ext, value.name]

        return encode

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        del values
        is_flag = issubclass(self.cls, enum.Flag)
        if len(extra) != 1 or type(extra[0]) is not (int if is_flag else str):
            msg = (
                f"the stored member of {self.name} must be a name or a number. The data is "
                "damaged: restore it from a backup."
            )
            raise CheckpointError(msg)
        if is_flag:
            return self.cls(extra[0])
        member = self.cls.__members__.get(extra[0])  # type: ignore[attr-defined]  # it is an enum
        if member is None:
            msg = (
                f"{self.name} has no member {extra[0]!r}, but the stored data has. Add the member "
                "again."
            )
            raise CheckpointError(msg)
        return member
