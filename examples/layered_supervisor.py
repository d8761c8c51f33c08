"""Supervisors under a supervisor: the one that leads the mathematicians hands back to the one above it, when they have done their part.

python examples/layered_supervisor.py
"""

import asyncio
from collections.abc import Callable

from models import model
from show import show

from understudy.actors import ChatModelAgent, Supervisor
from understudy.runtime import Runner, ToolCalls


def to(agent_name: str) -> ToolCalls:
    """A model's reply that hands over."""
    return ToolCalls(transfer_to_agent={"agent_name": agent_name})


def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return round(a / b, 4)


def multiply(a: float, b: float) -> float:
    """Multiply a by b."""
    return round(a * b, 4)


def worker(name: str, function: Callable[[float, float], float], *script: str | ToolCalls) -> ChatModelAgent:
    text = "Do the one calculation that is yours, with your tool."
    return ChatModelAgent(name=name, description=f"can {function.__name__}", instruction=text, tools=[function], model=model(*script))


divider = worker("Divider", divide, ToolCalls(divide={"a": 230, "b": 29.2}), "7.8767 %")
multiplier = worker("Multiplier", multiply, ToolCalls(multiply={"a": 7.8767, "b": 1.589}), "12.5161")
searcher = ChatModelAgent(name="Searcher", description="knows figures", instruction="Give the figures.", model=model("29.2 and 2.3 trillion dollars."))

LEAD = "Hand each part of the task to the agent who can do it, one at a time; do no part yourself. When all is there, say the result."
head_of_maths = ChatModelAgent(name="MathLead", description="does arithmetic", instruction=LEAD, model=model(to("Divider"), to("Multiplier"), "It is 12.5161."))
maths = Supervisor(supervisor=head_of_maths, sub_agents=[divider, multiplier])
boss = ChatModelAgent(name="Boss", instruction=LEAD, model=model(to("Searcher"), to("MathLead"), "New York has 7.88 %; times 1.589, that makes 12.52."))
team = Supervisor(supervisor=boss, sub_agents=[searcher, maths])


async def main() -> None:
    async for event in Runner(team).query("What percentage of the US GDP of 2024 was New York State's? Then multiply that by 1.589."):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
