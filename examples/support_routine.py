"""A routine: one agent with a step-by-step instruction, and tools for the steps.

The user receives help, is not satisfied, and receives a refund.

python examples/support_routine.py
"""

import asyncio

from models import model
from show import ask, show

from offbook import ChatModelAgent, MemoryStore, Runner, ToolCalls, keep_last

ROUTINE = (
    "You are a customer support agent for ACME Inc. Always answer in a sentence or less.\n"
    "Follow the following routine with the user:\n"
    "1. First, ask probing questions and understand the user's problem deeper.\n"
    " - unless the user has already provided a reason.\n"
    "2. Propose a fix (make one up).\n"
    "3. ONLY if not satisfied, offer a refund.\n"
    "4. If accepted, search for the ID and then execute refund."
)
REFUNDED: dict[str, str] = {}


def look_up_item(search_query: str) -> str:
    """Find an item's ID. Search by a description or keywords."""
    return "item_132612938" if "drawer" in search_query.lower() else "no such item"


def execute_refund(item_id: str, reason: str = "not provided") -> str:
    """Refund an item, by its ID."""
    REFUNDED[item_id] = reason
    return "success"


support = ChatModelAgent(
    name="Support",
    instruction=ROUTINE,
    tools=[look_up_item, execute_refund],
    model=model(
        "What is wrong with it?",
        "Try to rub a candle along its slides.",
        "I am sorry; shall I refund it?",
        ToolCalls(look_up_item={"search_query": "cash drawer"}),
        ToolCalls(execute_refund={"item_id": "item_132612938", "reason": "it sticks"}),
        "Your money is on its way.",
    ),
)


async def main() -> None:
    session = Runner(support, store=MemoryStore()).session("a-customer", policy=keep_last(50))
    for text in (
        "I am not happy with my cash drawer.",
        "It sticks.",
        "I have done that, and it still sticks.",
        "Yes, please.",
    ):
        async for event in session.query(ask("You:", text)):
            show(event)
    print("refunded:", REFUNDED)


if __name__ == "__main__":
    asyncio.run(main())
