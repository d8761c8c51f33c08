"""A program's own object, as a run's state keeps it.

Owns: how it is written and read, and what is said of one that cannot be. It must never guess a type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import UserError
from ..logger import logger
from ..run_context import RunContextWrapper

__all__ = ["context_data", "restored_context"]


def _meta(value: Any, via: str, *, needs: bool = False, omitted: bool = False) -> dict[str, Any]:
    if value is None:
        kind = "none"
    elif isinstance(value, Mapping):
        kind = "mapping"
    elif hasattr(value, "model_dump"):
        kind = "pydantic"
    else:
        kind = "dataclass" if dataclasses.is_dataclass(value) else "custom"
    meta: dict[str, Any] = {"original_type": kind, "serialized_via": via, "requires_deserializer": needs, "omitted": omitted}
    if kind not in ("none", "mapping"):
        meta["class_path"] = f"{type(value).__module__}:{type(value).__qualname__}"
    return meta


def context_data(value: Any, serializer: Callable[[Any], Any] | None, *, strict: bool) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The object as a mapping, and how it came to be one."""
    if value is None:
        return None, _meta(value, "none")
    if isinstance(value, Mapping):
        return dict(value), _meta(value, "mapping")
    if serializer is not None:
        try:
            found = serializer(value)
        except Exception as error:
            msg = "Context serializer failed while serializing RunState context."
            raise UserError(msg) from error
        if not isinstance(found, Mapping):
            msg = "Context serializer must return a mapping."
            raise UserError(msg)
        return dict(found), _meta(value, "context_serializer", needs=True)
    if strict:
        msg = "RunState serialization requires context to be a mapping when strict_context is True. Provide context_serializer to serialize custom contexts."
        raise UserError(msg)
    if hasattr(value, "model_dump"):
        found, what, via = value.model_dump(exclude_unset=True), "a Pydantic model", "model_dump"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        found, what, via = dataclasses.asdict(value), "a dataclass", "asdict"
    else:
        logger.warning(
            "RunState context of type %s is not serializable; an empty context is kept. Provide context_serializer to keep it.", type(value).__name__
        )
        return {}, _meta(value, "omitted", needs=True, omitted=True)
    if not isinstance(found, Mapping):
        msg = f"RunState context {via} must return a mapping."
        raise UserError(msg)
    logger.warning("RunState context was serialized from %s. Provide context_deserializer or context_override to restore the original type.", what)
    return dict(found), _meta(value, via, needs=True)


def restored_context(data: Mapping[str, Any], override: Any, deserializer: Callable[[Any], Any] | None, *, strict: bool) -> RunContextWrapper[Any]:
    """The context that goes on: the given one, what the program makes of the mapping, or the mapping."""
    kept, meta = data.get("context", {}), data.get("context_meta") or {}
    if override is None and deserializer is None and (meta.get("omitted") or meta.get("requires_deserializer")):
        what = "was omitted during serialization; provide context_override or a context_deserializer to supply it"
        text = f"RunState context {what if meta.get('omitted') else 'requires explicit restoration; provide context_deserializer or context_override'}."
        if strict:
            raise UserError(text)
        logger.warning(text)
    if override is not None:
        return _wrapped(override)
    if kept is None:
        return RunContextWrapper(None)
    if not isinstance(kept, Mapping):
        msg = "Serialized run state context must be a mapping. Please provide one."
        raise UserError(msg)
    if deserializer is None:
        return RunContextWrapper(kept)
    try:
        return _wrapped(deserializer(dict(kept)))
    except Exception as error:
        msg = "Context deserializer failed while rebuilding RunState context."
        raise UserError(msg) from error


def _wrapped(value: Any) -> RunContextWrapper[Any]:
    if not isinstance(value, RunContextWrapper):
        return RunContextWrapper(value)
    if type(value) is not RunContextWrapper:
        msg = "RunState restoration does not support RunContextWrapper subclasses; provide the custom context value directly or wrap it in RunContextWrapper."
        raise UserError(msg)
    return value
