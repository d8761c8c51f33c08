"""A payment that needs approval and is made once, although its process is killed twice.

Each step is stored in a file (`durability="step"`), so another process continues after the last
one. The call in flight is repeated with the same idempotency key, by which the bank recognizes that
it has already booked it.

python examples/payment.py
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from models import model
from show import show

from offbook import (
    ChatModelAgent,
    ModelRequest,
    Run,
    Runner,
    SQLiteStore,
    ToolCalls,
    ToolContext,
    tool,
)

ASKS = "asks"
BEFORE = "is told yes, and is killed before the bank has booked"
AFTER = "recovers, and is killed after the bank has booked"
LAST = "recovers"
PART, FOLDER = sys.argv[1:] if len(sys.argv) > 1 else ("", "")
BANK = "bank.json"


@tool(needs_approval=True)
def pay(invoice: int, euros: int, context: ToolContext) -> str:
    """Pay an invoice."""
    die_as(BEFORE)
    bank = Path(FOLDER, BANK)
    bookings = json.loads(bank.read_text()) if bank.exists() else {}
    print(
        "  the bank:",
        "I have booked that already" if context.idempotency_key in bookings else "booked",
    )
    bank.write_text(
        json.dumps({context.idempotency_key: f"{euros} euros for invoice {invoice}", **bookings})
    )
    die_as(AFTER)
    return "paid"


def die_as(part: str) -> None:
    """As if the power failed: nothing is cleaned up."""
    if part == PART:
        os.kill(os.getpid(), signal.SIGKILL)


def reply(request: ModelRequest) -> str | ToolCalls:
    return (
        "Invoice 7 is paid."
        if request.messages[-1].role == "tool"
        else ToolCalls(pay={"invoice": 7, "euros": 120})
    )


accountant = ChatModelAgent(
    name="Accountant",
    instruction="Pay invoices with the tool pay.",
    tools=[pay],
    model=model(reply, reply),
)


async def run_part() -> None:
    """The program of each process."""
    async with SQLiteStore(Path(FOLDER, "runs.db")) as store:
        runner = Runner(accountant, store=store, durability="step")
        if PART == ASKS:
            runs = [runner.query("Please pay invoice 7: 120 euros.", checkpoint_id="invoice-7")]
        elif PART == BEFORE:
            (waiting,) = await runner.pending()
            runs = [runner.approve(waiting.waiting[0])]
        else:
            runs = await recovered(runner)
        for run in runs:
            async for event in run:
                show(event)


async def recovered(runner: Runner) -> list[Run]:
    while True:
        if runs := await runner.recover():
            return runs
        # Where nothing shows that a process has gone (not on Linux), its leases expire after 30 s.
        await asyncio.sleep(1)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate((ASKS, BEFORE, AFTER, LAST), 1):
            print(f"process {number} {part}:", flush=True)
            done = subprocess.run(
                [sys.executable, "-u", __file__, part, folder],
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            if done.returncode not in (0, -signal.SIGKILL):
                sys.exit(done.stderr)
        print("the bank's bookings:", list(json.loads(Path(folder, BANK).read_text()).values()))


if __name__ == "__main__":
    if PART:
        asyncio.run(run_part())
    else:
        main()
