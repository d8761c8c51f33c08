"""What is meant: which option where one is misspelt, and which store where its address is given.

Owns: the hints, and how a constructor or method gives it. Python suggests a name itself from 3.13 on; users of an older one are told as much.
It must never change what a call accepts: an option that is right takes no other way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

__all__ = ["meant", "store_meant", "suggests_option", "suggests_options"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_NAMED: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def meant(name: str, known: Iterable[str]) -> str:
    """What is said of an option that there is not: the one that is meant, or else all that there are."""
    names = list(known)
    from difflib import get_close_matches  # noqa: PLC0415 -- needed only where something is wrong

    close = get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"It takes: {', '.join(names)}."


def suggests_options(cls: type[T]) -> type[T]:
    """Have the constructor of a class say which option is meant."""
    setattr(cls, "__init__", suggests_option(cls.__name__)(vars(cls)["__init__"]))  # noqa: B010 -- a type checker forbids the plain assignment
    return cls


def suggests_option(called: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have a method say which option is meant. `called` is how its callers name it."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except TypeError as error:
                trace = error.__traceback__
                if trace is None or trace.tb_next is not None:
                    raise  # it comes from further down
                msg = _misspelt(called, function, options)
                if msg is None:
                    raise
                raise TypeError(msg) from None

        return checked

    return decorate


def _misspelt(called: str, function: Callable[..., object], options: Iterable[str]) -> str | None:
    parameters = inspect.signature(function).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind in _NAMED and parameter.name != "self"]
    return next((f"{called}() got an unexpected keyword argument {name!r}. {meant(name, known)}" for name in options if name not in known), None)


def store_meant(text: str) -> str:
    """How the store is made whose address or file was given; no password is repeated."""
    scheme, separator, rest = text.partition("://")
    shown = "url" if "@" in text else repr(text)
    if scheme in ("redis", "rediss", "unix"):
        return f"RedisStore({shown})"
    if scheme in ("postgres", "postgresql"):
        return f"PostgresStore({shown})"
    return f"SQLiteStore({(rest.removeprefix('/') if separator else text)!r}), or MemoryStore()"
