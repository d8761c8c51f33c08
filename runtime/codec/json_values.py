"""Values of types that are not registered, as JSON values.

A `repr` is never used, because no program can rebuild the value from it.
"""

from __future__ import annotations

from ..errors import CheckpointError
from .packing import pack

__all__ = ["as_plain", "fits"]


def fits(value: object) -> bool:
    """Return whether the value can be packed as it is."""
    try:
        pack(value)
    except CheckpointError:
        return False
    return True


def as_plain(value: object) -> object:
    """Return the JSON value of a model, a dataclass, a container or a date.

    Raises `CheckpointError` if it has none.
    """
    from pydantic_core import PydanticSerializationError, to_jsonable_python  # noqa: PLC0415 -- only values that are not registered need it

    try:
        return to_jsonable_python(value, by_alias=True)
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        msg = f"{type(value).__qualname__} must have a JSON form: {error}. Use plain data in it"
        raise CheckpointError(msg) from error
