"""An agent as a tool: unlike after a transfer, the agent that asks gets the answer and continues.

The inner agent sees only the request.

python examples/agent_as_tool.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, Runner, ToolCalls

translator = ChatModelAgent(
    name="translator",
    description="Translates a text into French.",
    instruction="Translate what you are given into French. Answer with the translation alone.",
    model=model("Le spectacle continue."),
)
writer = ChatModelAgent(
    name="Writer",
    instruction="Write a motto of a few words, have it translated, and show both.",
    tools=[translator.as_tool(emit_events=True)],  # the run shows its events, too
    model=model(
        ToolCalls(translator={"request": "The show goes on."}),
        "The show goes on. / Le spectacle continue.",
    ),
)


async def main() -> None:
    async for event in Runner(writer).query("We need a motto, in English and French."):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
