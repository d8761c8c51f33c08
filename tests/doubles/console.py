"""A console that is asked as its page asks it, without a server between."""

import asyncio
import json

import httpx

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import MemoryStore, Runner, ScriptedModel, ToolCalls
from offbook.runtime.console import console_app

TOKEN = "a-token-of-the-test"
ORIGIN = "http://console.test:8737"


@tool(needs_approval=True)
def refund(order: str, amount: int) -> str:
    """Give money back."""
    return f"{amount} for {order}"


def desk(*replies, name="Desk", **options):
    """An agent that may give money back, after it was approved."""
    return ChatModelAgent(
        name=name,
        instruction="Be kind.",
        model=ScriptedModel(list(replies)),
        tools=[refund],
        **options,
    )


def refunding(*, last="It is done.", **options):
    return desk(ToolCalls(refund={"order": "A-7", "amount": 12}), last, **options)


def runner_of(agent, store=None, **options):
    return Runner(
        agent, store=MemoryStore() if store is None else store, **{"durability": "step", **options}
    )


async def list_many(store, count):
    """List so many runs that have ended, as if they had been there: each as the one that is played
    here, but for its id and when it began.
    """
    await runner_of(desk("hello"), store).query("q", run_id="model")
    entry = await store.run_entry("model")
    for first in range(0, count, 2_000):
        numbers = range(first, min(count, first + 2_000))
        await store.commit(
            None,
            [
                entry.replace(
                    key=f"old-{number}",
                    started=entry.started - 1_000_000 * (number + 60),
                    seconds=None,
                )
                for number in numbers
            ],
        )


class Asking:
    """`async with Asking(runner) as ask: await ask.get("runs")`."""

    def __init__(self, runner, auth=TOKEN, **options):
        self.app = console_app(runner, auth=auth, **options)
        self.waits = runner.system is None

    async def __aenter__(self):
        headers = {"Authorization": f"Bearer {TOKEN}", "Origin": ORIGIN}
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url=ORIGIN, headers=headers
        )
        return self

    async def __aexit__(self, *_):
        await self.client.aclose()
        await self.app.aclose()
        while self.waits and asyncio.all_tasks() - {
            asyncio.current_task()
        }:  # a system of the Runner's own ends when its runs have
            await asyncio.sleep(0)

    async def get(self, path, status=200, /, **parameters):
        answer = await self.client.get(f"/api/{path}", params=parameters)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path, status=200, /, **body):
        answer = await self.client.post(f"/api/{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def streamed(self, path, status=200, /, *, method="POST", **body):
        """What a stream says until its end: (kind, data, id)."""
        if method == "POST":
            answer = await self.client.post(f"/api/{path}", json=body)
        else:
            answer = await self.client.get(f"/api/{path}", params=body)
        assert answer.status_code == status, answer.text
        found = []
        for piece in answer.text.split("\n\n"):
            fields = dict(
                line.split(": ", 1)
                for line in piece.split("\n")
                if line and not line.startswith(":")
            )
            if fields:
                found.append(
                    (
                        fields["event"],
                        json.loads(fields["data"]),
                        int(fields["id"]) if "id" in fields else None,
                    )
                )
        return found


def events_of(streamed):
    return [event for kind, data, _ in streamed if kind == "events" for event in data]
