"""A task of Agent2Agent from both ends: a server without an agent, which works, makes an artifact
in pieces and can be cancelled; and its client.

pip install 'offbook[a2a]'
python examples/a2a_task.py
"""

import asyncio
from typing import Any

from serving import serving

from offbook.runtime.a2a import (
    A2AClient,
    AgentCardSettings,
    ArtifactUpdate,
    Status,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
    a2a_app,
)


class Poet:
    """Handle a message without an agent."""

    async def stream(self, request: Any, writer: Any) -> None:
        await writer.write(Status("I am thinking of a rhyme"))
        if "long" in request.message.text:
            await asyncio.Event().wait()
        for count, line in enumerate(("The curtain falls, ", "the evening ends.")):
            await writer.write(ArtifactUpdate("poem", [line], append=count > 0, last=count == 1))
        await writer.write(TaskState.COMPLETED)

    async def cancel(self, request: Any) -> None:
        print("server: told to stop", request.message.text)


async def main() -> None:
    card = AgentCardSettings(name="Poet", description="writes poems")
    async with serving(a2a_app(handlers=Poet(), card=card)) as url, A2AClient(url) as client:
        found = await client.card()
        print("card:", found.name, "-", found.description)
        async for event in client.stream("a poem, please"):
            if isinstance(event, TaskStatusUpdateEvent):
                print(
                    "status:",
                    event.status.state,
                    event.status.message.text if event.status.message else "",
                )
            elif isinstance(event, TaskArtifactUpdateEvent):
                print(
                    "artifact:",
                    event.artifact.name,
                    repr(event.artifact.text),
                    "(the last piece)" if event.last_chunk else "",
                )
        long = await client.send("a long poem", wait=False)
        assert isinstance(long, Task)
        print("cancelled:", (await client.cancel(long.id)).status.state)
        print("and so it is:", (await client.get(long.id)).status.state)


if __name__ == "__main__":
    asyncio.run(main())
