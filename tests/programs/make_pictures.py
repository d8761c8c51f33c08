"""Make the pictures of the README and the guides, from real runs: `python
tests/programs/make_pictures.py`, with Chromium installed.

A process runs an order and is killed after its second step; another process recovers it. The
console then shows the run.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import uvicorn

sys.path.insert(0, str(Path(__file__).parents[2]))

from offbook import (
    ActorSystem,
    ChatModelAgent,
    Message,
    Parallel,
    Runner,
    Sequential,
    SQLiteStore,
    ToolCall,
    tool,
)
from offbook.runtime import Usage
from offbook.runtime.console import console_app
from tests.doubles.browser import Browser

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
TOKEN = "a token for the pictures"


class Clerk:
    """Calls the tools in their order, and then answers."""

    def __init__(self, answer: str, *tools: str) -> None:
        self.answer, self.tools = answer, tools

    async def generate(self, request):
        await asyncio.sleep(0.4)
        done = sum(message.role == "tool" for message in request.messages)
        usage = Usage(input_tokens=210 + 40 * done, output_tokens=24, requests=1)
        if done < len(self.tools):
            call = ToolCall(f"{self.tools[done]}-{done}", self.tools[done], '{"order": 7}')
            return Message.assistant("", [call], usage=usage)
        return Message.assistant(self.answer, usage=usage)


@tool
async def charge(order: int) -> str:
    """Charge the customer for an order."""
    await asyncio.sleep(0.3)
    return f"order {order}: 42.00 EUR charged"


@tool
async def ship(order: int) -> str:
    """Send the parcel of an order."""
    if "dies" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(0.6)
    return f"order {order}: parcel 4711 is on its way"


def shop() -> Sequential:
    stock = ChatModelAgent(
        name="Stock", description="knows the stock", model=Clerk("Three of them are in stock.")
    )
    fraud = ChatModelAgent(
        name="Fraud", description="looks for fraud", model=Clerk("The customer is known to us.")
    )
    checks = Parallel(name="Checks", sub_agents=[stock, fraud])
    desk = ChatModelAgent(
        name="Desk",
        model=Clerk("Order 7 is paid, and on its way.", "charge", "ship"),
        tools=[charge, ship],
    )
    return Sequential(name="Shop", sub_agents=[checks, desk])


def runner_on(path: str, system: ActorSystem) -> Runner[object]:
    return Runner(shop(), system=system, store=SQLiteStore(path), durability="step", keep="all")


async def order(path: str) -> None:
    """What each of the two processes does."""
    async with ActorSystem("shop") as system:
        runner = runner_on(path, system)
        async with runner.store:
            for run in await runner.recover():
                await run
            await runner.session("ada").query(
                "Send order 7 to Ada.", run_id="order-7", labels={"customer": "ada"}
            )


async def take_pictures(path: str) -> None:
    async with ActorSystem("shop") as system:
        runner = runner_on(path, system)
        async with runner.store:
            app = console_app(runner, auth=TOKEN)
            with socket.create_server(("127.0.0.1", 0)) as listening:
                server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
                serving = asyncio.ensure_future(server.serve(sockets=[listening]))
                async with Browser(width=1280, height=690) as browser:
                    address = f"http://127.0.0.1:{listening.getsockname()[1]}/#token={quote(TOKEN)}"
                    page = await browser.open(address)
                    await page.until("document.body.innerText.includes('Runs')")
                    await page.js("location.hash = '#/run/order-7'")
                    await page.sees("is on its way")
                    await page.picture(FOLDER / "console.png")
                    await page.click("Timeline")
                    await page.sees("charge")
                    await page.picture(FOLDER / "timeline.png")
                    await page.close()
                await app.aclose()
                server.should_exit = True
                await serving


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/shop.db"
        for words in (["order", "dies"], ["order"]):
            done = subprocess.run([sys.executable, __file__, path, *words], check=False)
            print(" ".join(words), "ended with", done.returncode)
        asyncio.run(take_pictures(path))


if __name__ == "__main__":
    if "order" in sys.argv:
        asyncio.run(order(sys.argv[1]))
    else:
        main()
