"""Items of the Agents SDK as understudy's messages, and back: what a message can hold is held, and nothing else is lost on the way of an SDK run."""

import asyncio

import pytest

from understudy.actors import agents_sdk as sdk
from understudy.actors.agents_sdk.items.messages import item_of_reply, items_of_messages, message_of_response, messages_of_items
from understudy.actors.agents_sdk.testing import ScriptedModel, assistant_message
from understudy.runtime import FilePart, ImagePart, Message, TextPart, ToolCall

CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"at": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "seen"}


@pytest.mark.parametrize(
    "items",
    [
        [{"role": "user", "content": "hello"}],
        [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
        [{"role": "user", "content": "look"}, CALL, OUTPUT],
        [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "what is it?"}, {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}],
            }
        ],
        [{"role": "user", "content": [{"type": "input_text", "text": "read"}, {"type": "input_file", "file_url": "https://x/y.pdf"}]}],
    ],
)
def test_input_items_are_the_same_after_both_ways(items):
    assert items_of_messages(messages_of_items(items)) == items


@pytest.mark.parametrize(
    "message",
    [
        Message.user("hello"),
        Message("user", (TextPart("what is it?"), ImagePart(url="https://x/y.png", detail="auto"))),
        Message("user", (FilePart(url="https://x/y.pdf"),)),
        Message("tool", "seen", (), "c", "look"),
    ],
)
def test_messages_are_the_same_after_both_ways(message):
    (back,) = messages_of_items(items_of_messages([message]))
    assert (back.role, back.content, back.tool_call_id) == (message.role, message.content, message.tool_call_id)


def test_a_reply_is_the_same_after_both_ways():
    said = Message("assistant", "hi", (ToolCall("c", "look", "{}"),), reasoning="hm")
    back = message_of_response(sdk.ModelResponse(item_of_reply(said), sdk.Usage(), None))
    assert (back.content, back.tool_calls, back.reasoning) == (said.content, said.tool_calls, said.reasoning)


def test_what_no_message_can_hold_reaches_the_model_untouched():
    """Ids, encrypted reasoning, and items of tools that run at the provider."""
    items = [
        {"role": "developer", "content": "be brief"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"},
        {"role": "user", "content": "go on"},
    ]
    model = ScriptedModel([[assistant_message("done")]])
    result = asyncio.run(sdk.Runner.run(sdk.Agent(name="A", model=model), items))
    assert model.first_call.input == items
    assert result.to_input_list()[: len(items)] == items


def test_a_kept_run_has_them_after_a_checkpoint_too():
    items = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}, {"role": "user", "content": "go on"}]

    async def story():
        agent = sdk.Agent(name="A", model=ScriptedModel([[assistant_message("done")]]))
        result = await sdk.Runner.run(agent, items)
        return await sdk.RunState.from_string(agent, result.to_state().to_string())

    state = asyncio.run(story())
    assert state.original_input == items
    assert [item.raw_item.content[0].text for item in state.generated_items] == ["done"]
