"""The base of the immutable values that this package hands out and stores.

A value is a `msgspec.Struct`: a C type whose constructor costs a tenth of a frozen dataclass's. It
is compared by its fields, can be copied with changes, and can be a field of a pydantic model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_type_hints

import msgspec

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

__all__ = ["Value", "compared", "field_names", "table_of"]


class Value(msgspec.Struct, frozen=True):
    """An immutable value.

    A class with `gc=False` has only fields that cannot be part of a reference cycle, so the garbage
    collector need not look at its values, or at a tuple of them.
    """

    NOT_COMPARED: ClassVar[tuple[str, ...]] = ()
    """The fields in which equal values may differ."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with these fields changed."""
        return msgspec.structs.replace(self, **changes)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Let pydantic take an instance, or a mapping of its fields."""
        from pydantic_core import core_schema  # noqa: PLC0415 -- pydantic is imported when a model needs it

        fields = {
            name: core_schema.typed_dict_field(
                # A field whose type contains the value's own type accepts only instances.
                core_schema.any_schema() if _names(hint, cls) else handler.generate_schema(hint),
                required=required,
            )
            for name, hint, required in _fields(cls)
        }
        return core_schema.no_info_before_validator_function(
            lambda given: table_of(given) if isinstance(given, cls) else given,
            core_schema.no_info_after_validator_function(
                lambda table: cls(**table),
                core_schema.typed_dict_schema(fields, extra_behavior="forbid"),
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(_plain),
        )


def _fields(cls: type[Value]) -> Iterator[tuple[str, Any, bool]]:
    hints = get_type_hints(cls)
    for field in msgspec.structs.fields(cls):
        yield field.name, hints[field.name], field.required


def _names(hint: object, cls: type) -> bool:
    """Return True if a type contains that class."""
    return hint is cls or any(_names(part, cls) for part in getattr(hint, "__args__", ()))


def _plain(value: object) -> object:
    """Return the value with a table in place of each value in it, for pydantic to serialize."""
    if isinstance(value, Value):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value


def field_names(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the fields, in order."""
    return cls.__struct_fields__


def table_of(value: object) -> dict[str, Any] | None:
    """Return the fields of a value or a dataclass by name, or None if it is neither.

    The field values are not converted.
    """
    names: Iterable[str] | None = getattr(type(value), "__struct_fields__", None)
    if names is None:
        names = getattr(type(value), "__dataclass_fields__", None)
    return None if names is None else {name: getattr(value, name, None) for name in names}


def compared(value: Value) -> tuple[object, ...]:
    """Return the values that distinguish two values of one type."""
    names = value.__struct_fields__
    return tuple([getattr(value, name) for name in names if name not in value.NOT_COMPARED])
