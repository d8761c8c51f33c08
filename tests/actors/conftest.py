"""What tests of agents share: how an event looks as a line, and agents that do what a test tells them to."""

from collections.abc import Callable
from typing import Any

import pytest

from understudy.actors import Agent
from understudy.runtime import AgentEvent, BreakLoop, CustomAction, Exit, Interrupted, Message, RunResult, TransferToAgent


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


def _line(event: AgentEvent) -> str:
    parts = [f"{event.agent_name} [{','.join(event.run_path)}]"]
    if event.message is not None:
        message = event.message
        parts.append(f'{message.role if message.role != "tool" else f"tool({message.tool_name})"} "{message.text}"')
        parts += [f"tc({call.name} {call.arguments})" for call in message.tool_calls]
    if event.custom_output is not None:
        parts.append(f"out({event.custom_output!r})")
    if event.action is not None:
        parts.append(f"{{{_action(event.action)}}}")
    if event.error is not None:
        parts.append(f"error {type(event.error).__name__}: {event.error}")
    return " ".join(parts)


@pytest.fixture
def lines() -> Callable[[Any], list[str]]:
    """Events, or the result that holds them, as lines."""
    return lambda given: [_line(event) for event in (given.events if isinstance(given, RunResult) else given)]


@pytest.fixture
def asked() -> Callable[[Any], list[str]]:
    """Messages that an agent or a model was given, as lines."""

    def write(messages: Any) -> list[str]:
        return [
            " ".join([f'{one.role if one.role != "tool" else f"tool({one.tool_name})"} "{one.text}"', *(f"tc({c.name} {c.arguments})" for c in one.tool_calls)])
            for one in messages
        ]

    return write


class Actor(Agent):
    """Does what it is told to: says a text or a message, takes an action, raises an error, yields an event, awaits a function of its context."""

    def __init__(self, name: str, *plan: Any, **options: Any) -> None:
        super().__init__(name=name, description=f"plays {name}", **options)
        self.plan = plan
        self.inputs: list[tuple[Message, ...]] = []
        self.reached: list[Any] = []  # the steps of the plan that were taken, in the order of time

    async def run(self, input, context):
        self.inputs.append(input.messages)
        # A plan that is a list of lists is another plan each time.
        plan = self.plan
        if plan and all(isinstance(part, list) for part in plan):
            plan = plan[min(len(self.inputs), len(plan)) - 1]
        for step in plan:
            self.reached.append(step)
            match step:
                case str():
                    yield AgentEvent.say(step)
                case Message():
                    yield AgentEvent.of(step)
                case AgentEvent():
                    yield step
                case BaseException():
                    raise step
                case _ if callable(step):
                    made = await step(context)
                    if isinstance(made, AgentEvent):
                        yield made
                case _:
                    yield AgentEvent.of(action=step)


@pytest.fixture
def actor() -> Callable[..., Actor]:
    """`actor("A", "hello", Exit())`: an agent that does just that."""
    return Actor
