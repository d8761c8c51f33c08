"""Reading and making items.

Owns: `ItemHelpers`. It must never keep anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal, ResponseOutputText
from pydantic import TypeAdapter, ValidationError

from ..exceptions import ModelBehaviorError, UserError
from ..tool.failure import is_from_program
from ..tool.outputs import structured
from .kinds import plain
from .run_items import MessageOutputItem, RunItemBase

__all__ = ["ItemHelpers"]


class ItemHelpers:
    """Reading and making items."""

    @classmethod
    def extract_last_content(cls, message: Any) -> str:
        """The last text or refusal of a message."""
        if not isinstance(message, ResponseOutputMessage) or not message.content:
            return ""
        last: Any = message.content[-1]
        if isinstance(last, ResponseOutputText):
            return last.text or ""
        if isinstance(last, ResponseOutputRefusal):
            return last.refusal
        msg = f"Unexpected content type: {type(last)}"
        raise ModelBehaviorError(msg)

    @classmethod
    def extract_last_text(cls, message: Any) -> str | None:
        """The last text of a message, if it ends with one."""
        last = message.content[-1] if isinstance(message, ResponseOutputMessage) and message.content else None
        return last.text if isinstance(last, ResponseOutputText) else None

    @classmethod
    def extract_text(cls, message: Any) -> str | None:
        """All text of a message."""
        content = message.content if isinstance(message, ResponseOutputMessage) else ()
        return "".join(one.text or "" for one in content if isinstance(one, ResponseOutputText)) or None

    @classmethod
    def extract_refusal(cls, message: Any) -> str | None:
        """All that a message refuses."""
        content = message.content if isinstance(message, ResponseOutputMessage) else ()
        return "".join(one.refusal or "" for one in content if isinstance(one, ResponseOutputRefusal)) or None

    @classmethod
    def input_to_new_input_list(cls, input: str | Iterable[Any]) -> list[Any]:
        """The input of a run as a list of items of its own."""
        return [{"content": input, "role": "user"}] if isinstance(input, str) else list(plain(input))

    @classmethod
    def text_message_outputs(cls, items: Iterable[RunItemBase[Any]]) -> str:
        """The text of all messages among the items."""
        return "".join(cls.text_message_output(item) for item in items if isinstance(item, MessageOutputItem))

    @classmethod
    def text_message_output(cls, message: MessageOutputItem) -> str:
        """The text of a message."""
        return "".join(one.text or "" for one in message.raw_item.content if isinstance(one, ResponseOutputText))

    @classmethod
    def tool_call_output_item(
        cls, tool_call: Any, output: Any, *, output_json_schema: dict[str, Any] | None = None, output_type_adapter: TypeAdapter[Any] | None = None
    ) -> Any:
        """What the model is given as the result of a call."""
        if output_type_adapter is not None:
            said: Any = _typed(output, output_type_adapter)
        elif output_json_schema is not None:
            said = _object(_from_json(output) if isinstance(output, str) else TypeAdapter(Any).dump_python(output, mode="json"))
        elif isinstance(output, str):
            said = output
        else:
            said = structured(output) if isinstance(output, list | tuple | Mapping) or hasattr(output, "model_dump") else None
            if said is None:
                said = _json(output) if is_from_program(tool_call) else str(output)
        return cls.copy_tool_call_caller(tool_call, {"call_id": tool_call.call_id, "output": said, "type": "function_call_output"})

    @classmethod
    def copy_tool_call_caller(cls, tool_call: Any, output_item: Any) -> Any:
        """Note in an output which program has made the call, if one has."""
        caller = tool_call.get("caller") if isinstance(tool_call, Mapping) else getattr(tool_call, "caller", None)
        if caller is not None:
            dump = getattr(caller, "model_dump", None)
            output_item["caller"] = dump(mode="json", exclude_none=True) if callable(dump) else plain(caller)
        return output_item


def _typed(output: Any, adapter: TypeAdapter[Any]) -> str:
    try:
        value = adapter.validate_json(output) if isinstance(output, str) else adapter.validate_python(output)
    except ValidationError as error:
        msg = "Function tool output does not match its declared output schema."
        raise UserError(msg) from error
    return _object(adapter.dump_python(value, mode="json", by_alias=True))


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        msg = "Function tool output schema requires a JSON object."
        raise UserError(msg) from error


def _object(value: Any) -> str:
    if not isinstance(value, Mapping):
        msg = "Function tool output schema requires a JSON object."
        raise UserError(msg)
    return json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"))


def _json(value: Any) -> str:
    try:
        return TypeAdapter(Any).dump_json(value).decode()
    except Exception as error:
        msg = "Programmatic function tool outputs must be strings, structured tool outputs, or JSON-serializable values."
        raise UserError(msg) from error
