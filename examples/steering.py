"""A turn that is steered while it runs, by posts from outside.

A post is a message to a session that is stored until a turn hears it. The first one reaches the
running turn, with its next request to the model. The second one is withdrawn. The third one comes
when the model has already answered, so it starts the next turn: this process attends.

python examples/steering.py
"""

import asyncio
import tempfile
from pathlib import Path

from models import model
from show import show

from offbook import ChatModelAgent, ModelRequest, Runner, SQLiteStore, ToolCalls, service, tool

SESSION = "ada"
steered = asyncio.Event()


@tool
async def search_trips(city: str) -> str:
    """Search for trips to a city."""
    await steered.wait()  # as if it took long
    return f"{city}: a flight at nine, a train at ten"


def reply(request: ModelRequest) -> str:
    """Without a key: report what the model receives."""
    said = [message.text for message in request.messages if message.role == "user"]
    return f"I was asked: {' '.join(said)}"


agent = ChatModelAgent(
    name="Travel",
    instruction="Plan trips with the tool search_trips. Answer in one sentence.",
    tools=[search_trips],
    model=model(ToolCalls(search_trips={"city": "Vienna"}), reply, reply),
)


async def next_turn(runner: Runner, before: str) -> str:
    """Wait until a turn of the session has started after that run."""
    while True:
        (newest,) = await runner.runs(session_id=SESSION, limit=1)
        if newest.id != before:
            return newest.id
        await asyncio.sleep(0.02)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder, "trips.db"))
        async with service(agent, store=store) as runner, runner.attending():
            session = runner.session(SESSION)
            turn = session.query("Plan a trip to Vienna.")
            async for event in turn:
                show(event)
                if event.message is None or event.message.role != "assistant":
                    continue
                if event.message.tool_calls:
                    # The model has asked for a search: time to change one's mind.
                    posted = await session.post("By train, please.", id="by-train")
                    print(f"(post {posted.seq} is stored)")
                    await session.post("In first class.", id="first-class")
                    print(f"(withdrawn: {await session.withdraw('first-class')})")
                    steered.set()
                else:
                    await session.post("And a hotel near the station.")
                    print("(the model has answered: the next turn hears this post)")
            async for event in runner.attach(await next_turn(runner, turn.id)):
                show(event)
            print(f"(posts that nobody has heard: {len(await session.inbox())})")


if __name__ == "__main__":
    asyncio.run(main())
