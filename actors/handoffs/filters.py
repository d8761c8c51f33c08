"""Ready-made input filters of handoffs, and the prompt that describes handoffs to agents.

A filter changes only the input of the agent that takes over, not the record. `keep_last` and
`summarize` serve sessions as well, and are defined elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from ...runtime.data.chat import Message, TextPart
from ...runtime.errors import UsageError
from ...runtime.maybe_await import maybe_await
from .items import HandoffInputData, Item, as_messages

__all__ = [
    "RECOMMENDED_PROMPT_PREFIX",
    "HandoffInputFilter",
    "compose",
    "nest_history",
    "prompt_with_handoff_instructions",
    "redact",
    "remove_all_tools",
]

HandoffInputFilter: TypeAlias = Callable[
    [HandoffInputData], HandoffInputData | Awaitable[HandoffInputData]
]

RECOMMENDED_PROMPT_PREFIX: Final = (
    "# System context\n"
    "You are part of a multi-agent system, which makes it easy to coordinate agents and to "
    "hand over between them. Agents hand over to one another by "
    "calling a function that is generally named `transfer_to_<agent_name>`. Handoffs happen "
    "in the background: do not mention or draw attention to them "
    "in your conversation with the user.\n"
)

_TOOLS: Final = frozenset(("function_call", "function_call_output", "reasoning"))
_BEGIN: Final = "<CONVERSATION HISTORY>"
_END: Final = "</CONVERSATION HISTORY>"
_FOLDED: Final = f"For context, this is the conversation so far:\n{_BEGIN}"


def prompt_with_handoff_instructions(prompt: str) -> str:
    """Return the prompt with a description of handoffs before it."""
    return f"{RECOMMENDED_PROMPT_PREFIX}\n\n{prompt}"


_D = TypeVar("_D")


def remove_all_tools(data: _D) -> _D:
    """Remove tool calls, their results, and handoffs.

    Use it as a handoff's `input_filter=`, a session's `policy=` or an agent's `history=`.
    """
    if isinstance(data, Sequence):
        return _without_tools(tuple(map(_message_of, data)))  # type: ignore[return-value]  # returns messages, like any such filter
    given = _handoff_data(data, "remove_all_tools")
    history = given.input_history
    filtered: Any = given.clone(
        input_history=history if isinstance(history, str) else _without_tools(history),
        pre_handoff_items=_without_tools(given.pre_handoff_items),
        new_items=_without_tools(given.new_items),
    )
    return filtered  # type: ignore[no-any-return]


def _handoff_data(data: object, name: str) -> Any:
    """Check the argument of a handoff's filter.

    Filters of the Agents SDK's own handoffs receive items of other types. They are refused, because
    these filters would miss them.
    """
    if isinstance(data, HandoffInputData):
        return data
    msg = (
        f"{name} must be called with HandoffInputData of offbook, got "
        f"{type(data).__module__}.{type(data).__qualname__}. Pass it to a "
        "handoff of offbook (input_filter=, handoff_input_filter=), as a "
        "session's policy= or as an agent's history=; a handoff of the Agents SDK takes the "
        "filters of agents.extensions.handoff_filters."
    )
    raise UsageError(msg)


def _message_of(entry: Any) -> Message:
    """Return a session's message, or the message of a history entry."""
    message = entry if isinstance(entry, Message) else getattr(entry, "message", None)
    if not isinstance(message, Message):
        msg = (
            f"a handoff filter must receive Messages or HistoryEntries, got {entry!r:.200}. Pass "
            "it entries of HandoffInputData."
        )
        raise UsageError(msg)
    return message


def _without_tools(items: tuple[Any, ...]) -> tuple[Any, ...]:
    kept = []
    for item in items:
        if isinstance(item, Message):
            if item.role != "tool" and (item.content or not item.tool_calls):
                kept.append(item.replace(tool_calls=()))
        elif item.get("type") not in _TOOLS:
            kept.append(item)
    return tuple(kept)


