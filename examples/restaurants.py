"""Reason and act: the agent searches for restaurants, then for the dishes of two at once, and gives
its advice.

python examples/restaurants.py
"""

import asyncio
from collections.abc import Sequence

from models import model
from show import show

from offbook import AgentContext, ChatModelAgent, Message, Runner, ToolCalls

RESTAURANTS = {"1001": "Chuan Ban", "1002": "Lotus Inn", "1003": "Old Peking"}
DISHES = {
    "1001": ["fish in chili oil, 4 of 5 chilies", "mapo tofu, 3 of 5 chilies"],
    "1002": ["kung pao chicken, 2 of 5 chilies", "steamed bass, not spicy"],
    "1003": ["roast duck, not spicy"],
}


def query_restaurants(location: str, topn: int = 3) -> list[dict[str, str]]:
    """Find the best restaurants of a district."""
    return [
        {"id": number, "name": name, "location": location}
        for number, name in list(RESTAURANTS.items())[:topn]
    ]


def query_dishes(restaurant_id: str, topn: int = 5) -> list[str]:
    """Find the best dishes of a restaurant, by the restaurant's id, and how spicy they are."""
    return DISHES[restaurant_id][:topn]


def as_a_gourmet(context: AgentContext, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of a model call: the instruction, then the conversation."""
    return [
        Message.system(
            f"You are a {context.agent_name} in Beijing. Look everything up with your tools; "
            "name the restaurant of each dish."
        ),
        *messages,
    ]


agent = ChatModelAgent(
    name="Gourmet",
    tools=[query_restaurants, query_dishes],
    message_modifier=as_a_gourmet,
    max_iterations=12,
    model=model(
        ToolCalls(query_restaurants={"location": "Haidian", "topn": 2}),
        ToolCalls(
            ("query_dishes", {"restaurant_id": "1001"}), ("query_dishes", {"restaurant_id": "1002"})
        ),
        "At Chuan Ban, the fish in chili oil is the spiciest; at Lotus Inn, take the kung "
        "pao chicken, and the bass for a rest.",
    ),
)


async def main() -> None:
    async for event in Runner(agent).query(
        "I am in Haidian. Recommend me some dishes, some of them spicy, from two restaurants "
        "at least."
    ):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
