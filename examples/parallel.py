"""Parallel: three agents at once.

They do not see each other's messages; the agent after them sees all of them.

python examples/parallel.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, Parallel, Runner, Sequential


def collector(name: str, source: str, scripted: str) -> ChatModelAgent:
    return ChatModelAgent(
        name=name,
        description=f"collects {source}",
        instruction=f"Report on {source} in one sentence.",
        model=model(scripted),
    )


collectors = Parallel(
    name="Collect",
    sub_agents=[
        collector("Stocks", "the prices of shares", "The index rose by one percent."),
        collector("News", "the news", "The central bank speaks of lower rates."),
        collector("SocialMedia", "what people write", "Everybody writes about chips."),
    ],
)
summary = ChatModelAgent(
    name="Summary",
    instruction="Sum up in one sentence what was collected.",
    model=model("Hope for lower rates has lifted shares, above all those of chip makers."),
)
research = Sequential(name="MarketResearch", sub_agents=[collectors, summary])


async def main() -> None:
    async for event in Runner(research).query("Give me today's market research."):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
