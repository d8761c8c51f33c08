"""The JSON form of an event, used by `sse`, the command and the console.

`EVENT_SCHEMA` describes the output of `event_json`. Custom values in an event (a custom output, the
info of an interrupt) are written as JSON if they have such a form, otherwise as their `repr`.
Nothing else of a value is executed, and no value makes it fail.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ..data.chat import Message, MessageDelta, Part, TextPart, Usage
from ..data.events import Action, AgentEvent, BreakLoop, Exit, Interrupted, TransferToAgent
from ..data.interrupt import InterruptContext
from ..data.run_result import RunResult
from ..data.value import table_of

__all__ = ["EVENT_SCHEMA", "EventKind", "Json", "event_json", "kind_of", "plain", "result_json"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
EventKind: TypeAlias = Literal[
    "message", "delta", "retry", "error", "interrupted", "action", "custom"
]

_DEEPEST: Final = 40


def kind_of(event: AgentEvent) -> EventKind:
    """Return the kind of an event, in one word: the most important content counts."""
    if event.delta is not None:
        return "retry" if event.error is not None else "delta"
    if event.error is not None:
        return "error"
    if isinstance(event.action, Interrupted):
        return "interrupted"
    if event.message is not None:
        return "message"
    return "action" if event.action is not None else "custom"


def event_json(event: AgentEvent) -> dict[str, Json]:
    """Return the event as plain data for `json.dumps`. Missing parts are left out."""
    found: dict[str, Json] = {
        "kind": kind_of(event),
        "seq": event.seq,
        "run_id": event.run_id,
        "agent": event.agent_name,
        "run_path": list(event.run_path),
        "invocation_id": event.invocation_id,
        "timestamp": event.timestamp,
    }
    if event.message is not None:
        found["message"] = _message(event.message)
    if event.delta is not None:
        found["delta"] = _delta(event.delta)
    if event.action is not None:
        found["action"] = _action(event.action)
    if event.error is not None:
        found["error"] = {"type": type(event.error).__name__, "message": str(event.error)}
    if event.custom_output is not None:
        found["custom_output"] = plain(event.custom_output)
    if event.post is not None:
        found["post"] = {
            "id": event.post.id,
            "seq": event.post.seq,
            "session_id": event.post.session_id,
            "sender": event.post.sender,
        }
    return found


def result_json(result: RunResult) -> dict[str, Json]:
    """Return the end of a run as plain data, for the end of a stream of events."""
    found: dict[str, Json] = {
        "status": result.status.value,
        "last_agent": result.last_agent,
        "usage": _usage(result.usage),
    }
    if result.final_message is not None:
        found["text"] = result.final_message.text
    if result.error is not None:
        found["error"] = {"type": type(result.error).__name__, "message": str(result.error)}
    if result.interrupts:
        found["interrupts"] = [_context(context) for context in result.interrupts]
    return found


def plain(value: object) -> Json:
    """Return any value as JSON: unchanged, in its own JSON form, or as its `repr`."""
    return _plain(value, 0)


def _plain(value: object, depth: int) -> Json:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        # JSON has neither infinities nor NaN.
        return float(value) if value - value == 0 else repr(value)
    if depth >= _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one, depth + 1) for one in value]
    return _special(value, depth)


def _special(value: object, depth: int) -> Json:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if (table := table_of(value)) is not None:
        return {name: _plain(item, depth + 1) for name, item in table.items()}
    fields = getattr(type(value), "model_fields", None)
    if isinstance(fields, Mapping):
        return {name: _plain(getattr(value, name, None), depth + 1) for name in fields}
    iso = getattr(value, "isoformat", None)  # dates and times
    return iso() if callable(iso) and not isinstance(value, type) else repr(value)


def _message(message: Message) -> dict[str, Json]:
    found: dict[str, Json] = {"id": message.id, "role": message.role, "text": message.text}
    if not isinstance(message.content, str):
        found["parts"] = [_part(part) for part in message.content]
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    for name in ("tool_call_id", "tool_name", "reasoning", "refusal", "finish_reason"):
        if (value := getattr(message, name)) is not None:
            found[name] = value
    if message.usage is not None:
        found["usage"] = _usage(message.usage)
    return found


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    found: dict[str, Json] = {"type": type(part).__name__.removesuffix("Part").lower()}
    for name in ("url", "media_type", "name", "detail"):
        if (value := getattr(part, name, None)) is not None:
            found[name] = value
    if part.data is not None:
        found["data"] = b64encode(part.data).decode()
    return found


def _delta(delta: MessageDelta) -> dict[str, Json]:
    found: dict[str, Json] = {"text": delta.content}
    if delta.reasoning:
        found["reasoning"] = delta.reasoning
    if delta.tool_calls:
        found["tool_calls"] = [
            {"index": call.index, "id": call.id, "name": call.name, "arguments": call.arguments}
            for call in delta.tool_calls
        ]
    return found


def _action(action: Action) -> dict[str, Json]:
    match action:
        case Exit():
            return {"type": "exit"}
        case TransferToAgent(name):
            return {"type": "transfer", "agent": name}
        case BreakLoop():
            return {
                "type": "break_loop",
                "by": action.by,
                "done": action.done,
                "iteration": action.iteration,
            }
        case Interrupted():
            return {
                "type": "interrupted",
                "checkpoint_id": action.checkpoint_id,
                "contexts": [_context(context) for context in action.contexts],
            }
        case _:
            return {"type": "custom", "value": plain(action.value)}


def _context(context: InterruptContext) -> dict[str, Json]:
    address: list[Json] = [
        {"kind": step.kind, "name": step.name, "call_id": step.call_id} for step in context.address
    ]
    found: dict[str, Json] = {
        "id": context.id,
        "address": address,
        "info": plain(context.info),
        "is_root_cause": context.is_root_cause,
    }
    if context.deadline is not None:
        found["deadline"] = context.deadline.isoformat()
    if context.parent is not None:
        found["parent"] = _context(context.parent)
    return found


def _usage(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "requests": usage.requests,
    }


_TEXT: Final[dict[str, Json]] = {"type": "string"}
_NUMBER: Final[dict[str, Json]] = {"type": "integer"}
_MAYBE_TEXT: Final[dict[str, Json]] = {"type": ["string", "null"]}


def _object(required: dict[str, Json], optional: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _list_of(what: Json) -> dict[str, Json]:
    return {"type": "array", "items": what}


_USAGE: Final = _object(
    {
        "input_tokens": _NUMBER,
        "output_tokens": _NUMBER,
        "cached_tokens": _NUMBER,
        "requests": _NUMBER,
    },
    {},
)
_CALL: Final[dict[str, Json]] = {"id": _TEXT, "name": _TEXT, "arguments": _TEXT}
_PART: Final = _object(
    {"type": {"enum": ["text", "image", "audio", "file"]}},
    dict.fromkeys(("text", "url", "media_type", "name", "detail", "data"), _TEXT),
)
_STEP: Final = _object(
    {"kind": {"enum": ["agent", "tool"]}, "name": _TEXT, "call_id": _MAYBE_TEXT}, {}
)

EVENT_SCHEMA: Final[dict[str, Json]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An event of a run",
    **_object(
        {
            "kind": {
                "enum": ["message", "delta", "retry", "error", "interrupted", "action", "custom"]
            },
            "seq": _NUMBER,
            "run_id": _TEXT,
            "agent": _TEXT,
            "run_path": _list_of(_TEXT),
            "invocation_id": _TEXT,
            "timestamp": {"type": "number"},
        },
        {
            "message": _object(
                {
                    "id": _TEXT,
                    "role": {"enum": ["system", "user", "assistant", "tool"]},
                    "text": _TEXT,
                },
                {
                    "parts": _list_of(_PART),
                    "tool_calls": _list_of(_object(_CALL, {})),
                    **dict.fromkeys(
                        ("tool_call_id", "tool_name", "reasoning", "refusal", "finish_reason"),
                        _TEXT,
                    ),
                    "usage": _USAGE,
                },
            ),
            "delta": _object(
                {"text": _TEXT},
                {
                    "reasoning": _TEXT,
                    "tool_calls": _list_of(_object({"index": _NUMBER, **_CALL}, {})),
                },
            ),
            "action": _object(
                {"type": {"enum": ["exit", "transfer", "break_loop", "interrupted", "custom"]}},
                {
                    "agent": _TEXT,
                    "by": _MAYBE_TEXT,
                    "done": {"type": "boolean"},
                    "iteration": {"type": ["integer", "null"]},
                    "checkpoint_id": _MAYBE_TEXT,
                    "contexts": _list_of({"$ref": "#/$defs/context"}),
                    "value": {},
                },
            ),
            "error": _object({"type": _TEXT, "message": _TEXT}, {}),
            "custom_output": {},
            "post": _object(
                {"id": _TEXT, "seq": _NUMBER, "session_id": _MAYBE_TEXT, "sender": _MAYBE_TEXT}, {}
            ),
        },
    ),
    "$defs": {
        "context": _object(
            {
                "id": _TEXT,
                "address": _list_of(_STEP),
                "info": {},
                "is_root_cause": {"type": "boolean"},
            },
            {"parent": {"$ref": "#/$defs/context"}, "deadline": _TEXT},
        )
    },
}
"""The JSON schema of the output of `event_json`."""
