"""A conversation that is stored in a file.

Another process can continue it. Here, another system with another Runner does, as after a
deployment.

python examples/conversation.py
"""

import asyncio
import tempfile
from pathlib import Path

from models import model
from show import show

from offbook import ActorSystem, ChatModelAgent, ModelRequest, Runner, SQLiteStore, keep_last
from offbook.runtime import SessionBusy


def reply(request: ModelRequest) -> str:
    """Without a key: report how much of the conversation the model receives."""
    said = [message.text for message in request.messages if message.role == "user"]
    return f"I was told {len(said)} things, of which the first was: {said[0]}"


guide = ChatModelAgent(
    name="Guide",
    instruction="Help {name}, who is travelling. Answer in one sentence.",
    model=model(*[reply] * 10),
)


async def monday(path: Path) -> None:
    async with ActorSystem() as system, SQLiteStore(path) as store:
        session = Runner(guide, system=system, store=store).session("user-42")
        async for event in session.query("I am on my way to Rome.", session_values={"name": "Ada"}):
            show(event)


async def tuesday(path: Path) -> None:
    async with ActorSystem() as system, SQLiteStore(path) as store:
        runner = Runner(guide, system=system, store=store)
        # How much of the conversation a model gets.
        session = runner.session("user-42", policy=keep_last(4))
        async for event in session.query("Where was I going?"):
            show(event)
        for run in [
            session.query("Where do I sleep there?"),
            session.query("And what do I eat?"),
        ]:  # both at once: the second waits its turn
            print("in turn:", (await run).final_output)
        at_work = session.query("Where is the Forum?")
        try:
            await runner.session("user-42", busy="reject").query("And the Colosseum?")
        except SessionBusy as error:
            print("rejected:", error)
        print("not disturbed:", (await at_work).final_output)
        cut_short = session.query("Tell me the history of Rome.")
        newer = runner.session("user-42", busy="preempt", policy=keep_last(4)).query(
            "No: that of Florence."
        )
        print("preempted:", (await cut_short).error)
        print("in its place:", (await newer).final_output)
        print(len(await session.history()), "messages,", await session.values())


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await monday(Path(folder, "sessions.db"))
        await tuesday(Path(folder, "sessions.db"))


if __name__ == "__main__":
    asyncio.run(main())
