"""How the examples print events, one line each, and ask the user questions."""

import sys

from offbook import AgentEvent, RunCancelled
from offbook.runtime import Interrupted


def show(event: AgentEvent) -> None:
    """Print an event, but not the pieces of a message: the whole message follows them."""
    who = f"[{event.agent_name}]"
    if event.delta is not None:
        return
    if event.message is not None:
        if event.message.role == "tool":
            print(who, event.message.tool_name, "->", event.message.text)
        elif event.message.text:
            print(who, event.message.text)
        for call in event.message.tool_calls:
            print(who, f"calls {call.name}({call.arguments})")
    if isinstance(event.action, Interrupted):
        for context in event.action.contexts:
            print(who, f"waits: {context.info}")
    elif event.action is not None:
        print(who, event.action)
    if isinstance(event.error, RunCancelled):
        print(who, event.error)
    elif event.error is not None:
        print(who, f"failed: {type(event.error).__name__}: {event.error}")


def ask(question: str, written_down: str) -> str:
    """The user's answer, if there is a terminal; otherwise the one written in the example."""
    if sys.stdin is not None and sys.stdin.isatty():
        return input(f"> {question} [{written_down}] ") or written_down
    print(f"> {question} {written_down}")
    return written_down
