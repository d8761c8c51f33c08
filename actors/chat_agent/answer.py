"""The form that an agent's final answer must have.

Owns: the schema that the model is told of, and the making of an instance from its text. A model's answer is an object: what is none, such as a list, is
asked for as the field `response` of one; but a model that answers with the bare thing is understood, too.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ...runtime.errors import UsageError
from ...runtime.models import OutputSchema
from ..tools.strict_schema import ensure_strict_json_schema

__all__ = ["AnswerForm"]

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")


class AnswerForm:
    """What a model's text is to be read as."""

    __slots__ = ("_adapter", "_wrapper", "schema")

    def __init__(self, output_type: Any, agent_name: str) -> None:
        from pydantic import TypeAdapter, create_model  # noqa: PLC0415 -- it takes time to import, and few agents need it
        from pydantic.errors import PydanticUserError  # noqa: PLC0415 -- as above

        title = getattr(output_type, "__name__", "answer")
        try:
            self._adapter: TypeAdapter[object] = TypeAdapter(output_type)
            schema = self._adapter.json_schema()
        except PydanticUserError as problem:
            msg = f"agent {agent_name!r}: output_type={title} cannot be a schema: {problem}"
            raise UsageError(msg, agent=agent_name) from problem
        self._wrapper: Any = None
        if schema.get("type") != "object":
            self._wrapper = create_model("answer", response=(output_type, ...))
            schema = self._wrapper.model_json_schema()
        name = _NOT_IN_NAMES.sub("_", title).strip("_")[:64] or "answer"
        try:
            self.schema = OutputSchema(name, ensure_strict_json_schema(schema), strict=True)
        except UsageError:  # strict where the type allows it: here it does not
            self.schema = OutputSchema(name, schema, strict=False)

    def parse(self, text: str) -> tuple[object, str | None]:
        """An instance, or what is wrong with the text, in one line."""
        from pydantic import ValidationError  # noqa: PLC0415 -- it is there already

        text = _without_fence(text)
        try:
            if self._wrapper is not None:
                try:
                    return self._wrapper.model_validate_json(text).response, None
                except ValidationError as error:
                    return self._bare(text, error)
            return self._adapter.validate_json(text), None
        except ValidationError as error:
            return None, _what(error)

    def _bare(self, text: str, error: object) -> tuple[object, str | None]:
        """The answer without the field around it, if it is that; or else what was wrong with it."""
        from pydantic import ValidationError  # noqa: PLC0415 -- as above

        try:
            return self._adapter.validate_json(text), None
        except ValidationError:
            return None, _what(error)


def _what(error: Any) -> str:
    problems = (f"{'.'.join(str(part) for part in one['loc']) or 'answer'}: {one['msg']}" for one in error.errors(include_url=False))
    return " ".join("; ".join(problems).split())


def _without_fence(text: str) -> str:
    """The JSON in a Markdown fence, which models like to put around it."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped[3:-3].removeprefix("json").strip()
    return stripped
