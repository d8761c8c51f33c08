"""Transfer: a router transfers the question to the agent that can answer it, and is not called
again. If no agent can, the router answers itself.

python examples/transfer.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, Runner, ToolCalls, set_sub_agents, tool


@tool
def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return f"the temperature in {city} is 25°C"


weather = ChatModelAgent(
    name="WeatherAgent",
    description="This agent can get the current weather for a given city.",
    instruction="Get the current weather with the tool get_weather, and report it to the user.",
    tools=[get_weather],
    model=model(
        ToolCalls(get_weather={"city": "Beijing"}), "The current temperature in Beijing is 25°C."
    ),
)
chat = ChatModelAgent(
    name="ChatAgent",
    description="A general-purpose agent for handling conversational chat.",
    instruction="You are friendly, and good at chatting.",
    model=model(),  # no question here is for it
)
router = ChatModelAgent(
    name="RouterAgent",
    description="Hands tasks over to other agents.",
    instruction=(
        "You are a router. Hand the user's request over to the agent who is best for it. If "
        "there is none, tell the user that it cannot be done."
    ),
    model=model(
        ToolCalls(transfer_to_agent={"agent_name": "WeatherAgent"}),
        "I am sorry, no agent here can book flights.",
    ),
)
team = set_sub_agents(router, [chat, weather])  # gives the router the tool transfer_to_agent


async def main() -> None:
    runner = Runner(team)
    for question in (
        "What's the weather in Beijing?",
        "Book me a flight from New York to London tomorrow.",
    ):
        print(">", question)
        async for event in runner.query(question):
            show(event)


if __name__ == "__main__":
    asyncio.run(main())
