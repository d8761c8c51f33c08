"""`AgentEvent.text`, `str(event)`, `RunResult.text`, `RunResult.final_output`: what one reads of a
run without asking first what kind of thing it is.
"""

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    AgentEvent,
    BreakLoop,
    CustomAction,
    Exit,
    ImagePart,
    InterruptContext,
    Interrupted,
    Message,
    MessageDelta,
    ModelError,
    RunCancelled,
    Runner,
    RunResult,
    RunStatus,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    TransferToAgent,
)


def event(**fields):
    return AgentEvent(agent_name="Ada", run_path=("Ada",), **fields)


def test_an_event_has_the_text_of_its_message():
    assert event(message=Message.assistant("hello")).text == "hello"


def test_an_event_has_the_text_of_its_piece_of_a_message():
    assert event(delta=MessageDelta("hel")).text == "hel"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"error": ModelError("down")},
        {"action": Exit()},
        {"message": Message.user([ImagePart(url="x")])},
    ],
    ids=["nothing", "error", "action", "image"],
)
def test_an_event_without_a_text_has_an_empty_one(fields):
    assert event(**fields).text == ""


CALL = ToolCall("1", "get_weather", '{"city": "Paris"}')
WAITS = Interrupted(
    (InterruptContext("i", (), info="which city?"), InterruptContext("j", (), info={"amount": 3}))
)
LINES = [
    ({"message": Message.assistant("hello")}, "[Ada] hello"),
    ({"message": Message.assistant("one\n\n  two ")}, "[Ada] one two"),
    ({"message": Message.assistant("", [CALL])}, '[Ada] calls get_weather({"city": "Paris"})'),
    (
        {"message": Message.assistant("I look.", [CALL, CALL])},
        '[Ada] I look. | calls get_weather({"city": "Paris"}) | calls get_weather({"city": '
        '"Paris"})',
    ),
    ({"message": Message.tool("sunny", "1", "get_weather")}, "[Ada] get_weather -> sunny"),
    ({"message": Message.user([ImagePart(url="x")])}, "[Ada] (no text)"),
    ({"delta": MessageDelta("hel")}, "[Ada] ...hel"),
    (
        {"delta": MessageDelta(), "error": ModelError("cut off")},
        "[Ada] begins again: ModelError: cut off",
    ),
    ({"custom_output": {"n": 1}}, "[Ada] {'n': 1}"),
    ({"action": Exit()}, "[Ada] ends the run"),
    ({"action": BreakLoop(by="Ada", done=True, iteration=1)}, "[Ada] breaks the loop"),
    ({"action": CustomAction("blink")}, "[Ada] CustomAction(value='blink')"),
    ({"action": WAITS}, "[Ada] waits: which city? | waits: {'amount': 3}"),
    ({"action": Interrupted()}, "[Ada] waits"),
    (
        {"message": Message.tool("done", "1", "go"), "action": TransferToAgent("Bob")},
        "[Ada] go -> done | transfers to Bob",
    ),
    (
        {"error": ModelError("the provider is down")},
        "[Ada] failed: ModelError: the provider is down",
    ),
    ({"error": RunCancelled("too late")}, "[Ada] cancelled: too late"),
    ({}, "[Ada]"),
]


@pytest.mark.parametrize(("fields", "line"), LINES, ids=[line for _, line in LINES])
def test_an_event_is_printed_as_one_readable_line(fields, line):
    assert str(event(**fields)) == line


def test_an_event_that_no_run_has_seen_is_printed_too():
    assert str(AgentEvent.say("hello")) == "hello"


def test_the_events_of_a_run_are_printed_as_lines(capsys):
    def get_weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    model = ScriptedModel(
        [ToolCalls(get_weather={"city": "Paris"}), ModelError("the provider is down")]
    )
    for each in Runner(ChatModelAgent(name="Ada", tools=[get_weather], model=model)).query(
        "weather?"
    ):
        print(each)
    assert capsys.readouterr().out.splitlines() == [
        '[Ada] calls get_weather({"city":"Paris"})',
        "[Ada] get_weather -> sunny in Paris",
        "[Ada] failed: ModelError: the provider is down",
    ]


def result_of(*lines):
    return Runner(ChatModelAgent(name="Ada", model=ScriptedModel(lines))).query("hi").result()


def test_a_result_has_the_text_of_its_last_message():
    assert result_of("hello").text == "hello"


def test_a_result_without_a_message_has_an_empty_text():
    assert RunResult(RunStatus.COMPLETED).text == ""


@pytest.mark.parametrize("name", ["text", "final_output"])
def test_what_a_failed_run_has_said_raises_what_it_failed_with(name):
    result = result_of(ModelError("the provider is down"))
    assert (result.status, str(result.error)) == ("failed", "the provider is down")
    with pytest.raises(ModelError, match="the provider is down"):
        getattr(result, name)


@pytest.mark.parametrize("name", ["text", "final_output"])
def test_what_a_cancelled_run_has_said_raises_the_cancellation(name):
    result = RunResult(
        RunStatus.CANCELLED, RunCancelled("too late"), Message.assistant("half"), "half"
    )
    with pytest.raises(RunCancelled, match="too late"):
        getattr(result, name)


def test_a_failed_result_still_shows_how_far_it_came():
    result = RunResult(RunStatus.FAILED, ModelError("down"), Message.assistant("half"), "half")
    assert (result.final_message.text, result.output) == ("half", "half")


def test_a_failed_result_can_be_printed_compared_and_copied():
    result = RunResult(RunStatus.FAILED, ModelError("down"), None, "half")
    assert "down" in repr(result)
    assert result.replace() == result
    assert result.replace(output="whole") != result
