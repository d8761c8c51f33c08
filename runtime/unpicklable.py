"""A base class for objects that cannot be pickled, with an error that explains the alternative.

Copying within the process still works.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, NoReturn, Self, TypeVar

__all__ = ["Unpicklable"]

T = TypeVar("T")


class Unpicklable:
    """The base of classes whose instances belong to their process."""

    __slots__ = ()

    __why_not_pickled__: ClassVar[str]
    """The reason and the advice, as sentences."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        msg = f"a {type(self).__name__} cannot be pickled: {self.__why_not_pickled__}"
        raise TypeError(msg)

    def __copy__(self) -> Self:
        return _fill(object.__new__(type(self)), self.__getstate__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = object.__new__(type(self))
        return _fill(made, copy.deepcopy(self.__getstate__(), memo))


def _fill(made: T, state: Any) -> T:
    """Set the state of a new object, as `object.__getstate__` of another one returned it."""
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            object.__setattr__(made, name, value)
    return made
