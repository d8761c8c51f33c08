"""How the examples talk to whoever runs them: one line for each thing that an agent says or does, and questions that somebody has to answer."""

import sys

from understudy.runtime import AgentEvent, Interrupted, RunCancelled


def show(event: AgentEvent) -> None:
    """Print an event; but not the pieces of a message that is still streaming: the whole of it follows."""
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
    """What somebody at the terminal answers; where there is none, what is written down."""
    if sys.stdin is not None and sys.stdin.isatty():
        return input(f"> {question} [{written_down}] ") or written_down
    print(f"> {question} {written_down}")
    return written_down
