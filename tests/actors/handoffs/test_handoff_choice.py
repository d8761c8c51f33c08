"""Which handoffs a model may choose, and with what arguments."""

import asyncio

import pytest
from pydantic import BaseModel

from offbook.actors import ToolContext, handoff, tool
from offbook.runtime import HandoffError, ModelBehaviorError, Runner, ToolCalls, ToolError
from tests.doubles.handing import chat, given, go, raw, shown


@tool
async def look(what: str) -> str:
    """Look something up."""
    return f"{what} found"


class Reason(BaseModel):
    text: str
    level: int


def nothing(context, value):
    """Takes an input."""


# --- those that there are not ---


def test_an_unknown_handoff_is_told_to_the_model():
    a = chat("A", go("X"), "sorry", handoffs=[chat("B")], tools=[look])
    result = Runner(a).query("q").result()
    assert result.final_output == "sorry"
    assert (
        result.events[1].message.text
        == "there is no tool named 'transfer_to_x'. The tools that exist: look, transfer_to_b."
    )


async def is_on(context, agent):
    await asyncio.sleep(0)
    return context.get("on") == agent.name


@pytest.mark.parametrize(
    "enabled", [False, lambda context, agent: context.get("on") == agent.name, is_on]
)
def test_one_that_is_not_enabled_is_not_shown_and_unknown(enabled):
    called = []
    to_b = handoff(chat("B"), on_handoff=called.append, is_enabled=enabled)
    a = chat("A", go("B"), "sorry", handoffs=[to_b, chat("C")])
    result = Runner(a).query("q").result()
    assert shown(a, 0) == shown(a, 1) == ["transfer_to_c"]
    assert (
        result.events[1].message.text
        == "there is no tool named 'transfer_to_b'. The tools that exist: transfer_to_c."
    )
    assert not called
    strict = chat("A", go("B"), handoffs=[to_b], on_tool_error="raise")
    assert isinstance(Runner(strict).query("q").result().error, ToolError)


@pytest.mark.parametrize(
    "enabled", [True, lambda context, agent: context.get("on") == agent.name, is_on]
)
def test_one_that_is_enabled_is_shown_and_followed(enabled):
    a = chat("A", go("B"), handoffs=[handoff(chat("B", "done"), is_enabled=enabled)])
    assert Runner(a).query("q", session_values={"on": "A"}).result().last_agent == "B"
    assert shown(a) == ["transfer_to_b"]


def test_it_is_asked_before_every_call_of_the_model():
    @tool
    def open_up(context: ToolContext) -> str:
        """Open."""
        context.session["open"] = True
        return "open"

    a = chat(
        "A",
        ToolCalls(open_up={}),
        go("B"),
        tools=[open_up],
        handoffs=[
            handoff(chat("B", "done"), is_enabled=lambda context, _: context.get("open", False))
        ],
    )
    assert Runner(a).query("q").result().last_agent == "B"
    assert [shown(a, 0), shown(a, 1)] == [["open_up"], ["open_up", "transfer_to_b"]]


def test_they_are_asked_at_once_and_the_first_that_raises_ends_the_others(run):
    met, ended = asyncio.Barrier(2), []

    async def meets(context, agent):
        await met.wait()
        return True

    async def raises(context, agent):
        await asyncio.sleep(0)
        raise ValueError("no idea")

    async def waits(context, agent):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(agent.name)

    async def story():
        a = chat("A", "hello", handoffs=[handoff(chat(name), is_enabled=meets) for name in "BC"])
        await Runner(a).query("q")
        assert shown(a) == ["transfer_to_b", "transfer_to_c"]
        a = chat(
            "A",
            handoffs=[handoff(chat("B"), is_enabled=waits), handoff(chat("C"), is_enabled=raises)],
        )
        result = await Runner(a).query("q")
        assert isinstance(result.error, HandoffError)
        assert isinstance(result.error.__cause__, ValueError)
        assert str(result.error) == (
            "is_enabled of the handoff transfer_to_c raised ValueError: no idea"
        )
        assert ended == ["A"]

    run(story())


# --- arguments ---

BROKEN = [
    '{"text": "x", "level": "25"}',
    '{"text": "x"',
    "",
    '{"text": "x"}',
    "[]",
    '{"text": null, "level": 1}',
]


