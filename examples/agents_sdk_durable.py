"""A program of OpenAI's Agents SDK that survives a crash: it imports `Runner` from offbook, and
each run is recorded in a store.

The first process books a flight, and a SIGKILL ends it while it books the hotel. The second process
finds the run in the store and resumes it. No completed call of a model or tool is repeated. The
example needs no key, because its model follows a script. It needs the extra `agents-sdk`.

    python examples/agents_sdk_durable.py
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

import offbook
from offbook import SQLiteStore
from offbook.agents_sdk import Runner, SdkAgent

RUN = "trip-1"


def agents(folder: Path, *, dies: bool) -> Agent:
    log = folder / "log.txt"

    def note(text: str) -> None:
        with log.open("a") as file:
            file.write(text + "\n")

    @function_tool
    def book_flight(to: str) -> str:
        """Book a flight."""
        note(f"flight to {to} booked")
        return f"flight to {to}: booked"

    @function_tool
    def book_hotel(city: str) -> str:
        """Book a hotel."""
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        note(f"hotel in {city} booked")
        return f"hotel in {city}: booked"

    def answer(call: ModelCall) -> Any:
        """Choose the reply by the messages, as a model does."""
        results = [
            item["output"] for item in call.input if item.get("type") == "function_call_output"
        ]
        note(f"the model was asked, knowing of {len(results)} results")
        if not results:
            return [function_call("transfer_to_travel", {}, call_id="c1")]
        if len(results) == 1:
            return [function_call("book_flight", {"to": "Oslo"}, call_id="c2")]
        if len(results) == 2:
            return [function_call("book_hotel", {"city": "Oslo"}, call_id="c3")]
        return [assistant_message("Your trip to Oslo is booked.")]

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(8)])
    travel = Agent(
        name="travel", instructions="Book trips.", model=model, tools=[book_flight, book_hotel]
    )
    return Agent(
        name="desk", instructions="Hand off to whoever can help.", model=model, handoffs=[travel]
    )


async def begin(folder: Path) -> None:
    store = SQLiteStore(folder / "runs.sqlite")
    result = await Runner.run(
        agents(folder, dies=True), "A trip to Oslo, please.", store=store, run_id=RUN
    )
    print("not killed?", result.final_output)


async def recover(folder: Path) -> None:
    store = SQLiteStore(folder / "runs.sqlite")
    runner = offbook.Runner(SdkAgent(agents(folder, dies=False)), store=store, durability="step")
    for run in await runner.recover():
        result = await run
        print(f"run {run.id} has ended: {result.text}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = subprocess.run([sys.executable, __file__, "begin", name], check=False)
        print(f"the first process has ended with {first.returncode} (SIGKILL is {-signal.SIGKILL})")
        asyncio.run(recover(folder))
        print((folder / "log.txt").read_text(), end="")


if __name__ == "__main__":
    set_tracing_disabled(True)
    if sys.argv[1:2] == ["begin"]:
        asyncio.run(begin(Path(sys.argv[2])))
    else:
        main()
