"""`Session.follow`: the events of all turns, from any process."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, CheckpointNotFound, Message, Runner, ToolCall, UsageError


class Model:
    async def generate(self, request):
        last = request.messages[-1]
        if last.text == "ask":
            return Message.assistant("", tool_calls=(ToolCall("c", "ask", "{}"),))
        return Message.assistant(f"heard {last.text}")


@tool
def ask(context: ToolContext) -> str:
    """Ask."""
    return str(context.interrupt("what?"))


AGENT = ChatModelAgent(name="A", model=Model(), tools=[ask])


async def texts(events, count):
    async with asyncio.timeout(20):
        return [(await anext(events)).text for _ in range(count)]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_each_turn_is_followed_in_order_also_one_that_is_resumed(run, store_of, kind):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                AGENT, system=system, store=store_of(kind), durability="step", keep="all"
            )
            session = runner.session("s")
            first = session.query("one")
            await first
            events = session.follow()
            assert await texts(events, 1) == ["heard one"]
            second = session.query("ask")
            assert await texts(events, 2) == ["", ""]
            assert (await session.query("three")).final_output == "heard three"
            assert await texts(events, 1) == ["heard three"]
            await runner.resume(second.checkpoint_id, data="this")
            assert await texts(events, 2) == ["this", "heard this"]
            await events.aclose()
            later = session.follow((first.id, 1))
            seen = [await anext(later) for _ in range(3)]
            assert second.id == seen[0].run_id
            await later.aclose()

    run(main())


def test_posts_are_followed_in_another_process(run, store_of):
    async def main():
        async with ActorSystem() as system:
            here, there = (
                Runner(
                    AGENT,
                    system=system,
                    store=store_of("sqlite", "same"),
                    durability="step",
                    keep="all",
                )
                for _ in range(2)
            )
            async with here.attending():
                events = there.session("s").follow()
                await there.session("s").post("hello")
                assert await texts(events, 2) == ["hello", "heard hello"]
                await events.aclose()

    run(main())


def test_a_cursor_of_another_session_is_refused(run, store_of):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                AGENT, system=system, store=store_of("sqlite"), durability="step", keep="all"
            )
            other = runner.session("other").query("one")
            await other
            for wrong, error in (
                ((other.id, 1), CheckpointNotFound),
                (("never", 1), CheckpointNotFound),
                ("s", UsageError),
                (("s", -1), UsageError),
            ):
                with pytest.raises(error, match="follow"):
                    await anext(runner.session("s").follow(wrong))

    run(main())
