"""The form that an agent's final output must have.

Owns: the schema that the model is told, and the making of an object from its text. It must never ask a model.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from .exceptions import ModelBehaviorError, UserError
from .logger import hides_model_data, hides_tool_data
from .strict_schema import ensure_strict_json_schema
from .tracing.errors import REDACTED, attach_error

__all__ = ["AgentOutputSchema", "AgentOutputSchemaBase", "validated_json"]

_KEY: Final = "response"


class AgentOutputSchemaBase(abc.ABC):
    """The form of a final output."""

    @abc.abstractmethod
    def is_plain_text(self) -> bool:
        """Whether it is any text."""

    @abc.abstractmethod
    def name(self) -> str:
        """The name of the type."""

    @abc.abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """What the model is told."""

    @abc.abstractmethod
    def is_strict_json_schema(self) -> bool:
        """Whether the provider holds the model to it."""

    @abc.abstractmethod
    def validate_json(self, json_str: str) -> Any:
        """The object of that text. Raises `ModelBehaviorError`, if it is none."""


@dataclass(init=False)
class AgentOutputSchema(AgentOutputSchemaBase):
    """The form of a type. What is no object is asked for as the field `response` of one."""

    output_type: Any

    def __init__(self, output_type: Any, strict_json_schema: bool = True) -> None:
        self.output_type = output_type
        self._strict = strict_json_schema
        self._wrapped = not self.is_plain_text() and not _is_object(output_type)
        asked: Any = TypedDict("OutputType", {_KEY: output_type}) if self._wrapped else output_type  # type: ignore[operator, unused-ignore]  # made at run time
        self._adapter: TypeAdapter[Any] = TypeAdapter(asked)
        self._schema = self._adapter.json_schema()
        if self.is_plain_text() or not strict_json_schema:
            return
        try:
            self._schema = ensure_strict_json_schema(self._schema)
        except UserError as error:
            msg = (
                "Strict JSON schema is enabled, but the output type is not valid. Either make the output type strict, "
                "or wrap your type with AgentOutputSchema(YourType, strict_json_schema=False)"
            )
            raise UserError(msg) from error

    def is_plain_text(self) -> bool:
        return self.output_type is None or self.output_type is str

    def is_strict_json_schema(self) -> bool:
        return self._strict

    def json_schema(self) -> dict[str, Any]:
        if self.is_plain_text():
            msg = "Output type is plain text, so no JSON schema is available"
            raise UserError(msg)
        return self._schema

    def validate_json(self, json_str: str) -> Any:
        found = validated_json(json_str, self._adapter, strict=self._strict)
        if not self._wrapped:
            return found
        if not isinstance(found, dict) or _KEY not in found:
            details = f"Could not find key {_KEY} in JSON" if isinstance(found, dict) else f"Expected a dict, got {type(found)}"
            attach_error("Invalid JSON", details=details)
            msg = details if hides_model_data() else f"{details}: {json_str}"
            raise ModelBehaviorError(msg)
        return found[_KEY]

    def text_of(self, output: Any) -> str:
        """An output as the text that a model would have given."""
        asked = output if not self._wrapped or (isinstance(output, dict) and _KEY in output) else {_KEY: output}
        return self._adapter.dump_json(asked).decode()

    def name(self) -> str:
        return _named(self.output_type)


def validated_json(text: str, adapter: TypeAdapter[Any], *, strict: bool, of_tool: bool = False) -> Any:
    """The object of a JSON text. Raises `ModelBehaviorError`, which says what is wrong unless such things are kept out of errors."""
    hides = hides_tool_data() if of_tool else hides_model_data()
    try:
        return adapter.validate_json(text, strict=True if strict else None)
    except ValidationError as error:
        attach_error("Invalid JSON provided", details=REDACTED if hides else str(error))
        if not hides:
            msg = f"Invalid JSON when parsing {text} for {adapter}; {error}"
            raise ModelBehaviorError(msg) from error
    hidden = ModelBehaviorError("Invalid JSON when parsing model output")
    hidden.keeps_run_to_itself = True
    raise hidden


def _is_object(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, BaseModel | dict)


def _named(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is None:
        return getattr(kind, "__name__", repr(kind))
    return f"{getattr(origin, '__name__', str(origin).removeprefix('typing.'))}[{', '.join(map(_named, args))}]" if args else str(kind)
