"""`RecordingModel`: a model that is asked once, and answers from a file from then on."""

import json

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    Message,
    ModelRequest,
    Runner,
    ScriptedModel,
    ToolCalls,
    Usage,
    UsageError,
)
from offbook.runtime.testing import RecordingModel


def get_weather(city: str) -> str:
    """Look."""
    return f"{city}: sunny"


def ask(model, text="How is it in Rome?", **options):
    return (
        Runner(ChatModelAgent(name="A", model=model, tools=[get_weather]), **options)
        .query(text)
        .result()
    )


SCRIPT = [
    ToolCalls(get_weather={"city": "Rome"}),
    Message.assistant("Sunny.", usage=Usage(7, 2, 0, 1)),
]


@pytest.mark.parametrize("streaming", [False, True])
def test_the_second_time_the_model_is_not_asked(tmp_path, streaming):
    path, model = tmp_path / "deep" / "weather.jsonl", ScriptedModel(SCRIPT)
    first = ask(RecordingModel(model, path), streaming=streaming)
    second = ask(RecordingModel(ScriptedModel([]), path), streaming=streaming)
    third = ask(RecordingModel(None, path), streaming=streaming)
    model.assert_done()
    assert first.text == second.text == third.text == "Sunny."
    assert [event.message for event in first.events] == [event.message for event in second.events]
    assert second.usage == first.usage


def test_a_request_that_was_not_recorded_is_an_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "weather.jsonl"
    ask(RecordingModel(ScriptedModel(SCRIPT), path))
    with pytest.raises(UsageError, match=r"(?s)weather\.jsonl.*How is it in Oslo.*delete the file"):
        ask(RecordingModel(ScriptedModel(SCRIPT), path), "How is it in Oslo?").raise_for_error()


def test_what_redact_removes_is_not_in_the_file_and_does_not_matter(tmp_path):
    path = tmp_path / "weather.jsonl"

    def redact(text):
        return text.replace("Ann", "X").replace("Bob", "X").replace("secret", "***")

    script = [ToolCalls(get_weather={"city": "Ann's secret"}), "The secret of Ann"]
    ask(RecordingModel(ScriptedModel(script), path, redact=redact), "I am Ann, secret")
    text = path.read_text()
    assert "Ann" not in text
    assert "secret" not in text
    assert ask(RecordingModel(None, path, redact=redact), "I am Bob, secret").text == "The *** of X"


def test_the_same_request_again_is_given_its_answers_in_order(tmp_path, run):
    path, request = tmp_path / "dice.jsonl", ModelRequest((Message.user("throw"),))

    async def throws(model):
        return [(await model.generate(request)).text for _ in range(3)]

    assert run(throws(RecordingModel(ScriptedModel(["1", "6", "2"]), path))) == ["1", "6", "2"]
    assert run(throws(RecordingModel(None, path))) == ["1", "6", "2"]


def test_without_a_recording_a_model_is_needed(tmp_path):
    with pytest.raises(UsageError, match=r"the recording .* does not exist"):
        RecordingModel(None, tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    "line", ["no json", "{}", json.dumps({"request": {}, "answer": {"text": 1}})]
)
def test_a_damaged_recording_is_said_with_its_line(tmp_path, line):
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(UsageError, match=r"line 1 of .*bad\.jsonl"):
        RecordingModel(None, path)


def test_a_failing_model_leaves_nothing_in_the_file(tmp_path):
    path = tmp_path / "weather.jsonl"
    assert isinstance(
        ask(RecordingModel(ScriptedModel([ValueError("down")]), path)).error, Exception
    )
    assert not path.exists()
