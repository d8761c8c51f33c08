"""A router that hands over, an agent with a tool, and two agents at once.

python examples/multi_agent.py
"""

import asyncio

from models import model
from show import show

from understudy.actors import ChatModelAgent, Parallel, tool
from understudy.runtime import Runner, ToolCalls


@tool
def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return f"25°C and sunny in {city}"


weather = ChatModelAgent(
    name="Weather",
    description="knows the weather of any city",
    instruction="Answer by the tool get_weather.",
    tools=[get_weather],
    model=model(ToolCalls(get_weather={"city": "Paris"}), "It is sunny in Paris, at 25°C."),
)
food = ChatModelAgent(name="Food", instruction="Name one dish of the place, in one sentence.", model=model("Try the ratatouille."))
sights = ChatModelAgent(name="Sights", instruction="Name one sight of the place, in one sentence.", model=model("See the Sainte-Chapelle."))
guide = Parallel(name="Guide", description="knows what to see and to eat in a place", sub_agents=[food, sights])

router = ChatModelAgent(
    name="Router",
    instruction="Hand the question over to the agent who can answer it. If there is none, say so.",
    model=model(
        ToolCalls(transfer_to_agent={"agent_name": "Weather"}),
        ToolCalls(transfer_to_agent={"agent_name": "Guide"}),
        "I am sorry, nobody here can book flights.",
    ),
    sub_agents=[weather, guide],
)


async def main() -> None:
    runner = Runner(router)
    for question in ("What is the weather in Paris?", "What should I see and eat in Paris?", "Book me a flight to Paris."):
        print(">", question)
        async for event in runner.query(question):
            show(event)


if __name__ == "__main__":
    asyncio.run(main())
