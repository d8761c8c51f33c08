"""How the examples print what happens in a run: one line for each thing that an agent says or does."""

from understudy.runtime import AgentEvent


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
    if event.action is not None:
        print(who, event.action)
    if event.error is not None:
        print(who, f"failed: {type(event.error).__name__}: {event.error}")
