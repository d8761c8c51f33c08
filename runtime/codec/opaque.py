"""Values of types that only other processes have registered.

A process that forwards such a value writes it again exactly as it was read.
"""

from __future__ import annotations

from msgpack import ExtType  # type: ignore[import-untyped]  # it has no stubs

__all__ = ["OpaqueValue"]


class OpaqueValue:
    """A value of a type that is not registered here.

    `type_name` and `fields` show its content; forwarding it does not change it.
    """

    __slots__ = ("_code", "_items", "_payload")

    def __init__(self, code: int, payload: bytes, items: list[object]) -> None:
        self._code = code
        self._payload = payload
        self._items = items

    @property
    def type_name(self) -> str:
        """The name of the type in the process that registered it."""
        return self._payload.decode(errors="replace").partition("\0")[0]

    @property
    def fields(self) -> dict[str, object]:
        """The values by their names, as far as the names were written."""
        return dict(
            zip(self._payload.decode(errors="replace").split("\0")[1:], self._items, strict=False)
        )

    def __repr__(self) -> str:
        return f"<{self.type_name}, not registered here: {self.fields!r:.200}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueValue):
            return NotImplemented
        return (self._code, self._payload, self._items) == (
            other._code,
            other._payload,
            other._items,
        )

    def __hash__(self) -> int:
        return hash((self._code, self._payload))

    def written(self) -> list[object]:
        """Return the list that is written for it."""
        return [ExtType(self._code, self._payload), *self._items]
