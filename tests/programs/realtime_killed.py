"""A conversation that is spoken, in a process that ends itself at a write: python
realtime_killed.py URL DB LOG KILL_AT WHEN.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from offbook.actors import ToolContext, tool
from offbook.actors.realtime import OpenAIRealtimeModel, RealtimeAgent, RealtimeRunner
from offbook.runtime import SQLiteStore
from offbook.runtime.stores import Append

URL, DB, LOG, KILL_AT, WHEN = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]


class Killing(SQLiteStore):
    """Ends the process at one of its writes."""

    writes = 0

    async def commit(self, claim, writes, *, then="keep"):
        records = sum(len(one.records) for one in writes if isinstance(one, Append))
        reached = Killing.writes < KILL_AT <= Killing.writes + records
        if reached and WHEN == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await super().commit(claim, writes, then=then)
        Killing.writes += records
        if reached and WHEN == "after":
            os.kill(os.getpid(), signal.SIGKILL)


@tool
async def book(place: str, context: ToolContext) -> str:
    """Book."""
    with Path(LOG).open("a") as log:
        log.write(f"{context.idempotency_key}\n")
    context.session["booked"] = place
    return f"booked {place}"


@tool(needs_approval=True)
async def pay(context: ToolContext) -> str:
    """Pay."""
    with Path(LOG).open("a") as log:
        log.write(f"{context.idempotency_key}\n")
    return "paid"


billing = RealtimeAgent("billing", "Bills.", tools=[book, pay])
triage = RealtimeAgent("triage", "Ask.", tools=[book, pay], handoffs=[billing])
billing.handoffs = [triage]
if WHEN == "unknown":
    triage = RealtimeAgent("somebody else")


async def main():
    runner = RealtimeRunner(
        triage, model=OpenAIRealtimeModel(base_url=URL, api_key="k"), store=Killing(DB)
    )
    async with runner.run(session_id="s", busy="reject") as session:
        ended = 0

        async def answer(responses):
            nonlocal ended
            seen = 0
            async for event in session:
                seen += event.type == "agent_end"
                if seen == responses:
                    return

        if WHEN in ("resume", "approve"):
            if WHEN == "approve":
                (asked,) = session.pending_approvals
                await session.approve_tool_call(asked.call_id)
                await answer(1)
            while session._core.calls.are_waited_for or not session._core.responses.is_quiet:
                await asyncio.sleep(0)
            await session.send_message("are you there?")
            await answer(1)
        elif WHEN == "asks":
            await session.send_message("pay")
            async for event in session:
                if event.type == "tool_approval_required":
                    break
            session.context.session["kept"] = 1
            await session.send_message("hm", respond=False)
            while (
                session._core.record.is_pending
                or session.history[-1].type != "message"
                or session.history[-1].content[0].text != "hm"
            ):
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            for text, responses in (("book it", 2), ("my bill", 2)):
                await session.send_message(text)
                await answer(responses)
        print(
            json.dumps(
                {
                    "history": [one.model_dump(mode="json") for one in session.history],
                    "agent": session.current_agent.name,
                    "values": session.context.session.to_dict(),
                    "writes": Killing.writes,
                    "usage": session.usage.requests,
                    "pending": [one.call_id for one in session.pending_approvals],
                }
            )
        )


asyncio.run(main())
