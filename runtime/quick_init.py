"""Quick constructors for frozen values.

Owns: a decorator that gives a frozen, slotted dataclass a constructor which sets the slots by plain assignment. The constructor of the standard library calls
`object.__setattr__`, by name, and takes four times as long: for all the values of a one-turn run, that is a tenth of its time. While it is being filled in,
a value is of a class with the same layout that is not frozen: a subclass that adds nothing, for between other classes Python compares the names of the slots.
It must never change what a constructor accepts or checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, ParamSpec, TypeVar

__all__ = ["draft_of", "maker", "quick"]

P = ParamSpec("P")
T = TypeVar("T")


def draft_of(cls: type[Any]) -> Any:
    """A class of which an instance of that frozen one can be while it is filled in. It becomes a frozen one by its `__class__`."""
    slots = {field.name: getattr(cls, field.name) for field in fields(cls)}  # as they are now, whatever will stand in front of one later
    plain = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
    kind: Any = type(cls)
    return kind(f"{cls.__name__}InTheMaking", (cls,), {"__slots__": (), **slots, **plain})


def quick(cls: type[T]) -> type[T]:
    """Replace the constructor. Parameters, defaults, their order and `__post_init__` stay as they are."""
    names, parameters, values = _signature(cls)
    names |= {"_DRAFT": draft_of(cls), "_become": vars(object)["__class__"].__set__}
    lines = [f"def __init__({', '.join(['self', *parameters])}):", " if _type(self) is _CLASS:", "  _become(self, _DRAFT)"]
    lines += [*(f"  self.{name} = {value}" for name, value in values.items()), "  self.__class__ = _CLASS"]
    lines += [" else:", *(f"  _set_{name}(self, {value})" for name, value in values.items())]  # a subclass may have another layout
    init = _compiled("__init__", cls, names, lines)
    init.__annotations__ = vars(cls)["__init__"].__annotations__
    setattr(cls, "__init__", init)  # noqa: B010 -- a type checker forbids the plain assignment
    return cls


def maker(cls: Callable[P, T]) -> Callable[P, T]:
    """A function that makes an instance of that frozen class as its constructor does, in less time: an instance is not frozen before it is filled in."""
    kind: Any = cls
    names, parameters, values = _signature(kind)
    names["_DRAFT"] = draft_of(kind)
    lines = [f"def make({', '.join(parameters)}):", " self = _DRAFT()", *(f" self.{name} = {value}" for name, value in values.items())]
    made: Callable[P, T] = _compiled("make", kind, names, [*lines, " self.__class__ = _CLASS"], " return self")
    return made


def _signature(cls: type[Any]) -> tuple[dict[str, object], list[str], dict[str, str]]:
    """What the text of a function that fills in an instance may name, its parameters, and by what each field gets its value."""
    names: dict[str, object] = {"_CLASS": cls, "_MADE": MISSING, "_type": type}
    parameters, values = [], {}
    for field in fields(cls):
        names[f"_set_{field.name}"] = getattr(cls, field.name).__set__
        values[field.name] = field.name
        if field.default_factory is not MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            parameters.append(f"{field.name}=_MADE")
            values[field.name] = f"_make_{field.name}() if {field.name} is _MADE else {field.name}"
        elif field.default is not MISSING:
            names[f"_default_{field.name}"] = field.default
            parameters.append(f"{field.name}=_default_{field.name}")
        else:
            parameters.append(field.name)
    return names, parameters, values


def _compiled(name: str, cls: type[Any], names: dict[str, object], lines: list[str], *after: str) -> Any:
    checks = [" self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    made: dict[str, Any] = {}
    exec("\n".join([*lines, *checks, *after]), names, made)  # noqa: S102 -- as in dataclasses: made of the names of the class itself
    made[name].__qualname__ = f"{cls.__qualname__}.{name}"
    made[name].__module__ = cls.__module__
    return made[name]
