"""What one conversation is: two agents and a tool, several turns, one of which calls the tool and
one of which is handed over. Its model is over HTTP.
"""

from __future__ import annotations

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, MemoryStore, OpenAIChatModel, Runner

__all__ = ["TURNS", "runner_for", "turns_of"]

# What the user wants of each turn. As requests to the model: 1, 2, 1 and 2.
TURNS = ("talk", "tool", "talk", "transfer")


def turns_of(count: int) -> tuple[str, ...]:
    """So many turns: with a tool from two on, with a transfer from four on, or as the last one of
    three.
    """
    if count == 3:
        return ("talk", "tool", "transfer")
    return tuple(TURNS[number % len(TURNS)] for number in range(count))


@tool
async def lookup(order: int) -> str:
    """Look an order up."""
    return f"Order {order} is on its way."


def runner_for(base_url: str, system: ActorSystem, *, streaming: bool) -> Runner:
    """One runner serves all conversations, each of which is a session of it, kept in memory."""
    back = ChatModelAgent(
        name="back",
        description="Knows where orders are.",
        instruction="You say where an order is.",
        model=OpenAIChatModel("back", base_url=base_url, api_key="none"),
    )
    front = ChatModelAgent(
        name="front",
        description="Answers first.",
        instruction="You answer briefly, look orders up, and hand over to back.",
        model=OpenAIChatModel("front", base_url=base_url, api_key="none"),
        tools=[lookup],
        sub_agents=[back],
    )
    return Runner(front, system=system, store=MemoryStore(), streaming=streaming)
