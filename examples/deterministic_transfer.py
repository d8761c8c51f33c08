"""DeterministicTransfer: an agent that always transfers when it has finished, without asking a
model.

python examples/deterministic_transfer.py
"""

import asyncio

from models import model
from show import show

from offbook import ChatModelAgent, DeterministicTransfer, Runner, set_sub_agents

editor = ChatModelAgent(
    name="Editor",
    description="makes texts shorter",
    instruction="Shorten the text that the author has written to half its length.",
    model=model("Rain, all day."),
)
author = ChatModelAgent(
    name="Author",
    description="writes texts",
    instruction="Write what you are asked for, in one sentence.",
    model=model("It is going to rain today, and it will hardly stop before the night."),
)
always = set_sub_agents(DeterministicTransfer(author, to=["Editor"]), [editor])


async def main() -> None:
    async for event in Runner(always).query("What will the weather be like?"):
        show(event)


if __name__ == "__main__":
    asyncio.run(main())
