"""Ready-made input filters of handoffs, and the words by which agents are told of them.

Owns: these filters. None of them changes what is recorded: only what the agent that takes over is given.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ...runtime.data.chat import Message, TextPart
from ...runtime.errors import ModelBehaviorError, UsageError
from ...runtime.maybe_await import maybe_await
from ...runtime.models import ChatModel, ModelRequest, answer_of
from .items import HandoffInputData, Item, as_messages

__all__ = [
    "RECOMMENDED_PROMPT_PREFIX",
    "HandoffInputFilter",
    "compose",
    "keep_last",
    "nest_history",
    "prompt_with_handoff_instructions",
    "redact",
    "remove_all_tools",
    "summarize",
]

HandoffInputFilter: TypeAlias = Callable[[HandoffInputData], HandoffInputData | Awaitable[HandoffInputData]]

RECOMMENDED_PROMPT_PREFIX: Final = (
    "# System context\n"
    "You are part of a multi-agent system, which makes it easy to coordinate agents and to hand over between them. Agents hand over to one another by "
    "calling a function that is generally named `transfer_to_<agent_name>`. Handoffs happen in the background: do not mention or draw attention to them "
    "in your conversation with the user.\n"
)

_PROMPT: Final = "Summarize the conversation so far for the agent that takes over. Leave out nothing that it may need."
_TOOLS: Final = frozenset(("function_call", "function_call_output", "reasoning"))
_BEGIN: Final = "<CONVERSATION HISTORY>"
_END: Final = "</CONVERSATION HISTORY>"
_FOLDED: Final = f"For context, this is the conversation so far:\n{_BEGIN}"


def prompt_with_handoff_instructions(prompt: str) -> str:
    """The prompt, behind what a model should know of handoffs."""
    return f"{RECOMMENDED_PROMPT_PREFIX}\n\n{prompt}"


def remove_all_tools(data: HandoffInputData) -> HandoffInputData:
    """Without tool calls, their results, and handoffs."""
    history = data.input_history
    return data.clone(
        input_history=history if isinstance(history, str) else _without_tools(history),
        pre_handoff_items=_without_tools(data.pre_handoff_items),
        new_items=_without_tools(data.new_items),
    )


def _without_tools(items: tuple[Any, ...]) -> tuple[Any, ...]:
    kept = []
    for item in items:
        if isinstance(item, Message):
            if item.role != "tool" and (item.content or not item.tool_calls):
                kept.append(replace(item, tool_calls=()))
        elif item.get("type") not in _TOOLS:
            kept.append(item)
    return tuple(kept)


def keep_last(count: int) -> HandoffInputFilter:
    """The last so many items before the handoff, and what belongs to it. A call is never parted from its result."""
    if count < 0:
        msg = f"keep_last({count}): give a number of items, 0 or more."
        raise UsageError(msg)

    def filtered(data: HandoffInputData) -> HandoffInputData:
        history = data.input_history
        before = (*((history,) if isinstance(history, str) else history), *data.pre_handoff_items)
        kept = before[max(0, len(before) - count) :]
        if kept and isinstance(kept[0], str):
            return data.clone(pre_handoff_items=kept[1:])
        return data.clone(input_history=(), pre_handoff_items=kept)

    return filtered


def redact(patterns: Mapping[Any, str] | Iterable[object] | str | re.Pattern[str], replacement: str = "[REDACTED]") -> HandoffInputFilter:
    r"""Wherever one of the patterns is found in a text, its replacement stands: `redact({r"\d{3}-\d{2}-\d{4}": "[SSN]"})`, `redact([r"\d{16}"])`."""
    if not isinstance(patterns, Mapping):
        patterns = dict.fromkeys([patterns] if isinstance(patterns, str | re.Pattern) else patterns, replacement)
    pairs = [(re.compile(pattern), to) for pattern, to in patterns.items()]

    def clean(value: object) -> Any:
        """Whatever text is in there."""
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
            calls = tuple(replace(call, arguments=clean(call.arguments)) for call in item.tool_calls)
            return replace(item, content=clean(item.content), tool_calls=calls, reasoning=clean(item.reasoning))
        if not isinstance(item, Mapping):
            return item
        raw = {key: clean(one) if key in _TEXTS else one for key, one in item.items()}
        return Item(raw, item.type, item.source, item.agent_name) if isinstance(item, Item) else raw

    def filtered(data: HandoffInputData) -> HandoffInputData:
        history = data.input_history
        return data.clone(
            input_history=clean(history) if isinstance(history, str) else tuple(map(cleaned, history)),
            pre_handoff_items=tuple(map(cleaned, data.pre_handoff_items)),
            new_items=tuple(map(cleaned, data.new_items)),
        )

    return filtered


_TEXTS: Final = frozenset(("content", "output", "arguments", "text"))
"""Where an item holds what was said."""


def compose(*filters: HandoffInputFilter) -> HandoffInputFilter:
    """One filter after the other."""

    async def filtered(data: HandoffInputData) -> HandoffInputData:
        for one in filters:
            data = await maybe_await(one(data))
            if not isinstance(data, HandoffInputData):
                msg = f"compose: the filter {getattr(one, '__name__', one)!r} returned {data!r}: return a HandoffInputData, as data.clone(...) makes it."
                raise UsageError(msg)
        return data

    return filtered


def summarize(model: ChatModel, prompt: str = _PROMPT) -> HandoffInputFilter:
    """What was said before the handoff, in one message that the model writes."""

    async def filtered(data: HandoffInputData) -> HandoffInputData:
        said = as_messages(data.clone(new_items=()), "summarize")
        reply = await answer_of(model, ModelRequest((*said, Message.user(prompt))))
        if not isinstance(reply, Message) or not reply.text:
            msg = f"the model {model!r}, which was to summarize a conversation for a handoff, returned {reply!r}: it has to return a message with a text."
            raise ModelBehaviorError(msg)
        if reply.usage is not None and data.run_context is not None:
            data.run_context.usage += reply.usage
        summary = {"type": "message", "role": "user", "content": f"Summary of the conversation so far:\n{reply.text}"}
        return data.clone(input_history=(summary,), pre_handoff_items=())

    return filtered


def nest_history(data: HandoffInputData) -> HandoffInputData:
    """All that came before, folded into one message."""
    lines: list[str] = []
    for message in as_messages(data, "nest_handoff_history"):
        text = message.text
        if message.role == "user" and text.startswith(_FOLDED) and text.endswith(_END):
            lines.append(text[len(_FOLDED) : -len(_END)].strip("\n"))  # folded before: it is not folded in once more
            continue
        if message.role == "tool":
            lines.append(f"tool {message.tool_name or ''}: {text}")
            continue
        if text or not message.tool_calls:
            lines.append(f"{message.role}: {text}")
        lines += [f"{message.role} called {call.name}: {call.arguments}" for call in message.tool_calls]
    folded = "\n".join(lines)
    content = f"{_FOLDED}\n{folded}\n{_END}"
    return data.clone(input_history=({"type": "message", "role": "user", "content": content},), pre_handoff_items=(), new_items=())
