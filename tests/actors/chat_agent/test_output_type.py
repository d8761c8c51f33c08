"""An agent whose answer has a type: the model is asked for it by schema, and the run's output is an
instance.
"""

import re
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    MaxIterationsExceeded,
    Message,
    ModelBehaviorError,
    ModelError,
    Runner,
    ScriptedModel,
    ToolCalls,
    Usage,
    UsageError,
)

T = TypeVar("T")


class City(BaseModel):
    name: str
    people: int = Field(gt=0)


@dataclass
class Point:
    x: int
    y: int


class Named(TypedDict):
    name: str


GOOD = '{"name":"Paris","people":2}'
BAD = '{"name":"Paris","people":-2}'


def play(script, output_type=City, **options):
    model = ScriptedModel(script)
    result = (
        Runner(ChatModelAgent(name="a", model=model, output_type=output_type, **options))
        .query("go")
        .result(20)
    )
    return result, model


def test_the_model_is_asked_for_it_by_schema_and_the_output_is_an_instance():
    result, model = play([GOOD])
    assert result.final_output == City(name="Paris", people=2)
    assert result.final_message.text == GOOD
    assert result.events[0].custom_output == result.final_output
    schema = model.requests[0].output_schema
    assert schema.name == "City"
    assert set(schema.schema["properties"]) == {"name", "people"}
    assert schema.schema["additionalProperties"] is False
    assert schema.strict


def test_without_an_output_type_no_schema_is_asked_for():
    model = ScriptedModel([GOOD])
    result = Runner(ChatModelAgent(name="a", model=model)).query("go").result()
    assert model.requests[0].output_schema is None
    assert result.final_output == GOOD


@pytest.mark.parametrize(
    ("output_type", "text", "output"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, '{"x":1,"y":2}', Point(1, 2)),
        (Named, '{"name":"x"}', {"name": "x"}),
        (City | Point, '{"x":1,"y":2}', Point(1, 2)),
        (int, "0", 0),
        (bool, "false", False),
        (list[City], f"[{GOOD}]", [City(name="Paris", people=2)]),
        (Literal["yes", "no"], '"no"', "no"),
        (list[str], "[]", []),
        (int | None, "null", None),
    ],
    ids=str,
)
def test_it_may_be_whatever_pydantic_can_validate(output_type, text, output):
    result, model = play([text], output_type)
    assert result.status == "completed"
    assert result.final_output == output
    assert type(result.final_output) is type(output)
    assert model.requests[0].output_schema.schema


class Page(BaseModel, Generic[T]):
    items: list[T]


def test_the_name_of_the_schema_is_one_that_providers_take():
    result, model = play([f'{{"items":[{GOOD}]}}'], Page[City])
    assert result.final_output == Page[City](items=[City(name="Paris", people=2)])
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", model.requests[0].output_schema.name)


def test_the_schema_is_of_an_object_or_not_strict_as_providers_want_it():
    _, model = play(["[1]"] * 2, list[int])
    schema = model.requests[0].output_schema
    assert schema.schema["type"] == "object" or not schema.strict


def test_an_output_type_of_text_takes_what_the_model_says():
    result, _ = play(["hello"] * 2, str)
    assert result.final_output == "hello"
    assert len(result.events) == 1


