"""The items that are replayed to a new connection, their form and their limit.

A call and its output are never separated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ....runtime.data.chat import Message, ToolCall
from ....runtime.errors import UsageError
from ....runtime.maybe_await import maybe_await
from ....runtime.sessions.session_policy import as_policy
from ..items import (
    AssistantMessageItem,
    InputAudio,
    RealtimeItem,
    RealtimeToolCallItem,
    SystemMessageItem,
    UserMessageItem,
    text_of_item,
)

__all__ = ["items_of_messages", "messages_of_item", "replayed_items"]


async def replayed_items(
    items: Sequence[RealtimeItem], policy: Any, without: Collection[str] = ()
) -> list[RealtimeItem]:
    """Return the items to replay, except those in `without`, which follow separately."""
    found = [one for one in items if one.item_id not in without and _says_something(one)]
    if policy == "all":
        return found
    by_message: dict[str, RealtimeItem] = {}
    messages: list[Message] = []
    if hasattr(policy, "bound"):
        for item in found:
            for message in messages_of_item(item):
                by_message[message.id] = item
                messages.append(message)
        bounded, _, _ = await as_policy(policy).bound(messages, None)
        kept: dict[str, RealtimeItem] = {}
        for message in bounded:
            known = by_message.get(message.id)
            for item in (known,) if known is not None else items_of_messages((message,)):
                kept.setdefault(item.item_id, item)
        return list(kept.values())
    if callable(policy):
        return list(await maybe_await(policy(found)))
    msg = (
        "config['replay'] must be 'all', keep_last(n), summarize(model), or a function of "
        f"the items, got {policy!r}."
    )
    raise UsageError(msg)


def _says_something(item: RealtimeItem) -> bool:
    """Return whether an item can be replayed.

    Speech without a transcript cannot, and neither can a call without its output.
    """
    if isinstance(item, RealtimeToolCallItem):
        return item.output is not None
    if getattr(item, "blocked", False):
        return False
    if isinstance(item, UserMessageItem) and any(
        not isinstance(part, InputAudio) for part in item.content
    ):
        return True
    return bool(text_of_item(item))


def messages_of_item(item: RealtimeItem) -> list[Message]:
    """Convert an item to messages of a text agent's conversation."""
    if isinstance(item, RealtimeToolCallItem):
        call = ToolCall(item.call_id or item.item_id, item.name, item.arguments)
        asked = Message.assistant("", (call,))
        return (
            [asked]
            if item.output is None
            else [asked, Message.tool(item.output, call.id, call.name)]
        )
    text = text_of_item(item)
    if isinstance(item, AssistantMessageItem):
        return [Message.assistant(text)]
    return [Message.system(text) if isinstance(item, SystemMessageItem) else Message.user(text)]


def items_of_messages(messages: Sequence[Message]) -> list[RealtimeItem]:
    """Convert messages of a text agent's conversation to items."""
    made: list[RealtimeItem] = []
    calls: dict[str, int] = {}
    for message in messages:
        short = f"item_{message.id}"[:32]
        if message.role == "tool":
            index = calls.get(message.tool_call_id or "")
            if index is not None:
                made[index] = made[index].model_copy(
                    update={"output": message.text, "status": "completed"}
                )
            continue
        if message.role == "user":
            made.append(
                UserMessageItem.model_validate(
                    {"item_id": short, "content": [{"type": "input_text", "text": message.text}]}
                )
            )
        elif message.role == "system":
            made.append(
                SystemMessageItem.model_validate(
                    {"item_id": short, "content": [{"type": "input_text", "text": message.text}]}
                )
            )
        elif message.text:
            said = {
                "item_id": short,
                "status": "completed",
                "content": [{"type": "text", "text": message.text}],
            }
            made.append(AssistantMessageItem.model_validate(said))
        for number, call in enumerate(message.tool_calls):
            calls[call.id] = len(made)
            item_id = f"item_{number}_{message.id}"[:32]
            made.append(
                RealtimeToolCallItem(
                    item_id=item_id,
                    call_id=call.id,
                    status="in_progress",
                    arguments=call.arguments,
                    name=call.name,
                )
            )
    return made
