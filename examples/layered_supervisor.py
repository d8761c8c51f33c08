"""A supervisor under a supervisor: the supervisor of the mathematicians returns control to the one
above when they have finished. All agents stream.

python examples/layered_supervisor.py
"""

import asyncio
from collections.abc import Callable

from models import model
from show import show

from offbook import ChatModelAgent, Runner, Supervisor, ToolCalls

QUERY = (
    "Find the GDP of the US and of New York State in 2024. What percentage of the first was the "
    "second? Then multiply that percentage by 1.589."
)
FACT = (
    "In 2024 the GDP of the US was 29.18 trillion dollars, and that of New York State 2.297 "
    "trillion."
)
LEAD = (
    "Hand each part of the task to the agent who can do it, one at a time; do no part yourself. "
    "When all is there, say the result."
)


def to(agent_name: str) -> ToolCalls:
    """Return a reply that transfers."""
    return ToolCalls(transfer_to_agent={"agent_name": agent_name})


def search(query: str) -> str:
    """Search the web."""
    return FACT if "gdp" in query.lower() else "Nothing found."


def subtract(a: float, b: float) -> float:
    """Subtract b from a."""
    return round(a - b, 4)


def multiply(a: float, b: float) -> float:
    """Multiply a by b."""
    return round(a * b, 4)


def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return round(a / b, 4)


def calculator(
    name: str, function: Callable[[float, float], float], *script: str | ToolCalls
) -> ChatModelAgent:
    text = "Do the one calculation that is yours, with your tool."
    return ChatModelAgent(
        name=name,
        description=f"can {function.__name__}",
        instruction=text,
        tools=[function],
        model=model(*script),
    )


subtractor = calculator("Subtractor", subtract)
multiplier = calculator(
    "Multiplier", multiply, ToolCalls(multiply={"a": 7.87, "b": 1.589}), "It makes 12.5054."
)
divider = calculator("Divider", divide, ToolCalls(divide={"a": 229.7, "b": 29.18}), "It is 7.87 %.")
searcher = ChatModelAgent(
    name="Searcher",
    description="searches the web for facts",
    instruction="Find the facts that are asked for, with your tool. Do no arithmetic.",
    tools=[search],
    model=model(
        ToolCalls(search={"query": "GDP 2024 US New York State"}),
        "29.18 and 2.297 trillion dollars.",
    ),
)
head = ChatModelAgent(
    name="MathLead",
    description="does arithmetic",
    instruction=LEAD,
    model=model(to("Divider"), to("Multiplier"), "7.87 %, and 12.5054."),
)
maths = Supervisor(supervisor=head, sub_agents=[subtractor, multiplier, divider])
boss = ChatModelAgent(
    name="Boss",
    instruction=LEAD,
    model=model(
        to("Searcher"), to("MathLead"), "New York has 7.87 %; times 1.589, that makes 12.5054."
    ),
)
team = Supervisor(supervisor=boss, sub_agents=[searcher, maths])


async def main() -> None:
    pieces = 0
    run = Runner(team, streaming=True).query(QUERY)
    async for event in run:
        pieces += event.delta is not None
        show(event)
    print(f"The last message, of all that came in {pieces} pieces: {(await run).final_output}")


if __name__ == "__main__":
    asyncio.run(main())
