"""A router that transfers, agents with tools, two agents in parallel, and a booking that needs
approval: the run is interrupted and resumed.

python examples/multi_agent.py
"""

import asyncio

from models import model
from show import ask, show

from offbook import ChatModelAgent, MemoryStore, ModelRequest, Parallel, Runner, ToolCalls, tool


@tool
def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return f"25°C and sunny in {city}"


@tool(needs_approval=True)
def book_flight(city: str) -> str:
    """Book a flight to a city."""
    return f"flight UA 7 to {city} is booked"


def booked(request: ModelRequest) -> str:
    """Stand in for a model's answer to the result of the booking."""
    if "is booked" in request.messages[-1].text:
        return "Your flight to Paris is booked: UA 7."
    return "I have not booked a flight."


weather = ChatModelAgent(
    name="Weather",
    description="knows the weather of any city",
    instruction="Answer by the tool get_weather.",
    tools=[get_weather],
    model=model(ToolCalls(get_weather={"city": "Paris"}), "It is sunny in Paris, at 25°C."),
)
food = ChatModelAgent(
    name="Food",
    instruction="Name one dish of the place, in one sentence.",
    model=model("Try the ratatouille."),
)
sights = ChatModelAgent(
    name="Sights",
    instruction="Name one sight of the place, in one sentence.",
    model=model("See the Sainte-Chapelle."),
)
guide = Parallel(
    name="Guide", description="knows what to see and to eat in a place", sub_agents=[food, sights]
)
travel = ChatModelAgent(
    name="Travel",
    description="books flights",
    instruction=(
        "Book what you are asked for with book_flight, without asking back: the user is asked to "
        "approve it."
    ),
    tools=[book_flight],
    model=model(ToolCalls(book_flight={"city": "Paris"}), booked),
)
router = ChatModelAgent(
    name="Router",
    instruction="Hand the question over to the agent who can answer it. If there is none, say so.",
    model=model(
        *(
            ToolCalls(transfer_to_agent={"agent_name": name})
            for name in ("Weather", "Guide", "Travel")
        )
    ),
    sub_agents=[weather, guide, travel],
)


async def main() -> None:
    runner = Runner(router, store=MemoryStore())
    for question in (
        "What is the weather in Paris?",
        "What should I see and eat in Paris?",
        "Book me a flight to Paris.",
    ):
        print(">", question)
        run = runner.query(question)
        while True:
            async for event in run:
                show(event)
            waiting = (await run).interrupts
            if not waiting:
                break
            run = runner.resume(
                run.id, {one.id: ask("Shall I? (yes/no)", "yes") == "yes" for one in waiting}
            )


if __name__ == "__main__":
    asyncio.run(main())
