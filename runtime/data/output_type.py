"""The type of a run's output, for type checkers.

Agents, Runners, runs and results have the parameter `OutputT_co`; without one it is `Any`. It is
not used at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar
else:
    import typing

    def TypeVar(name: str, *, covariant: bool, default: object) -> object:  # noqa: N802 -- the default is for type checkers, and the import takes time
        del default
        return typing.TypeVar(name, covariant=covariant)


__all__ = ["OutputT_co"]

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)
