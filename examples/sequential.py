"""Sequential: one agent after the other.

The first one's answer is put in a session value, which the instruction of the second one names.

python examples/sequential.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, Runner, Sequential

planner = ChatModelAgent(
    name="Planner",
    description="makes the outline of a report",
    instruction="Write an outline of the report that is asked for: three headlines, nothing else.",
    output_key="outline",
    model=model("1. What happened today\n2. Why\n3. What to watch tomorrow"),
)
writer = ChatModelAgent(
    name="Writer",
    description="writes a report by an outline",
    instruction="Write the report, one sentence for each headline of this outline:\n{outline}",
    model=model(
        "Shares rose by one percent. Rates will be cut, it seems. Tomorrow the prices of May "
        "are published."
    ),
)
report = Sequential(name="Report", description="a planned report", sub_agents=[planner, writer])


async def main() -> None:
    async for event in Runner(report).query("Give me a short report on today's market."):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
