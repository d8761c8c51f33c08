"""Encoding of pydantic models.

A model is `[mark, values of its fields…, names of the fields that were set, extra fields, private
attributes]`. An earlier form had the mark of other classes and no private attributes, and was made
by validators; it is read in the same way.

Decoding never validates: validators may change their input, and did so when the value was made.
`model_post_init` is not repeated either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ..errors import CheckpointError
from .builtin import MODEL, Encoder
from .kinds import UNSET, RegisteredType, beside

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Model", "is_model"]

_OLD: Final = 2
_PRESENT: Final = 3


def is_model(cls: type) -> TypeGuard[type[BaseModel]]:
    """Return whether it is a pydantic model. If pydantic was not imported, there are none."""
    pydantic = sys.modules.get("pydantic")
    base = getattr(pydantic, "BaseModel", None) if pydantic is not None else None
    return isinstance(base, type) and issubclass(cls, base) and cls is not base


class Model(RegisteredType):
    __slots__ = ("_known",)

    cls: type[BaseModel]
    code = MODEL

    def __init__(self, cls: type[BaseModel], name: str) -> None:
        super().__init__(cls, name, tuple(cls.__pydantic_fields__))
        self._known = frozenset(self.names)

    def encoder(self) -> Encoder:
        ext, names = self.ext, self.names

        def encode(value: BaseModel) -> list[object]:
            held, private = value.__dict__, value.__pydantic_private__
            if len(held) != len(names):
                self._check_held(held)
            if self.cls.__private_attributes__:
                self._check_private(private)
            return [
                ext,
                *[held[name] for name in names],
                sorted(value.__pydantic_fields_set__),
                value.__pydantic_extra__ or None,
                private,
            ]

        return encode

    def _check_held(self, held: dict[str, object]) -> None:
        more = beside(self.cls, held, self._known)
        if more:
            msg = (
                f"the stored {self.name} has {next(iter(more))!r}, which must be a field or a "
                "private attribute. Declare it in the class."
            )
            raise CheckpointError(msg)

    def _check_private(self, private: dict[str, Any] | None) -> None:
        """Raise if a private attribute with a default is missing: reading would restore it."""
        for name, attribute in self.cls.__private_attributes__.items():
            if (private is None or name not in private) and (
                attribute.default_factory is not None or not _is_undefined(attribute.default)
            ):
                msg = (
                    f"the stored {self.name} lacks the private attribute {name!r}. Set it before "
                    "the value is stored."
                )
                raise CheckpointError(msg)

    def parts(self, value: object) -> Iterator[tuple[str, object]]:
        held = vars(value)
        yield from ((f".{name}", held.get(name, UNSET)) for name in self.names)
        for more in (
            getattr(value, "__pydantic_extra__", None),
            getattr(value, "__pydantic_private__", None),
        ):
            yield from ((f".{name}", item) for name, item in (more or {}).items())

    def make(self, values: dict[str, object], extra: list[object]) -> object:
        given, more, private = self._shape(extra)
        if len(values) != len(self.names):
            self._add_missing(values)
        for name in self.cls.__private_attributes__.keys() - private.keys():
            attribute = self.cls.__private_attributes__[name]
            default = (
                attribute.get_default()
                if attribute.default_factory is None
                else attribute.default_factory()  # type: ignore[call-arg]  # none takes any
            )
            if not _is_undefined(default):
                private[name] = default
        made: object = object.__new__(self.cls)
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", set(given))
        # A root model has no attributes for these: they would become fields.
        for place, held in (
            ("__pydantic_extra__", more if self.cls.model_config.get("extra") == "allow" else None),
            ("__pydantic_private__", private if self.cls.__private_attributes__ else None),
        ):
            if held is not None or getattr(self.cls, place, self) is not None:
                object.__setattr__(made, place, held)
        return made

    def _add_missing(self, values: dict[str, object]) -> None:
        """Fill in fields that the class has gained since the bytes were written."""
        for name, item in self.cls.__pydantic_fields__.items():
            if name not in values:
                if item.is_required():
                    msg = (
                        f"the stored {self.name!r} lacks the field {name!r}. Add a default "
                        "to the field."
                    )
                    raise CheckpointError(msg)
                values[name] = item.get_default(call_default_factory=True, validated_data=values)

    def _shape(self, extra: list[object]) -> tuple[list[str], dict[str, object], dict[str, object]]:
        given, more, private = (
            extra
            if len(extra) == _PRESENT
            else (*extra, None)
            if len(extra) == _OLD
            else (None, None, None)
        )
        if (
            type(given) is not list
            or not all(type(name) is str for name in given)
            or not _is_table(more)
            or not _is_table(private)
        ):
            msg = (
                f"the stored {self.name} does not have the form of a pydantic model. If the "
                "class has changed, make it a pydantic model again."
            )
            raise CheckpointError(msg)
        more, private = more or {}, private or {}
        if more and self.cls.model_config.get("extra") != "allow":
            msg = (
                f"{self.name} has no field {next(iter(more))!r}, but the stored data has. Add it "
                "again."
            )
            raise CheckpointError(msg)
        unknown = private.keys() - self.cls.__private_attributes__.keys()
        if unknown or self._known & more.keys():
            msg = (
                f"the stored {self.name} names unknown fields, or a field twice. The data is "
                "damaged: restore it from a backup."
            )
            raise CheckpointError(msg)
        return given, more, private


def _is_table(value: object) -> TypeGuard[dict[str, object] | None]:
    return value is None or (type(value) is dict and all(type(name) is str for name in value))


def _is_undefined(value: object) -> bool:
    return type(value).__name__ == "PydanticUndefinedType"
