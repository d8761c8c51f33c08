"""How tests read a run: events and messages as lines of text."""

from typing import Any

from offbook.runtime import AgentEvent, BreakLoop, CustomAction, Exit, Interrupted, TransferToAgent


def _action(action: Any) -> str:
    match action:
        case TransferToAgent(name):
            return f"TransferToAgent {name}"
        case BreakLoop(by, done, iteration):
            return f"BreakLoop by {by}, {'done' if done else 'not done'}, iteration {iteration}"
        case Exit():
            return "Exit"
        case Interrupted(contexts):
            return f"Interrupted {len(contexts)}"
        case CustomAction(value):
            return f"CustomAction {value!r}"
    raise AssertionError(action)


def line(event: AgentEvent) -> str:
    parts = [f"{event.agent_name} [{','.join(event.run_path)}]"]
    if event.message is not None:
        message = event.message
        parts.append(
            f"{message.role if message.role != 'tool' else f'tool({message.tool_name})'} "
            f'"{message.text}"'
        )
        parts += [f"tc({call.name} {call.arguments})" for call in message.tool_calls]
    if event.custom_output is not None:
        parts.append(f"out({event.custom_output!r})")
    if event.action is not None:
        parts.append(f"{{{_action(event.action)}}}")
    if event.error is not None:
        parts.append(f"error {type(event.error).__name__}: {event.error}")
    return " ".join(parts)


def asked(messages: Any) -> list[str]:
    """Messages that an agent or a model was given, as lines."""
    return [
        " ".join(
            [
                f'{one.role if one.role != "tool" else f"tool({one.tool_name})"} "{one.text}"',
                *(f"tc({c.name} {c.arguments})" for c in one.tool_calls),
            ]
        )
        for one in messages
    ]
