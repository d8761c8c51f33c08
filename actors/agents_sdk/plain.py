"""Values of the SDK as plain data that a checkpoint can hold, and back.

A value that cannot be restored is replaced by the text that the model received for it. Nothing is
imported or called because stored bytes name it: classes are looked up in `openai.types.responses`
and in the table below.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, Final

from agents import ShellResult, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.editor import ApplyPatchResult
from agents.items import ModelResponse
from agents.tool import ShellCallOutcome, ShellCommandOutput
from agents.usage import deserialize_usage, serialize_usage
from openai.types import responses
from pydantic import BaseModel

from ...runtime.codec.packing import pack
from ...runtime.data.value import table_of
from ...runtime.errors import CheckpointError

__all__ = [
    "ReplayedError",
    "digest_of",
    "output_from_plain",
    "output_to_plain",
    "response_from_plain",
    "response_to_plain",
    "typed_from_plain",
    "typed_to_plain",
    "without_ids",
]

_OUTPUTS: Final[dict[str, type[BaseModel]]] = {
    cls.__name__: cls for cls in (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
}
_MADE_ANEW: Final = frozenset(("id", "status", "created_at"))
"""Fields of items that the SDK or a provider fills in.

They differ between two attempts, and the model ignores them.
"""


class ReplayedError(Exception):
    """An exception that a recorded call raised.

    `type_name` is the name of its class, and its text is that of the original.
    """

    def __init__(self, type_name: str, text: str) -> None:
        super().__init__(text)
        self.type_name = type_name


# --- replies ---


def typed_to_plain(value: Any) -> Any:
    """Convert an object of the OpenAI client to its class name and fields.

    Return others unchanged.
    """
    if isinstance(value, BaseModel):
        return {
            "class": type(value).__name__,
            "fields": value.model_dump(mode="json", exclude_unset=True, warnings=False),
        }
    if hasattr(value, "__dict__"):  # an object of a custom model
        return {
            "class": "",
            "fields": {name: typed_to_plain(field) for name, field in vars(value).items()},
        }
    return [typed_to_plain(part) for part in value] if isinstance(value, list) else value


def typed_from_plain(plain: Any) -> Any:
    """Restore the object.

    If the installed client does not have the class, the result is a mapping, which the SDK accepts
    as well.
    """
    if isinstance(plain, list):
        return [typed_from_plain(part) for part in plain]
    if not isinstance(plain, Mapping) or plain.keys() != {"class", "fields"}:
        return plain
    if not plain["class"]:
        return SimpleNamespace(
            **{name: typed_from_plain(field) for name, field in plain["fields"].items()}
        )
    cls = getattr(responses, str(plain["class"]), None)
    if not (isinstance(cls, type) and issubclass(cls, BaseModel)):
        return plain["fields"]
    # The client's own method: it constructs nested objects, too, without validation.
    construct: Any = cls.construct
    return construct(None, **plain["fields"])


def response_to_plain(response: ModelResponse) -> dict[str, Any]:
    """Convert a model's reply to plain data."""
    return {
        "output": [typed_to_plain(item) for item in response.output],
        "usage": serialize_usage(response.usage),
        "response_id": response.response_id,
        "request_id": response.request_id,
        "raw_usage": getattr(response, "raw_usage", None),
    }


def response_from_plain(plain: Mapping[str, Any]) -> ModelResponse:
    """Restore a model's reply."""
    response = ModelResponse(
        output=[typed_from_plain(item) for item in plain["output"]],
        usage=deserialize_usage(plain["usage"]),
        response_id=plain["response_id"],
        request_id=plain["request_id"],
    )
    if plain.get("raw_usage") is not None:
        response.raw_usage = plain["raw_usage"]
    return response


# --- tool results ---


def output_to_plain(value: object) -> list[Any]:
    """Convert a tool's result to its kind and plain data."""
    if value is None or isinstance(value, str | bool | int | float):
        return ["value", value]
    if type(value) in _OUTPUTS.values():
        return ["output", type(value).__name__, value.model_dump(mode="json")]  # type: ignore[attr-defined]  # a pydantic model
    if isinstance(value, list) and value and all(type(part) in _OUTPUTS.values() for part in value):
        return ["outputs", [output_to_plain(part) for part in value]]
    if isinstance(value, ShellResult):
        return ["shell", asdict(value)]
    if isinstance(value, ApplyPatchResult):
        return ["patch", asdict(value)]
    try:
        pack(value)
    except CheckpointError:
        return ["value", str(value)]
    return ["value", value]


def output_from_plain(plain: Sequence[Any]) -> Any:
    """Restore a tool's result, or raise its error."""
    kind, value = plain[0], plain[1]
    if kind == "error":
        raise ReplayedError(value, plain[2])
    if kind == "output":
        return _OUTPUTS[value].model_validate(plain[2])
    if kind == "outputs":
        return [output_from_plain(part) for part in value]
    if kind == "shell":
        output = [
            ShellCommandOutput(**{**entry, "outcome": ShellCallOutcome(**entry["outcome"])})
            for entry in value["output"]
        ]
        return ShellResult(**{**value, "output": output})
    if kind == "patch":
        return ApplyPatchResult(**value)
    return value


# --- digests ---


def digest_of(*parts: object) -> str:
    """Return a digest that is the same if a second attempt makes the same request.

    It excludes the ids that each attempt generates.
    """
    text = json.dumps(
        parts, default=_plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if (table := table_of(value)) is not None:
        return table
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return type(value).__qualname__


def without_ids(items: str | Sequence[Any]) -> object:
    """Return input items without the fields that differ between two attempts."""
    if isinstance(items, str):
        return items
    plain = (
        item.model_dump(mode="json", exclude_unset=True, warnings=False)
        if isinstance(item, BaseModel)
        else item
        for item in items
    )
    return [
        {key: value for key, value in item.items() if key not in _MADE_ANEW}
        if isinstance(item, Mapping)
        else item
        for item in plain
    ]
