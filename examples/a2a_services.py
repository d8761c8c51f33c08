"""Two services: one calls the other over Agent2Agent, and the second one asks a person.

The question travels back to the first caller, and the answer to the second service.

pip install 'offbook[a2a]'
python examples/a2a_services.py
"""

import asyncio

from models import model
from serving import serving
from show import ask, show

from offbook import ChatModelAgent, MemoryStore, RemoteAgent, Runner, ToolCalls, tool
from offbook.runtime.a2a import RemoteInterrupt, a2a_app


@tool(needs_approval=True)
def reserve(seats: int) -> str:
    """Reserve seats for tonight."""
    return f"{seats} seats are reserved"


async def main() -> None:
    # The second service: an agent that may reserve nothing before somebody has approved it.
    booking = ChatModelAgent(
        name="BoxOffice",
        description="reserves seats",
        instruction="Reserve seats with the tool reserve.",
        tools=[reserve],
        model=model(ToolCalls(reserve={"seats": 2}), "Two seats are waiting for you."),
    )
    async with serving(a2a_app(booking, store=MemoryStore())) as second:
        # The first service: its agent has the second one as a tool.
        box_office = RemoteAgent(
            second, name="box_office", description="reserves seats at the theatre"
        )
        concierge = ChatModelAgent(
            name="Concierge",
            description="arranges evenings",
            instruction="Help the guest; ask the box office for seats.",
            tools=[box_office.as_tool()],
            model=model(
                ToolCalls(box_office={"request": "two seats for tonight"}),
                "Your evening is arranged: two seats.",
            ),
        )
        async with serving(a2a_app(concierge, store=MemoryStore())) as first:
            guest = RemoteAgent(first, name="concierge")
            runner = Runner(guest, store=MemoryStore())
            run = runner.query("Two seats for tonight, please", checkpoint_id="evening")
            async for event in run:
                show(event)
            for waiting in (await run).interrupts:
                question = (
                    waiting.info.text
                    if isinstance(waiting.info, RemoteInterrupt)
                    else str(waiting.info)
                )
                async for event in runner.resume("evening", {waiting.id: ask(question, "approve")}):
                    show(event)


if __name__ == "__main__":
    asyncio.run(main())
