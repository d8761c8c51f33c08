"""A customer service: a triage agent hands off to specialists with a reason. The specialists see no
card numbers, hard cases move up a level, and billing is closed at night.

python examples/customer_service.py
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from models import model
from show import show

from offbook import (
    ChatModel,
    ChatModelAgent,
    Handoff,
    ModelRequest,
    Runner,
    ToolCalls,
    handoff,
    redact,
)
from offbook.actors import compose, prompt_with_handoff_instructions, remove_all_tools
from offbook.runtime import RunContext


@dataclass
class Case:
    """The arguments of a handoff."""

    issue: str
    priority: Literal["low", "high"]


@dataclass
class Desk:
    """Belongs to the service, not to one conversation: handoffs find it at `context.context`."""

    now: Callable[[], datetime]
    log: list[str] = field(default_factory=list)


def is_open(context: RunContext, _agent: object) -> bool:
    """Return whether it is a working day, between nine and five."""
    now: datetime = context.context.now()
    return now.weekday() < 5 and 9 <= now.hour < 17


def to(agent: ChatModelAgent, level: int, *, only_by_day: bool = False) -> Handoff:
    """A handoff that writes a line to the log, and removes card numbers from what the next agent
    sees.
    """

    def note(context: RunContext, case: Case) -> None:
        context.set("level", level)
        context.context.log.append(f"level {level}, {agent.name}: {case.issue} ({case.priority})")

    without_cards = redact({r"\b\d{4}(?: ?\d{4}){3}\b": "[CARD]"})
    # Later levels do not need the history of the case.
    kept = without_cards if level == 1 else compose(remove_all_tools, without_cards)
    return handoff(
        agent,
        on_handoff=note,
        input_type=Case,
        input_filter=kept,
        is_enabled=is_open if only_by_day else True,
    )


def agent(name: str, knows: str, model_: ChatModel, *handoffs: Handoff) -> ChatModelAgent:
    instruction = prompt_with_handoff_instructions(
        f"You are {name} of a customer service, which knows {knows}. Hand over what others "
        "know better."
    )
    return ChatModelAgent(
        name=name, description=knows, instruction=instruction, model=model_, handoffs=handoffs
    )


def case(name: str, issue: str) -> ToolCalls:
    return ToolCalls((f"transfer_to_{name.lower()}", {"issue": issue, "priority": "high"}))


def by_day(request: ModelRequest) -> str | ToolCalls:
    """The triage's reply to a customer who was charged twice."""
    if any(tool.name == "transfer_to_billing" for tool in request.tools):
        return case("Billing", "charged twice")
    return "Billing is there from nine to five. I have noted your question."


def read_back(request: ModelRequest) -> str:
    return f"You wrote: {request.messages[1].text} You get one of the two back."


engineering = agent(
    "Engineering", "what is behind an error", model("A bad deployment: it is taken back.")
)
technical = agent(
    "Technical",
    "how the product is used",
    model(case("Engineering", "the API answers 500")),
    to(engineering, 2),
)
billing = agent("Billing", "what was charged, and why", model(read_back))
triage = agent(
    "Triage",
    "who knows what",
    model(by_day, case("Technical", "errors since noon"), by_day),
    to(billing, 1, only_by_day=True),
    to(technical, 1),
)

TWICE = "My card 4111 1111 1111 1111 was charged twice."


async def main() -> None:
    hour = 10
    desk = Desk(now=lambda: datetime(2025, 10, 1, hour))  # noqa: DTZ001 -- the hour is the desk's own
    runner = Runner(triage)
    for hour, text in [(10, TWICE), (12, "Your API answers 500."), (22, TWICE)]:
        print(f"{hour}:00 > {text}")
        async for event in runner.query(text, context=desk):
            show(event)
    print(*desk.log, sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
