"""The answer as it is made: its pieces arrive as events with a `delta`, and then the whole message.

python examples/streaming.py
"""

import asyncio

from models import model

from offbook import ChatModelAgent, Runner

poet = ChatModelAgent(
    name="Poet",
    instruction="Answer with a poem of four short lines.",
    model=model(
        "An actor waits behind the door,\nshe knows the lines by heart.\nWhen someone falls "
        "upon the floor,\nshe steps in for her part."
    ),
)


async def main() -> None:
    pieces = 0
    async for event in Runner(poet, streaming=True).query("What does it mean to be off book?"):
        if event.error is not None:
            raise event.error
        if event.delta is not None:
            pieces += 1
            print(event.delta.content, end="", flush=True)
        elif event.message is not None:
            print(f"\n({len(event.message.text)} letters, in {pieces} pieces)")


if __name__ == "__main__":
    asyncio.run(main())
