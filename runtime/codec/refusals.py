"""Error messages for values that cannot be written: the path in the value, the reason, and the fix.

It also searches for values that msgpack writes natively, but that would come back as something
else. It runs only after a failure, or for a value whose bytes look suspicious.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, TypeAlias

from msgpack import ExtType, Timestamp  # type: ignore[import-untyped]  # it has no stubs

from ..data import chat, events
from ..errors import CheckpointError
from .collisions import checked_keys, collide
from .kinds import UNSET
from .registered import Registry

__all__ = ["DEEPEST", "is_strange", "refusal"]

DEEPEST: Final = 200

_NATIVE: Final = frozenset((type(None), bool, int, float, str, bytes, list, dict))
_SCALARS: Final = frozenset((type(None), bool, int, float, str, bytes))
_CONTAINERS: Final = frozenset((list, tuple, set, frozenset))
# Types that msgpack writes natively, in a form that decodes to something else.
_STRANGE: Final = frozenset((bytearray, memoryview, ExtType, Timestamp))
_AS_BYTES: Final = "it would come back as bytes. Write bytes(...) if that is acceptable."
_Getter: TypeAlias = Callable[[Any], Collection[object]]


def _of_event(event: events.AgentEvent) -> Collection[object]:
    if event.custom_output is None and event.action is None:
        return _of_message(event.message)
    return event.message, event.custom_output, event.action


def _of_message(message: chat.Message | None) -> Collection[object]:
    if type(message) is not chat.Message:
        return () if message is None else (message,)
    return () if type(message.content) is str else message.content


# The parts of the most frequent classes that can be of any type: their other fields are strings and
# numbers.
_LOOSE: Final[dict[type, _Getter]] = {
    events.AgentEvent: _of_event,
    chat.Message: _of_message,
    **dict.fromkeys(
        (chat.MessageDelta, chat.ToolCall, chat.ToolCallDelta, chat.Usage), lambda _value: ()
    ),
}


def is_strange(values: Collection[object], registry: Registry) -> bool:
    """Return whether msgpack has written something natively that cannot be read back as it is.

    That includes keys that would take too long to read.
    """
    kinds = set(map(type, values))
    if not kinds.isdisjoint(_STRANGE):
        return True
    return not kinds <= _SCALARS and any(
        _has_strange(value, registry) for value in values if type(value) not in _SCALARS
    )


def _has_strange(value: object, registry: Registry) -> bool:
    kind = type(value)
    getter = _LOOSE.get(kind)
    if getter is not None:
        inner = getter(value)
        return bool(inner) and is_strange(inner, registry)
    if isinstance(value, dict):
        return collide(value) or is_strange(value.values(), registry) or is_strange(value, registry)
    if kind in _CONTAINERS:
        return is_strange(value, registry)  # type: ignore[arg-type]  # it is one of those
    entry = registry.entries.get(kind)
    return entry is not None and is_strange([part for _, part in entry.parts(value)], registry)


def refusal(value: object, error: Exception, registry: Registry) -> CheckpointError:
    """Return the error that names the part that could not be written."""
    why = str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
    root = type(value).__qualname__ if type(value) in registry.entries else "value"
    path, told = _trouble(value, root, {}, registry) or (root, f"cannot be written: {why}")
    refused = CheckpointError(f"{path} {told}")
    refused.path = path
    return refused


def _trouble(
    value: object, path: str, above: dict[int, str], registry: Registry
) -> tuple[str, str] | None:
    """Return the path and the reason of the first part of the value that cannot be written.

    Stops at the maximum depth.
    """
    kind = type(value)
    if value is UNSET:
        return path, "is not set, so that the value could not be made again as it is."
    entry = registry.entries.get(kind)
    if kind in _STRANGE or (
        kind not in _NATIVE
        and kind not in registry.encoders
        and not isinstance(value, BaseException)
    ):
        name = kind.__qualname__
        advice = (
            _ADVICE.get(kind)
            or _of_builtin(kind, registry)
            or f"register_type({name}), or leave it out."
        )
        return path, f"is a {name}, which is not registered: {advice}"
    if id(value) in above:
        return path, f"is {above[id(value)]} again: a value that holds itself cannot be written."
    if len(above) >= DEEPEST + 1:
        return f"{path[:200]}…", f"is nested more than {DEEPEST} levels deep."
    above[id(value)] = path
    for step, part in entry.parts(value) if entry is not None else _items(value):
        found = _trouble(part, path + step, above, registry)
        if found is not None:
            return found
    del above[id(value)]
    try:
        if isinstance(value, dict | set | frozenset):
            checked_keys(value)
        elif kind in registry.encoders:
            registry.encoders[kind](value)
    except Exception as error:  # noqa: BLE001 -- a user's class may raise anything
        reason = error if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
        return path, f"cannot be written: {reason}"
    return None


def _of_builtin(kind: type, registry: Registry) -> str | None:
    """Return advice for a subclass of a type that is written without its class."""
    base = next(
        (known for known in kind.__mro__[1:] if known in _NATIVE or known in registry.encoders),
        None,
    )
    if base is None or hasattr(kind, "__members__") or hasattr(kind, "_fields"):
        return None
    return (
        f"it would come back as a plain {base.__name__}; write {base.__name__}(...) if that will "
        "do."
    )


def _items(value: object) -> Iterator[tuple[str, object]]:
    if type(value) is list or type(value) is tuple:
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif type(value) is set or type(value) is frozenset:
        yield from (("{…}", item) for item in value)
    elif type(value) is dict:
        for key, item in value.items():
            yield (".keys()", key)
            yield (f"[{key!r:.80}]", item)
    elif (zone := getattr(value, "tzinfo", None)) is not None:
        yield (".tzinfo", zone)


_ADVICE: Final = {
    type(refusal): "functions cannot be stored. Store a name instead.",
    type: "classes cannot be stored. Store a name instead.",
    bytearray: _AS_BYTES,
    memoryview: _AS_BYTES,
    **dict.fromkeys(
        (ExtType, Timestamp), "it is a part of the format. Store the value that it represents."
    ),
}