def redact(
    patterns: Mapping[Any, str] | Iterable[object] | str | re.Pattern[str],
    replacement: str = "[REDACTED]",
) -> Callable[[Any], Any]:
    r"""Make a filter that replaces the patterns found in texts.

        redact({r"\d{3}-\d{2}-\d{4}": "[SSN]"})
        redact([r"\d{16}"])

    Use it as a handoff's `input_filter=`, a session's `policy=` or an agent's `history=`.
    """
    if not isinstance(patterns, Mapping):
        patterns = dict.fromkeys(
            [patterns] if isinstance(patterns, str | re.Pattern) else patterns, replacement
        )
    pairs = [(re.compile(pattern), to) for pattern, to in patterns.items()]

    def clean(value: object) -> Any:
        """Replace the patterns in all strings inside a value."""
        if isinstance(value, str):
            for pattern, to in pairs:
                value = pattern.sub(to, value)
            return value
        if isinstance(value, list | tuple):
            return type(value)(map(clean, value))
        if isinstance(value, Mapping):
            return {key: clean(one) for key, one in value.items()}
        return TextPart(clean(value.text)) if isinstance(value, TextPart) else value

    def cleaned(item: object) -> object:
        if isinstance(item, Message):
            calls = tuple(call.replace(arguments=clean(call.arguments)) for call in item.tool_calls)
            return item.replace(
                content=clean(item.content), tool_calls=calls, reasoning=clean(item.reasoning)
            )
        if not isinstance(item, Mapping):
            return item
        raw = {key: clean(one) if key in _TEXTS else one for key, one in item.items()}
        return item.changed(raw) if isinstance(item, Item) else raw

    def filtered(data: Any) -> Any:
        if isinstance(data, Sequence):
            return tuple(cleaned(_message_of(entry)) for entry in data)
        given = _handoff_data(data, "redact(...)")
        history = given.input_history
        return given.clone(
            input_history=clean(history)
            if isinstance(history, str)
            else tuple(map(cleaned, history)),
            pre_handoff_items=tuple(map(cleaned, given.pre_handoff_items)),
            new_items=tuple(map(cleaned, given.new_items)),
        )

    return filtered


_TEXTS: Final = frozenset(("content", "output", "arguments", "text"))
"""The keys of an item's texts."""


def compose(*filters: HandoffInputFilter) -> HandoffInputFilter:
    """Make a filter that applies these filters in order."""

    async def filtered(data: HandoffInputData) -> HandoffInputData:
        for one in filters:
            data = await maybe_await(one(data))
            if not isinstance(data, HandoffInputData):
                msg = (
                    f"compose: the filter {getattr(one, '__name__', one)!r} must return a "
                    f"HandoffInputData, got {data!r}. Return data.clone(...), for example."
                )
                raise UsageError(msg)
        return data

    return filtered


def nest_history(data: HandoffInputData) -> HandoffInputData:
    """Fold the whole conversation so far into one message."""
    lines: list[str] = []
    for message in as_messages(data, "nest_handoff_history"):
        text = message.text
        if message.role == "user" and text.startswith(_FOLDED) and text.endswith(_END):
            # Folded before: unwrap it instead of nesting it.
            lines.append(text[len(_FOLDED) : -len(_END)].strip("\n"))
            continue
        if message.role == "tool":
            lines.append(f"tool {message.tool_name or ''}: {text}")
            continue
        if text or not message.tool_calls:
            lines.append(f"{message.role}: {text}")
        lines += [
            f"{message.role} called {call.name}: {call.arguments}" for call in message.tool_calls
        ]
    folded = "\n".join(lines)
    content = f"{_FOLDED}\n{folded}\n{_END}"
    return data.clone(
        input_history=({"type": "message", "role": "user", "content": content},),
        pre_handoff_items=(),
        new_items=(),
    )
