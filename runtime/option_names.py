"""Hints for misspelt options, and for addresses passed instead of a store.

Python suggests names itself from 3.13 on; this module does the same for older versions. It does not
change which calls are valid, and valid options cost nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

__all__ = ["meant", "refuse_unknown", "store_meant", "suggests_option", "suggests_options"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_NAMED: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def meant(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown option: the closest name, or else all names."""
    names = list(known)
    from difflib import get_close_matches  # noqa: PLC0415 -- needed only for an error

    close = get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"It takes: {', '.join(names)}."


def refuse_unknown(called: str, options: Iterable[str], known: Collection[str]) -> None:
    """Raise a `TypeError` for the first unknown option, as Python does, with a hint."""
    if (problem := _unknown(called, options, known)) is not None:
        raise TypeError(problem)


def suggests_options(cls: type[T]) -> type[T]:
    """Make the constructor of a class suggest the right option."""
    setattr(cls, "__init__", suggests_option(cls.__name__)(vars(cls)["__init__"]))  # noqa: B010 -- a type checker forbids the plain assignment
    return cls


def suggests_option(called: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a method suggest the right option. `called` is its name for callers."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except TypeError as error:
                trace = error.__traceback__
                if trace is None or trace.tb_next is not None:
                    raise  # raised further down
                msg = _misspelt(called, function, options)
                if msg is None:
                    raise
                raise TypeError(msg) from None

        return checked

    return decorate


def _misspelt(called: str, function: Callable[..., object], options: Iterable[str]) -> str | None:
    parameters = inspect.signature(function).parameters.values()
    known = [
        parameter.name
        for parameter in parameters
        if parameter.kind in _NAMED and parameter.name != "self"
    ]
    return _unknown(called, options, known)


def _unknown(called: str, options: Iterable[str], known: Collection[str]) -> str | None:
    return next(
        (
            f"{called}() got an unexpected keyword argument {name!r}. {meant(name, known)}"
            for name in options
            if name not in known
        ),
        None,
    )


def store_meant(text: str) -> str:
    """Return the code for the store that an address or file refers to, without its password."""
    scheme, separator, rest = text.partition("://")
    shown = "url" if "@" in text else repr(text)
    if scheme in ("redis", "rediss", "unix"):
        return f"RedisStore({shown})"
    if scheme in ("postgres", "postgresql"):
        return f"PostgresStore({shown})"
    return f"SQLiteStore({(rest.removeprefix('/') if separator else text)!r}), or MemoryStore()"
