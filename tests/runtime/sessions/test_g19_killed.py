"""G19 where a process ends between two steps: from what is in the store after each of them, another
process hears every acknowledged post once, in order.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, Message, Runner, RunStatus, ToolCall
from offbook.runtime.codec.packing import unpack
from offbook.runtime.durability.store_keys import inbox_prefix, posted_key
from tests.doubles.snapshots import Snapshots

TEXTS = ["work", "post 2", "post 3", "post 4", "post 5"]


class Model:
    async def generate(self, request):
        last = request.messages[-1]
        if last.role == "user" and last.text == "work":
            return Message.assistant("", tool_calls=(ToolCall("c", "work", "{}"),))
        return Message.assistant(f"heard {last.text}")


def agent_of(work):
    @tool(name="work")
    async def run() -> str:
        """Work."""
        await work()
        return "done"

    return ChatModelAgent(name="A", model=Model(), tools=[run])


async def over(runner, texts):
    """Wait until all of that is heard, and no turn is left."""
    session = runner.session("s")
    async with asyncio.timeout(20):
        while True:
            said = [one.text for one in await session.history() if one.role == "user"]
            open_runs = await runner.runs([RunStatus.RUNNING, RunStatus.PENDING])
            if len(said) >= len(texts) and not await session.inbox() and not open_runs:
                return said
            await asyncio.sleep(0.001)


async def played(store, durability):
    """A turn that a post starts, two posts that it hears, and one that starts the next turn."""
    at_work, gate = asyncio.Event(), asyncio.Event()

    async def work():
        at_work.set()
        await gate.wait()

    async with ActorSystem() as system:
        runner = Runner(agent_of(work), system=system, store=store, durability=durability)
        session = runner.session("s")
        async with runner.attending(every=600.0, recover_every=None):
            await session.post("work", id="1")
            await at_work.wait()
            await session.post("post 2", id="2")
            await session.post("post 3")
            await session.post("post 4", when="turn_end", id="4")
            gate.set()
            await over(runner, TEXTS[:4])
            await session.post("post 5")
            await over(runner, TEXTS)


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g19_each_post_is_heard_once_whenever_the_process_ends(run, durability):
    async def nothing():
        pass

    async def main():
        store = Snapshots()
        await played(store, durability)
        assert len(store.taken) >= 18
        for number, (call, content) in enumerate(store.taken):
            last = content.get(posted_key("A", "s"), (None,))[0]
            posted = TEXTS[: 0 if last is None else unpack(last)]
            left = Snapshots(content)
            async with ActorSystem() as system:
                runner = Runner(agent_of(nothing), system=system, store=left, durability=durability)
                async with runner.attending(every=600.0, recover_every=600.0):
                    said = await over(runner, posted)
                assert said == posted, (number, call, said)
                session = runner.session("s")
                history = [message.text for message in await session.history()]
                assert [text for text in history if text in TEXTS] == posted, (number, call)
                assert await left.keys(inbox_prefix("A")) == []
                for text, post_id in (("work", "1"), ("post 2", "2")):
                    if text in posted:
                        assert (await session.post(text, id=post_id)).duplicate

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g19_a_process_that_lost_the_turn_removes_and_shows_nothing(run, durability):
    """Another process has taken the session while this one was in a tool."""

    async def main():
        at_work, gate = asyncio.Event(), asyncio.Event()

        async def work():
            at_work.set()
            await gate.wait()

        store = Snapshots()
        async with ActorSystem() as system:
            runner = Runner(agent_of(work), system=system, store=store, durability=durability)
            session = runner.session("s")
            turn = session.query("work")
            await at_work.wait()
            await session.post("post 2")
            for owner in list(store._owners):
                await store.revoke(owner)
            gate.set()
            result = await turn
            assert result.status is not RunStatus.COMPLETED
            assert [post.message.text for post in await session.inbox()] == ["post 2"]
            assert "post 2" not in [one.text for one in await session.history()]

    run(main())
