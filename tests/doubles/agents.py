"""Agents that do what a test tells them to."""

from typing import Any

from offbook.actors import Agent
from offbook.runtime import AgentEvent, Message


class PlannedAgent(Agent):
    """Does what it is told to: says a text or a message, takes an action, raises an error, yields
    an event, awaits a function of its context.
    """

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
