"""Supervisor: one agent chooses the next one, and each returns control to it.

python examples/supervisor.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, Runner, Supervisor, ToolCalls

GDP = {"us": 29.2, "new york state": 2.3}


def search_gdp(area: str) -> str:
    """Look up the gross domestic product of an area in 2024, in trillions of dollars."""
    return f"{GDP.get(area.lower(), 'unknown')} trillion dollars"


def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return round(a / b, 4)


search = ChatModelAgent(
    name="SearchAgent",
    description="looks up figures",
    instruction="Look up what you are asked for. Do no arithmetic.",
    tools=[search_gdp],
    model=model(
        ToolCalls(("search_gdp", {"area": "US"}), ("search_gdp", {"area": "New York State"})),
        "US: 29.2, New York State: 2.3 trillion dollars.",
    ),
)
mathematician = ChatModelAgent(
    name="MathAgent",
    description="does arithmetic",
    instruction="Do the arithmetic that is asked for, with your tools.",
    tools=[divide],
    model=model(ToolCalls(divide={"a": 2.3, "b": 29.2}), "2.3 / 29.2 = 0.0788"),
)
boss = ChatModelAgent(
    name="Supervisor",
    instruction=(
        "Hand each part of the task to the agent who can do it, one at a time. Do no part "
        "yourself. When all is there, answer."
    ),
    model=model(
        ToolCalls(transfer_to_agent={"agent_name": "SearchAgent"}),
        ToolCalls(transfer_to_agent={"agent_name": "MathAgent"}),
        "New York's share was 7.9 %.",
    ),
)
team = Supervisor(supervisor=boss, sub_agents=[search, mathematician])


async def main() -> None:
    async for event in Runner(team).query(
        "Find the GDP of the US and of New York State in 2024. What percentage of the first "
        "was the second?"
    ):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
