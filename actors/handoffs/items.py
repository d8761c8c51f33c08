"""A conversation as a list of items, the input and output of a handoff's input filter.

An item is a mapping with the keys of OpenAI's Responses (`type`, `role`, `content`, `name`,
`arguments`, `call_id`, `output`). Its attribute `type` is its kind in the run. Both compare equal
to each name of the kind: "tool_call_output_item", "tool_call_output", "function_call_output". A
filter may add plain dicts.

The conversion back to messages drops calls without a result, and results without a call.
"""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypedDict, Unpack

from ...runtime.agent.run_context import RunContext
from ...runtime.data.chat import Message, Part, ToolCall
from ...runtime.errors import UsageError
from ..agent import Agent

__all__ = ["HandoffInputData", "Item", "as_messages", "input_history_of", "items_of"]

_ROLES: Final = ("system", "developer", "user", "assistant")
_HANDOFFS: Final = ("handoff_call_item", "handoff_output_item")
"""Kinds that are tool calls and results to a model, but not to a filter that selects tools."""


class ItemType(str):
    """The kind of an item.

    It is equal to each name of the kind, so `item.type` and `item["type"]` can be compared with any
    of them.
    """

    __slots__ = ("_others",)

    _others: frozenset[str]

    def __new__(cls, name: str, others: frozenset[str]) -> Self:
        made = super().__new__(cls, name)
        made._others = others
        return made

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or (
            isinstance(other, str) and str.__str__(other) in self._others
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __getnewargs__(self) -> tuple[str, frozenset[str]]:  # type: ignore[override]  # the arguments of `__new__`
        return str.__str__(self), self._others


class Item(dict[str, Any]):
    """One message, call or result, as a mapping. `type` is its kind in the run."""

    __slots__ = ("agent", "agent_name", "source", "target_agent", "type")

    def __init__(
        self,
        raw: Mapping[str, Any],
        kind: str,
        source: Message | None = None,
        agent_name: str | None = None,
    ) -> None:
        super().__init__(raw)
        self.type: str = kind
        self.source = source  # the message that contains it
        self.agent_name = agent_name
        self.agent: Agent | None = None
        """The agent that produced the item; None for the input of the agent that hands off."""
        self.target_agent: Agent | None = None
        """For the result of a handoff: the agent that took over."""

    @property
    def source_agent(self) -> Agent | None:
        """For the result of a handoff: the agent that handed off."""
        return self.agent if self.target_agent is not None else None

    @property
    def content(self) -> Any:
        """The content, unchanged: the text or parts of a message, or a tool's return value."""
        return self.get("content", self.get("output"))

    @property
    def raw_item(self) -> dict[str, Any]:
        """The item as a plain dict."""
        return dict(self)

    @property
    def text(self) -> str:
        """The text of the item."""
        content = self.get("content", self.get("output", ""))
        return (
            content
            if isinstance(content, str)
            else "".join(getattr(part, "text", "") for part in content)
        )

    def copy(self) -> Item:
        return self.changed(self)

    def changed(self, raw: Mapping[str, Any]) -> Item:
        """Return the same item with other content."""
        twin = Item(raw, self.type, self.source, self.agent_name)
        twin.agent, twin.target_agent = self.agent, self.target_agent
        return twin

    def __repr__(self) -> str:
        return f"Item({self.type}: {dict.__repr__(self)})"

    def is_unchanged(self) -> bool:
        """Return whether the item still agrees with its message."""
        return self.source is not None and any(
            dict.__eq__(self, other) for other in _split(self.source, None, frozenset())
        )


class _Changes(TypedDict, total=False):
    input_history: str | tuple[Any, ...]
    pre_handoff_items: tuple[Any, ...]
    new_items: tuple[Any, ...]
    run_context: RunContext | None


@dataclass(frozen=True)
class HandoffInputData:
    """The input of the agent that takes over.

    A filter returns a changed copy, made by `clone(...)`.
    """

    input_history: str | tuple[Any, ...]
    """The input of the run: a string, or items."""
    pre_handoff_items: tuple[Any, ...] = ()
    """The items before the reply that hands off."""
    new_items: tuple[Any, ...] = ()
    """That reply, and the results of its calls, including the handoff."""
    run_context: RunContext | None = None
    """The run's context, with `context`, `session`, `get`, `set` and `delete`."""

    def clone(self, **changes: Unpack[_Changes]) -> Self:
        """Return a copy with these changes."""
        return dataclasses.replace(self, **changes)

    def messages(self) -> tuple[Message, ...]:
        """Return everything as messages, without unmatched calls and results."""
        return as_messages(self, "HandoffInputData")


def items_of(
    messages: Iterable[Message],
    agent_name: str | None = None,
    handoffs: frozenset[str] = frozenset(),
) -> tuple[Item, ...]:
    """Convert messages to items. `handoffs` are the names of the handoff tools."""
    return tuple(item for message in messages for item in _split(message, agent_name, handoffs))


def _split(message: Message, agent_name: str | None, handoffs: frozenset[str]) -> list[Item]:
    if message.role == "tool":
        kind = "handoff_output_item" if message.tool_name in handoffs else "tool_call_output_item"
        raw: dict[str, object] = {
            "type": "function_call_output",
            "call_id": message.tool_call_id,
            "output": _content(message),
        }
        return [_item(raw, kind, message, agent_name)]
    if message.role != "assistant":
        return [
            _item(
                {"type": "message", "role": message.role, "content": _content(message)},
                "message_input_item",
                message,
                agent_name,
            )
        ]
    items = []
    if message.reasoning:
        items.append(
            _item(
                {"type": "reasoning", "content": message.reasoning},
                "reasoning_item",
                message,
                agent_name,
            )
        )
    if message.content or not message.tool_calls:
        items.append(
            _item(
                {"type": "message", "role": "assistant", "content": _content(message)},
                "message_output_item",
                message,
                agent_name,
            )
        )
    for call in message.tool_calls:
        raw = {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        items.append(
            _item(
                raw,
                "handoff_call_item" if call.name in handoffs else "tool_call_item",
                message,
                agent_name,
            )
        )
    return items


def _item(raw: dict[str, object], kind: str, message: Message, agent_name: str | None) -> Item:
    said = str(raw["type"])
    names = frozenset(
        (kind, kind.removesuffix("_item"), *((said,) if kind not in _HANDOFFS else ()))
    )
    return Item({**raw, "type": ItemType(said, names)}, ItemType(kind, names), message, agent_name)


def _content(message: Message) -> object:
    return message.content if isinstance(message.content, str) else list(message.content)


def input_history_of(messages: Sequence[Message]) -> str | tuple[Item, ...]:
    """Return a run's input: the text of a single user message, or else items."""
    if len(messages) == 1 and messages[0].role == "user" and isinstance(messages[0].content, str):
        return messages[0].content
    return items_of(messages)


def as_messages(data: HandoffInputData, whose: str) -> tuple[Message, ...]:
    """Convert the data to messages, without calls and results that have lost their counterparts.

    `whose` prefixes the error if an element is not an item.
    """
    history = data.input_history
    if isinstance(history, str):
        history = (Message.user(history),) if history else ()
    builder = _Builder(whose)
    for item in (*history, *data.pre_handoff_items, *data.new_items):
        builder.add(item)
    return _paired(builder.messages())


class _Builder:
    """Assembles messages from items. The items of one reply become one message again."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._groups: list[tuple[Message | None, list[object]]] = []

    def add(self, item: object) -> None:
        if isinstance(item, Message):
            self._groups.append((None, [item]))
            return
        if not isinstance(item, Mapping):
            msg = (
                f"{self._whose} returned {item!r} among its items. Return Items, dicts "
                "with a role or a type, or Messages."
            )
            raise UsageError(msg)
        source = getattr(item, "source", None)
        if self._groups:
            before, items = self._groups[-1]
            same = (
                source is before
                if source is not None
                else before is None
                and _is_call(item)
                and not isinstance(items[-1], Message)
                and _is_call(items[-1])
            )
            if same and not _is_result(item):
                items.append(item)
                return
        self._groups.append((source, [item]))

    def messages(self) -> list[Message]:
        return [self._whole(source, items) for source, items in self._groups]

    def _whole(self, source: Message | None, items: list[Any]) -> Message:
        if isinstance(items[0], Message):
            return items[0]
        if (
            source is not None
            and len(items) == len(_split(source, None, frozenset()))
            and all(item.is_unchanged() for item in items)
        ):
            return source
        first = items[0]
        if _is_result(first):
            output = first.get("output", "")
            content = (
                self._readable(first, output)
                if isinstance(output, str | list | tuple)
                else json.dumps(output, default=str, ensure_ascii=False)
            )
            return Message(
                "tool",
                content,
                (),
                str(first.get("call_id") or ""),
                "" if source is None else source.tool_name or "",
            )
        calls = tuple(self._call(item) for item in items if _is_call(item))
        said = [item for item in items if not _is_call(item) and item.get("type") != "reasoning"]
        reasoning = next(
            (self._text(item) for item in items if item.get("type") == "reasoning"), None
        )
        if calls or reasoning is not None:
            return Message(
                "assistant", self._content(said[0]) if said else "", calls, reasoning=reasoning
            )
        role = first.get("role")
        if role not in _ROLES or first.get("tool_calls"):
            what = (
                "its calls and their results are items of their own: function_call and "
                "function_call_output"
                if first.get("tool_calls")
                else ""
            )
            msg = (
                f"{self._whose} has {dict(first)!r} among its items: "
                f"{what or 'a message needs a role: system, user or assistant'}."
            )
            raise UsageError(msg)
        return Message("system" if role == "developer" else role, self._content(first))

    def _call(self, item: Mapping[str, object]) -> ToolCall:
        name, arguments = item.get("name"), item.get("arguments") or "{}"
        if not isinstance(name, str) or not isinstance(arguments, str):
            msg = (
                f"{self._whose} has {dict(item)!r} among its items: a function_call must have a "
                "name, and arguments as a JSON string."
            )
            raise UsageError(msg)
        return ToolCall(str(item.get("call_id") or ""), name, arguments)

    def _text(self, item: Mapping[str, object]) -> str:
        content = self._content(item)
        return (
            content
            if isinstance(content, str)
            else "".join(getattr(part, "text", "") for part in content)
        )

    def _content(self, item: Mapping[str, object]) -> str | tuple[Part, ...]:
        return self._readable(item, item.get("content"))

    def _readable(self, item: Mapping[str, object], content: object) -> str | tuple[Part, ...]:
        """Return a string, or parts. Of OpenAI's own parts, only the text is read."""
        if content is None or isinstance(content, str):
            return content or ""
        if not isinstance(content, list | tuple):
            msg = (
                f"{self._whose} has {dict(item)!r} among its items: its content must be a string "
                "or a list of parts."
            )
            raise UsageError(msg)
        if content and all(isinstance(part, Part) for part in content):
            return tuple(content)
        return "".join(
            str(part.get("text", ""))
            if isinstance(part, Mapping)
            else str(getattr(part, "text", part))
            for part in content
        )


def _is_call(item: Any) -> bool:
    return item.get("type") in ("function_call", "tool_call")


def _is_result(item: Any) -> bool:
    return item.get("type") in ("function_call_output", "tool_call_output")


def _paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with each result directly after its call.

    Calls without a later result and results without a call are dropped.
    """
    results: dict[str | None, deque[tuple[int, Message]]] = {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            results.setdefault(message.tool_call_id, deque()).append((index, message))
    whole: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        if not message.tool_calls:
            if message.content or message.reasoning is None:  # reasoning alone is not a message
                whole.append(message)
            continue
        kept: list[ToolCall] = []
        answers: list[Message] = []
        for call in message.tool_calls:
            waiting = results.get(call.id, deque())
            while waiting and waiting[0][0] < index:
                waiting.popleft()  # it comes before its call
            if waiting:
                kept.append(call)
                answer = waiting.popleft()[1]
                answers.append(answer if answer.tool_name else answer.replace(tool_name=call.name))
        if len(kept) == len(message.tool_calls):
            whole.append(message)
        elif kept or message.content:
            whole.append(message.replace(tool_calls=tuple(kept)))
        whole += answers
    return tuple(whole)
