"""Time that outlives a process: a deadline, a reminder and a schedule.

Each is stored, and a process that attends acts on it when it is due; here it is this one. An
approval that nobody gives in time is denied. A reminder is a post that a turn hears later. A
schedule starts a run at each of its times.

python examples/reminders.py
"""

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

from models import model
from show import show

from offbook import ChatModelAgent, ModelRequest, Runner, SQLiteStore, ToolCalls, service, tool


@tool(needs_approval=True, approval_timeout=0.3, on_timeout="deny")
def pay(invoice: int) -> str:
    """Pay an invoice."""
    return f"invoice {invoice} is paid"


def reply(request: ModelRequest) -> str:
    """Without a key: repeat the last message."""
    return f"I was told: {request.messages[-1].text}"


agent = ChatModelAgent(
    name="Office",
    instruction="Pay invoices with the tool pay. Answer in one sentence.",
    tools=[pay],
    model=model(ToolCalls(pay={"invoice": 7}), reply, reply, reply),
)


async def started(runner: Runner, session_id: str, number: int) -> str:
    """Wait for that run of a session."""
    while True:
        runs = await runner.runs(session_id=session_id)
        if len(runs) >= number:
            return runs[-number].id
        await asyncio.sleep(0.02)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder, "office.db"))
        async with service(agent, store=store) as runner, runner.attending(every=0.1):
            session = runner.session("ada")
            print("an approval that nobody gives:")
            run = session.query("Please pay invoice 7.")
            seen = 0
            async for event in run:
                show(event)
                seen = event.seq
            async for event in runner.attach(run.id, after=seen, wait=True):
                show(event)

            print("a reminder:")
            await session.post("Ada wants to see the bill now.", not_before=timedelta(seconds=0.3))
            async for event in runner.attach(await started(runner, "ada", 2)):
                show(event)

            print("a schedule:")
            await runner.schedule(
                "report", every=timedelta(seconds=1), text="Write the report.", session="team"
            )
            async for event in runner.attach(await started(runner, "team", 1)):
                show(event)
            print("removed:", await runner.unschedule("report"))


if __name__ == "__main__":
    asyncio.run(main())
