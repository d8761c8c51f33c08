"""Quick constructors for frozen values.

Owns: a decorator that gives a frozen, slotted dataclass a constructor which sets the slots by plain assignment. The constructor of the standard library calls
`object.__setattr__`, by name, and takes four times as long: for all the values of a one-turn run, that is a tenth of its time. While it is being filled in,
a value is of a class with the same layout that is not frozen: a subclass that adds nothing, for between other classes Python compares the names of the slots.
It must never change what a constructor accepts or checks.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

__all__ = ["draft_of", "quick"]

T = TypeVar("T")


def draft_of(cls: type[Any]) -> Any:
    """A class of which an instance of that frozen one can be while it is filled in. It becomes a frozen one by its `__class__`."""
    slots = {field.name: getattr(cls, field.name) for field in fields(cls)}  # as they are now, whatever will stand in front of one later
    plain = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
    return type(cls)(f"{cls.__name__}InTheMaking", (cls,), {"__slots__": (), **slots, **plain})


def quick(cls: type[T]) -> type[T]:
    """Replace the constructor. Parameters, defaults, their order and `__post_init__` stay as they are."""
    draft = draft_of(cls)
    names: dict[str, object] = {"_CLASS": cls, "_DRAFT": draft, "_MADE": MISSING, "_type": type, "_become": vars(object)["__class__"].__set__}
    parameters, plain, by_slots = ["self"], [], []
    for field in fields(cls):  # type: ignore[arg-type]  # it is a dataclass
        names[f"_set_{field.name}"] = getattr(cls, field.name).__set__
        value = field.name
        if field.default_factory is not MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            parameters.append(f"{field.name}=_MADE")
            value = f"_make_{field.name}() if {field.name} is _MADE else {field.name}"
        elif field.default is not MISSING:
            names[f"_default_{field.name}"] = field.default
            parameters.append(f"{field.name}=_default_{field.name}")
        else:
            parameters.append(field.name)
        plain.append(f"  self.{field.name} = {value}")
        by_slots.append(f"  _set_{field.name}(self, {value})")
    lines = [f"def __init__({', '.join(parameters)}):", " if _type(self) is _CLASS:", "  _become(self, _DRAFT)", *plain, "  self.__class__ = _CLASS"]
    lines += [" else:", *by_slots]  # a subclass may have another layout
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    source = "\n".join(lines)
    made: dict[str, Any] = {}
    exec(source, names, made)  # noqa: S102 -- as in dataclasses: made of the names of the class itself
    init = made["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = vars(cls)["__init__"].__annotations__
    setattr(cls, "__init__", init)  # noqa: B010 -- a type checker forbids the plain assignment
    return cls
