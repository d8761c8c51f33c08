"""The form that an agent's final answer must have.

The schema for the model, and the parsing of its text. A model answers with an object. A type that
is not an object, such as a list, is wrapped in an object with the field `response`; an answer
without the wrapper is accepted, too.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ...runtime.errors import UsageError
from ...runtime.models import OutputSchema
from ..tools.strict_schema import ensure_strict_json_schema

__all__ = ["AnswerForm"]

_MOST_ERRORS: Final = 10
_MOST_SHOWN: Final = 200
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")


class AnswerForm:
    """Parses a model's text as an instance of the output type."""

    __slots__ = ("_adapter", "_wrapper", "schema")

    def __init__(self, output_type: Any, agent_name: str) -> None:
        from pydantic import TypeAdapter, create_model  # noqa: PLC0415 -- slow to import, rarely needed
        from pydantic.errors import PydanticUserError  # noqa: PLC0415 -- as above

        title = getattr(output_type, "__name__", "answer")
        try:
            self._adapter: TypeAdapter[object] = TypeAdapter(output_type)
            schema = self._adapter.json_schema()
        except PydanticUserError as problem:
            msg = (
                f"agent {agent_name!r}: output_type must have a JSON schema, got {title}: "
                f"{problem} Pass a pydantic model, a dataclass or a TypedDict."
            )
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
        """Return an instance and None, or None and the problem with the text in one line."""
        from pydantic import ValidationError  # noqa: PLC0415 -- already imported

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
        """Parse the answer without the wrapping field, or return the wrapped form's problem."""
        from pydantic import ValidationError  # noqa: PLC0415 -- as above

        try:
            return self._adapter.validate_json(text), None
        except ValidationError:
            return None, _what(error)


def _what(error: Any) -> str:
    """Describe the first errors in one line. The model receives this text, and each token costs."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [
        f"{'.'.join(str(part) for part in one['loc']) or 'answer'}: {one['msg']}"[:_MOST_SHOWN]
        for one in found[:_MOST_ERRORS]
    ]
    if len(found) > _MOST_ERRORS:
        problems.append(f"and {len(found) - _MOST_ERRORS} more")
    return " ".join("; ".join(problems).split())


def _without_fence(text: str) -> str:
    """Return the JSON inside a Markdown fence, which models often add."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped[3:-3].removeprefix("json").strip()
    return stripped
