"""A program of OpenAI's Agents SDK that survives a crash: only the import is understudy's, and each run is kept in a store.

The first process books a flight and is killed in the middle of booking the hotel, by a real SIGKILL. The second one finds the run in the store and goes on: it
asks the model nothing that was answered, and makes no call twice that has ended. It needs no key: the model follows a script.

    python examples/agents_sdk_durable.py
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from understudy.actors.agents_sdk import Agent, Runner, function_tool
from understudy.actors.agents_sdk.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from understudy.runtime import Runner as UnderstudyRunner
from understudy.runtime import SQLiteStore

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

    def answer(call: ModelCall) -> list[object]:
        """What a model would say: it looks at what it is given, as any model does."""
        results = [item["output"] for item in call.input if item.get("type") == "function_call_output"]
        note(f"the model was asked, knowing of {len(results)} results")
        if not results:
            return [function_call("transfer_to_travel", {}, call_id="c1")]
        if len(results) == 1:
            return [function_call("book_flight", {"to": "Oslo"}, call_id="c2")]
        if len(results) == 2:
            return [function_call("book_hotel", {"city": "Oslo"}, call_id="c3")]
        return [assistant_message("Your trip to Oslo is booked.")]

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(8)])
    travel = Agent(name="travel", instructions="Book trips.", model=model, tools=[book_flight, book_hotel])
    return Agent(name="desk", instructions="Hand over to whoever can help.", model=model, handoffs=[travel])


async def begin(folder: Path) -> None:
    store = SQLiteStore(folder / "runs.sqlite")
    result = await Runner.run(agents(folder, dies=True), "A trip to Oslo, please.", store=store, durability="step", run_id=RUN)
    print("not killed?", result.final_output)


async def go_on(folder: Path) -> None:
    store = SQLiteStore(folder / "runs.sqlite")
    runner = UnderstudyRunner(agents(folder, dies=False), store=store, durability="step")
    for run in await runner.recover():
        result = await run
        print(f"run {run.id} has ended: {result.text}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = subprocess.run([sys.executable, __file__, "begin", name], check=False)
        print(f"the first process has ended with {first.returncode} (SIGKILL is {-signal.SIGKILL})")
        asyncio.run(go_on(folder))
        print((folder / "log.txt").read_text(), end="")


if __name__ == "__main__":
    if sys.argv[1:2] == ["begin"]:
        asyncio.run(begin(Path(sys.argv[2])))
    else:
        main()