@pytest.mark.parametrize("arguments", BROKEN)
def test_arguments_that_are_not_valid_go_back_to_the_model(arguments):
    called = []
    to_b = handoff(
        chat("B", "done"), on_handoff=lambda context, value: called.append(value), input_type=Reason
    )
    a = chat(
        "A",
        raw("B", arguments),
        ToolCalls(transfer_to_b={"text": "y", "level": 2}),
        handoffs=[to_b],
    )
    result = Runner(a).query("q").result()
    assert result.last_agent == "B"
    assert called == [Reason(text="y", level=2)]
    told = result.events[1].message
    assert (told.role, told.tool_name) == ("tool", "transfer_to_b")
    assert "handoff to B" in told.text
    assert "\n" not in told.text
    assert result.events[1].action is None


@pytest.mark.parametrize("arguments", BROKEN)
def test_or_they_end_the_run(arguments):
    a = chat(
        "A",
        raw("B", arguments),
        handoffs=[handoff(chat("B"), on_handoff=nothing, input_type=Reason)],
        on_tool_error="raise",
    )
    result = Runner(a).query("q").result()
    assert isinstance(result.error, ModelBehaviorError)
    assert (result.error.agent, result.error.message.name) == ("A", "transfer_to_b")
    assert len(result.events) == 2


def test_what_a_wrong_one_was_beside_has_its_result_too():
    a = chat(
        "A",
        ToolCalls(("transfer_to_b", "{"), ("transfer_to_c", {}), ("look", {"what": "x"})),
        "well",
        tools=[look],
        # fmt: skip.
        handoffs=[handoff(chat("B"), on_handoff=nothing, input_type=Reason), chat("C")],
    )
    result = Runner(a).query("q").result()
    assert result.final_output == "well"
    assert [message.tool_name for message in given(a) if message.role == "tool"] == [
        "transfer_to_b",
        "transfer_to_c",
        "look",
    ]


async def raise_later(context):
    await asyncio.sleep(0)
    raise KeyError("gone")


def raise_now(context):
    raise ModelBehaviorError("not the model's")


async def cancel_itself(context):
    await asyncio.sleep(0)
    raise asyncio.CancelledError("from within")


def cancel_now(context):
    raise asyncio.CancelledError("from within")


CALLBACKS = [
    (raise_later, KeyError),
    (raise_now, ModelBehaviorError),
    (cancel_itself, asyncio.CancelledError),
    (cancel_now, asyncio.CancelledError),
]


@pytest.mark.parametrize(("callback", "kind"), CALLBACKS)
def test_a_callback_that_raises_ends_the_run(callback, kind):
    result = (
        Runner(chat("A", go("B"), handoffs=[handoff(chat("B"), on_handoff=callback)]))
        .query("q")
        .result()
    )
    assert isinstance(result.error, HandoffError)
    assert isinstance(result.error.__cause__, kind)
    assert str(result.error).startswith(
        f"on_handoff of the handoff to 'B' raised {kind.__name__}: "
    )
    assert (result.error.agent, result.error.run, result.last_agent) == (
        "A",
        result.events[0].run_id,
        "A",
    )


def test_a_callbacks_result_is_awaited_and_not_used():
    done = []

    class Later:
        def __await__(self):
            done.append("awaited")
            yield from asyncio.sleep(0).__await__()
            return chat("X")

    b = chat("B", "done")
    assert (
        Runner(chat("A", go("B"), handoffs=[handoff(b, on_handoff=lambda context: Later())]))
        .query("q")
        .result()
        .last_agent
        == "B"
    )
    assert done == ["awaited"]


def test_the_input_may_be_passed_on(asked):
    b = chat("B", "done", instruction="Be B.")
    a = chat(
        "A",
        ToolCalls(transfer_to_b={"text": "x", "level": 2}),
        handoffs=[handoff(b, on_handoff=nothing, input_type=Reason, pass_input=True)],
    )
    Runner(a).query("q").result()
    assert asked(given(b))[:2] == ['user "{"text":"x","level":2}"', 'user "q"']
    filtered = chat("B", "done")
    to_b = handoff(
        filtered,
        on_handoff=nothing,
        input_type=Reason,
        pass_input=True,
        input_filter=lambda data: data.clone(input_history="", new_items=()),
    )
    Runner(chat("A", ToolCalls(transfer_to_b={"text": "x", "level": 2}), handoffs=[to_b])).query(
        "q"
    ).result()
    assert asked(given(filtered)) == ['user "{"text":"x","level":2}"']