@pytest.mark.parametrize(
    "text",
    [f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```", f"  {GOOD}\n", f"\n```json\n{GOOD}```\n\n"],
)
def test_a_fence_around_it_is_no_harm(text):
    result, _ = play([text])
    assert result.final_output == City(name="Paris", people=2)


@pytest.mark.parametrize("bad", [BAD, "I do not know", "", "{", "[]", "null", f"{GOOD} {GOOD}"])
def test_an_answer_that_does_not_validate_goes_back_once_with_the_reason(bad):
    result, model = play([bad, GOOD])
    assert result.status == "completed"
    assert result.final_output == City(name="Paris", people=2)
    assert [event.message.text for event in result.events] == [bad, GOOD]
    assert result.events[0].custom_output is None
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "user"]
    assert model.requests[1].messages[1].text == bad
    assert "not valid" in model.requests[1].messages[2].text
    if bad == BAD:
        assert "people" in model.requests[1].messages[2].text
        assert "greater than 0" in model.requests[1].messages[2].text


def test_what_a_validator_of_the_users_says_goes_back_too():
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, value):
            if value % 2:
                raise ValueError("must be even")
            return value

    result, model = play(['{"number":1}', '{"number":2}'], Even)
    assert result.final_output == Even(number=2)
    assert "must be even" in model.requests[1].messages[-1].text


def test_a_second_answer_that_does_not_validate_is_an_error():
    result, model = play([BAD, "no", GOOD])
    assert result.status == "failed"
    assert isinstance(result.error, ModelBehaviorError)
    assert result.error.agent == "a"
    assert "City" in str(result.error)
    assert len(model.requests) == 2


def test_each_reply_is_shown_and_counted_although_it_is_the_end():
    usage = Usage(1, 1, 0, 1)
    result, _ = play([Message.assistant(BAD, usage=usage), Message.assistant("no", usage=usage)])
    assert [event.message.text for event in result.events if event.message] == [BAD, "no"]
    assert result.usage == usage + usage


def test_the_second_try_counts_as_a_model_call():
    result, _ = play([BAD], max_iterations=1)
    assert isinstance(result.error, MaxIterationsExceeded)


def test_with_tools_only_the_answer_is_parsed():
    @tool
    def count(city: str) -> int:
        return 2

    result, model = play(
        [ToolCalls(count={"city": "Paris"}), BAD, ToolCalls(count={"city": "Paris"}), GOOD],
        tools=[count],
    )
    assert result.final_output == City(name="Paris", people=2)
    assert [event.custom_output for event in result.events] == [
        None,
        None,
        None,
        None,
        None,
        result.final_output,
    ]
    assert all(request.output_schema is not None for request in model.requests)


def test_text_beside_tool_calls_is_no_answer():
    @tool
    def count() -> int:
        return 2

    result, model = play([ToolCalls("count", {}, text="let me see"), GOOD], tools=[count])
    assert result.final_output == City(name="Paris", people=2)
    assert len(model.requests) == 2


def test_a_tool_that_returns_directly_is_the_output_as_it_is():
    @tool(return_directly=True)
    def count() -> int:
        return 2

    result, _ = play([ToolCalls(count={})], tools=[count])
    assert result.status == "completed"
    assert result.final_output == "2"


def test_a_long_conversation_does_not_carry_the_problem_on():
    """The reason is told once: not after an answer that was fine."""
    model = ScriptedModel([BAD, GOOD, GOOD])
    runner = Runner(ChatModelAgent(name="a", model=model, output_type=City))
    runner.query("one").result()
    assert runner.query("two").result().final_output == City(name="Paris", people=2)
    assert [message.role for message in model.requests[2].messages] == ["user"]


def test_it_is_parsed_when_streaming_and_in_output_key():
    result = (
        Runner(
            ChatModelAgent(
                name="a", model=ScriptedModel([GOOD]), output_type=City, output_key="city"
            )
        )
        .query("go", streaming=True)
        .result()
    )
    assert result.final_output == City(name="Paris", people=2)
    assert result.session_values == {"city": GOOD}


def test_what_is_no_object_may_be_answered_in_the_form_that_was_asked_for():
    result, _ = play(['{"response":[1,2]}'], list[int])
    assert result.final_output == [1, 2]


def test_what_is_wrong_with_it_is_told_of_the_form_that_was_asked_for():
    _, model = play(['{"response":[1,"x"]}', "[1]"], list[int])
    assert "valid integer" in model.requests[1].messages[-1].text
    assert "array" not in model.requests[1].messages[-1].text


class Socket:
    """A class that pydantic knows nothing of."""


@pytest.mark.parametrize("wrong", [Socket, object(), "NoSuchType"], ids=["class", "object", "text"])
def test_what_cannot_be_a_schema_is_refused_before_anything_runs(wrong):
    with pytest.raises(UsageError, match="output_type"):
        Runner(ChatModelAgent(name="a", model=ScriptedModel([]), output_type=wrong))


@pytest.mark.parametrize("count", [2_000, 200_000])
def test_of_many_errors_the_model_and_the_failure_tell_the_first_ten(count):
    wrong = '{"response": [' + ",".join(["{}"] * (count // 2)) + "]}"
    result, model = play([wrong, wrong], list[City])
    (told,) = [message.text for message in model.requests[1].messages[-1:]]
    assert f"and {count - 10} more" in told
    assert len(told) < 2_000
    assert isinstance(result.error, ModelBehaviorError)
    assert len(str(result.error)) < 2_000


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        (
            Message("assistant", refusal="I cannot help with that", usage=Usage(7, 5, 0, 1)),
            "refusal",
            "I cannot help with that",
        ),
        (
            Message("assistant", GOOD[:9], finish_reason="length", usage=Usage(7, 5, 0, 1)),
            "length",
            "max_tokens",
        ),
        (
            Message("assistant", GOOD[:9], finish_reason="content_filter", usage=Usage(7, 5, 0, 1)),
            "content_filter",
            "filter",
        ),
    ],
)
def test_a_refusal_and_an_answer_that_was_cut_off_are_outcomes_of_their_own_and_paid_for_once(
    reply, kind, text
):
    result, model = play([reply, GOOD])
    assert len(model.requests) == 1
    assert result.status == "failed"
    assert isinstance(result.error, ModelError)
    assert result.error.kind == kind
    assert text in str(result.error)
    assert result.error.message == reply
    assert result.usage == Usage(7, 5, 0, 1)


def test_an_answer_that_is_whole_although_the_reply_was_cut_off_is_taken():
    result, _ = play([Message("assistant", GOOD, finish_reason="length")])
    assert result.final_output == City(name="Paris", people=2)
