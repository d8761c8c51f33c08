"""Ready-made input filters of handoffs, and the words by which agents are told of them.

Owns: these filters. None of them changes what is recorded: only what the agent that takes over is given.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ..runtime.chat import Message
from ..runtime.either import settled
from ..runtime.errors import ModelBehaviorError, UsageError
from ..runtime.models import ChatModel, ModelRequest
from .handoff_items import HandoffInputData, Item, as_messages

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
        kept = before[len(before) - count :] if count else ()
        if kept and isinstance(kept[0], str):
            return data.clone(pre_handoff_items=kept[1:])
        return data.clone(input_history=(), pre_handoff_items=kept)

    return filtered


def redact(patterns: Mapping[str, str] | str | re.Pattern[str], replacement: str = "[REDACTED]") -> HandoffInputFilter:
    r"""Wherever one of the patterns is found in a text, its replacement stands: `redact({r"\d{3}-\d{2}-\d{4}": "[SSN]"})`."""
    pairs = [(re.compile(pattern), to) for pattern, to in patterns.items()] if isinstance(patterns, Mapping) else [(re.compile(patterns), replacement)]

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            for pattern, to in pairs:
                value = pattern.sub(to, value)
            return value
        if isinstance(value, list | tuple):
            return type(value)(clean(one) for one in value)
        if isinstance(value, Item):
            return Item({key: clean(one) if key in _TEXTS else one for key, one in value.items()}, value.type, value.source, value.agent_name)
        if isinstance(value, Mapping):
            return {key: clean(one) if key in _TEXTS else one for key, one in value.items()}
        text = getattr(value, "text", None)
        return type(value)(clean(text)) if isinstance(text, str) and not isinstance(value, Message) else value

    def filtered(data: HandoffInputData) -> HandoffInputData:
        return data.clone(
            input_history=clean(data.input_history), pre_handoff_items=clean(tuple(data.pre_handoff_items)), new_items=clean(tuple(data.new_items))
        )

    return filtered


_TEXTS: Final = frozenset(("content", "output", "arguments", "text"))


def compose(*filters: HandoffInputFilter) -> HandoffInputFilter:
    """One filter after the other."""

    async def filtered(data: HandoffInputData) -> HandoffInputData:
        for one in filters:
            data = await settled(one(data))
            if not isinstance(data, HandoffInputData):
                msg = f"compose: the filter {getattr(one, '__name__', one)!r} returned {data!r}: return a HandoffInputData, as data.clone(...) makes it."
                raise UsageError(msg)
        return data

    return filtered


def summarize(model: ChatModel, prompt: str = _PROMPT) -> HandoffInputFilter:
    """What was said before the handoff, in one message that the model writes."""

    async def filtered(data: HandoffInputData) -> HandoffInputData:
        said = as_messages(data.clone(new_items=()), "summarize")
        reply = await model.generate(ModelRequest((*said, Message.user(prompt))))
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
        if _BEGIN in text and _END in text:
            lines += [line for line in text.partition(_BEGIN)[2].partition(_END)[0].strip().splitlines() if line]
            continue
        if message.role == "tool":
            lines.append(f"tool {message.tool_name or ''}: {text}")
            continue
        if text or not message.tool_calls:
            lines.append(f"{message.role}: {text}")
        lines += [f"{message.role} called {call.name}: {call.arguments}" for call in message.tool_calls]
    folded = "\n".join(lines)
    content = f"For context, this is the conversation so far:\n{_BEGIN}\n{folded}\n{_END}"
    return data.clone(input_history=({"type": "message", "role": "user", "content": content},), pre_handoff_items=(), new_items=())
