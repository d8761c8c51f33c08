"""Replies that were cut off by the provider: calls whose arguments are incomplete are not made, and
nobody is asked to approve them.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, handoff, tool
from offbook.runtime import (
    MemoryStore,
    Message,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Runner,
    ScriptedModel,
    ToolCall,
)
from tests.programs import openai_wire as wire

CUT = ["length", "content_filter"]
WHERE = {"length": "max_output_tokens", "content_filter": "content_filter"}
BEGINNINGS = ["", "{", '{"pattern": "a', '{"pattern": "a"']


def chat_reply(reason, arguments):
    said = wire.completion(None, calls=[wire.call("delete_orders", arguments)])
    said["choices"][0]["finish_reason"] = reason
    return said, wire.completion("sorry")


def responses_reply(reason, arguments):
    item = {**wire.output_call("delete_orders", arguments), "status": "incomplete"}
    return wire.response(
        item, status="incomplete", incomplete_details={"reason": WHERE.get(reason, reason)}
    ), wire.response(wire.output_text("sorry"))


APIS = {"chat": (OpenAIChatModel, chat_reply), "responses": (OpenAIResponsesModel, responses_reply)}


@pytest.mark.parametrize("approval", [False, True])
@pytest.mark.parametrize("arguments", BEGINNINGS)
@pytest.mark.parametrize("reason", CUT)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_a_call_that_was_cut_off_is_not_made_and_the_model_is_told_why(
    run, api, streaming, reason, arguments, approval
):
    called, asked = [], []

    @tool(needs_approval=lambda context, given: asked.append(given) or True if approval else False)
    async def delete_orders(pattern: str = "*") -> str:
        """Delete."""
        called.append(pattern)
        return "deleted"

    async def main():
        kind, make = APIS[api]
        first, second = make(reason, arguments)
        async with wire.WireServer(wire.saying(first), wire.saying(second)) as server:
            model = kind("m", api_key="k", base_url=server.url)
            agent = ChatModelAgent(name="a", model=model, tools=[delete_orders])
            result = await Runner(agent, streaming=streaming, store=MemoryStore()).query("go")
            await model.aclose()
        assert (result.status, result.final_output) == ("completed", "sorry")
        (told,) = [
            event.message.text
            for event in result.events
            if event.message is not None and event.message.role == "tool"
        ]
        assert "delete_orders was not called" in told
        assert reason in told
        assert called == asked == []

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_a_call_without_arguments_in_a_whole_reply_is_made(run, api, streaming):
    called = []

    @tool
    async def delete_orders(pattern: str = "*") -> str:
        """Delete."""
        called.append(pattern)
        return "deleted"

    async def main():
        kind, make = APIS[api]
        first = (
            chat_reply("tool_calls", "")[0]
            if api == "chat"
            else wire.response(wire.output_call("delete_orders", ""))
        )
        async with wire.WireServer(
            wire.saying(first), wire.saying(make("length", "")[1])
        ) as server:
            model = kind("m", api_key="k", base_url=server.url)
            result = await Runner(
                ChatModelAgent(name="a", model=model, tools=[delete_orders]), streaming=streaming
            ).query("go")
            await model.aclose()
        assert result.final_output == "sorry"
        assert called == ["*"]

    run(main())


def cut(*calls, reason="length"):
    """A reply that was cut off, of calls of name and arguments."""
    return Message(
        "assistant",
        "",
        tuple(
            ToolCall(f"c{place}", name, arguments) for place, (name, arguments) in enumerate(calls)
        ),
        finish_reason=reason,
    )


def test_the_calls_before_it_are_made(run):
    called = []

    @tool
    async def note(text: str = "nothing") -> str:
        """Note."""
        called.append(text)
        return "noted"

    async def main():
        model = ScriptedModel([cut(("note", '{"text": "one"}'), ("note", '{"text": "tw')), "done"])
        result = await Runner(ChatModelAgent(name="a", model=model, tools=[note])).query("go")
        assert result.final_output == "done"
        assert called == ["one"]

    run(main())


@pytest.mark.parametrize(
    "reason", ["length", "content_filter", "incomplete", "error", "model_length"]
)
def test_a_handoff_that_was_cut_off_is_not_made(run, reason):
    called = []
    other = ChatModelAgent(name="b", model=ScriptedModel(["I am b"]))

    async def on_handoff(context):
        called.append("b")

    async def main():
        model = ScriptedModel([cut(("transfer_to_b", ""), reason=reason), "I am a"])
        result = await Runner(
            ChatModelAgent(name="a", model=model, handoffs=[handoff(other, on_handoff=on_handoff)])
        ).query("go")
        assert (result.final_output, result.last_agent) == ("I am a", "a")
        assert called == []

    run(main())


def test_an_exit_and_a_transfer_that_were_cut_off_are_not_made(run):
    async def main():
        model = ScriptedModel(
            [cut(("exit", "")), cut(("transfer_to_agent", '{"agent_name": "b"')), "still here"]
        )
        other = ChatModelAgent(name="b", model=ScriptedModel(["I am b"]))
        result = await Runner(
            ChatModelAgent(name="a", model=model, exit_tool=True, sub_agents=[other])
        ).query("go")
        assert (result.final_output, result.last_agent) == ("still here", "a")

    run(main())


def test_with_on_tool_error_raise_it_is_the_agents_failure(run):
    @tool
    async def note(text: str = "nothing") -> str:
        """Note."""
        return "noted"

    async def main():
        agent = ChatModelAgent(
            name="a", model=ScriptedModel([cut(("note", ""))]), tools=[note], on_tool_error="raise"
        )
        result = await asyncio.wait_for(Runner(agent).query("go"), 5)
        assert "note was not called" in str(result.error)

    run(main())
