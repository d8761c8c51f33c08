"""Half a surrogate pair in a message, a tool's result, a reply or an error: it is replaced where it
comes in, and ends no session and no stream.
"""

import logging

import pytest

from offbook.actors import Agent, ChatModelAgent, tool
from offbook.runtime import (
    AgentEvent,
    MemoryStore,
    Message,
    MessageDelta,
    Runner,
    ScriptedModel,
    TextPart,
    ToolCall,
    sse,
)
from offbook.runtime.a2a import a2a_app
from offbook.runtime.data.well_formed import well_formed
from tests.doubles.a2a import ByHand, serving, state_of, text_of

BAD, GOOD = "a\ud83dz", "a\ufffdz"
PLACES = ["message", "parts", "tool result", "tool error", "tool name", "reply", "run error"]


@pytest.fixture(autouse=True)
def silent(caplog):
    """What fails is logged as it was said, and the tests' own reports cannot hold it."""
    caplog.set_level(logging.CRITICAL + 1, "offbook")


class Streaming:
    """A model that gives its replies in deltas of one character, as they were scripted."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []

    async def generate(self, request):
        self.requests.append(request)
        return self.replies.pop(0)

    async def stream(self, request):
        message = await self.generate(request)
        for character in message.content:
            yield MessageDelta(character)
        yield message


def agent_with(place, text=BAD):
    @tool
    async def look() -> str:
        """Look."""
        if place == "tool error":
            raise ValueError(text)
        return text if place == "tool result" else "x"

    first = Message(
        "assistant", "", (ToolCall("c1", text if place == "tool name" else "look", "{}"),)
    )
    last = OSError(text) if place == "run error" else text if place == "reply" else "ok"
    return ChatModelAgent(
        name="A", description="looks", model=ScriptedModel([first, last, "again"]), tools=[look]
    )


def asked(place):
    return [
        Message.user([TextPart(BAD)])
        if place == "parts"
        else Message.user(BAD if place == "message" else "hi")
    ]


def test_a_pair_is_joined_and_a_half_is_replaced():
    assert well_formed("plain") == "plain"
    assert well_formed("schön 😀") == "schön 😀"
    assert well_formed(BAD) == GOOD
    assert well_formed("\ude00\ud83d") == "\ufffd\ufffd"
    assert well_formed("\ud83d\ude00!") == "😀!"


def test_each_text_of_a_message_is_well_formed():
    message = Message("assistant", BAD, (ToolCall(BAD, BAD, BAD),), None, BAD, BAD, refusal=BAD)
    assert (
        message.content,
        message.tool_calls,
        message.tool_name,
        message.reasoning,
        message.refusal,
    ) == (
        GOOD,
        (ToolCall(GOOD, GOOD, GOOD),),
        GOOD,
        GOOD,
        GOOD,
    )
    assert Message.tool(BAD, BAD).tool_call_id == GOOD
    assert Message.user(["x", BAD]).text == f"x{GOOD}"


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_session_and_its_stream_go_on(run, place, streaming):
    async def main():
        runner = Runner(
            agent_with(place), store=MemoryStore(), durability="step", streaming=streaming
        )
        session = runner.session("s")
        running = session.run(asked(place))
        sent = b"".join([chunk async for chunk in sse(running, show="all")]).decode()
        assert "event: end" in sent
        assert "\ufffd" in sent or place in ("message", "parts", "tool error")
        assert (await running).status == ("failed" if place == "run error" else "completed")
        if place != "run error":
            assert (await session.query("more")).final_output == "again"
        for message in await session.history():
            message.text.encode()

    run(main())


def test_a_pair_that_two_deltas_share_is_whole_in_the_message(run):
    async def main():
        agent = ChatModelAgent(name="A", model=Streaming(Message.assistant("hi \ud83d\ude00")))
        running = Runner(agent, streaming=True).query("go")
        for event in [event async for event in running]:
            if event.delta is not None:
                event.delta.content.encode()
        assert (await running).final_output == "hi 😀"

    run(main())


def test_a_custom_agent_may_say_it_too(run):
    class Says(Agent):
        async def run(self, asked, context):
            yield AgentEvent.say(BAD)
            yield AgentEvent(custom_output={"text": BAD})

    async def main():
        running = Runner(Says(name="A")).query("go")
        assert GOOD in b"".join([chunk async for chunk in sse(running)]).decode()

    run(main())


@pytest.mark.parametrize("place", ["tool result", "reply", "run error"])
def test_a_served_task_and_its_stream_come_to_their_end(run, place):
    async def main():
        async with serving(a2a_app(agent_with(place))) as url, ByHand(url) as client:
            events = await client.stream()
            assert "COMPLETED" in repr(events) or place == "run error"
        async with serving(a2a_app(agent_with(place))) as url, ByHand(url) as client:
            task = await client.send("this")
            assert state_of(task) == ("FAILED" if place == "run error" else "COMPLETED")
            if place == "reply":
                assert text_of(task) == GOOD

    run(main())
