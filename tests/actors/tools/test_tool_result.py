"""What a tool may return, and what the model is shown of it."""

import dataclasses
import enum
import json
from datetime import date

import pytest
from pydantic import BaseModel

from offbook.actors.tools.tool_result import tool_content
from offbook.runtime.data.chat import ImagePart, Message, TextPart
from offbook.runtime.errors import ToolError


class Model(BaseModel):
    a: int = 1


@dataclasses.dataclass
class Data:
    b: str = "é"


class Word(enum.StrEnum):
    IT = "it"


class Number(enum.Enum):
    ONE = 1


PICTURE = ImagePart(url="https://example.org/a.png")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        ({"a": "é", "b": [1, None]}, '{"a":"é","b":[1,null]}'),
        ([], "[]"),
        ((1, "a"), '[1,"a"]'),
        ({1}, "[1]"),
        (Model(), '{"a":1}'),
        ([Model()], '[{"a":1}]'),
        (Data(), '{"b":"é"}'),
        (Word.IT, "it"),
        (Number.ONE, "1"),
        (date(2024, 2, 29), '"2024-02-29"'),
        (b"bytes", '"bytes"'),
        (PICTURE, (PICTURE,)),
        (["see", PICTURE, {"a": 1}], (TextPart("see"), PICTURE, TextPart('{"a":1}'))),
        ((TextPart("a"), PICTURE), (TextPart("a"), PICTURE)),
        (Message.assistant("said"), "said"),
        (Message.user([PICTURE]), (PICTURE,)),
    ],
)
def test_what_a_tool_returns_becomes_text_or_parts(value, content):
    assert tool_content(value) == content
    assert not isinstance(content, str) or type(tool_content(value)) is str


def circle():
    made = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value",
    [object(), [object()], {"a": print}, circle(), b"\xff", {object(): 1}],
    ids=["object", "list", "function", "circle", "bytes", "key"],
)
def test_what_cannot_be_json_is_refused_with_its_type(value):
    with pytest.raises(
        ToolError,
        match=f"the tool returned a {type(value).__qualname__} which JSON cannot represent",
    ) as caught:
        tool_content(value)
    assert "\n" not in str(caught.value)


def test_numbers_that_json_does_not_have_are_named():
    assert json.loads(tool_content([float("nan"), float("-inf"), 1.5])) == ["NaN", "-Infinity", 1.5]


def test_values_of_numpy_are_plain_data():
    numpy = pytest.importorskip("numpy")
    assert json.loads(
        tool_content(
            {
                "mean": numpy.float64(1.5),
                "count": numpy.int64(3),
                "rows": numpy.array([[1, 2], [3, 4]]),
                "ok": numpy.bool_(True),
            }
        )
    ) == {
        "mean": 1.5,
        "count": 3,
        "rows": [[1, 2], [3, 4]],
        "ok": True,
    }
    assert tool_content(numpy.int64(7)) == "7"
    assert json.loads(tool_content(numpy.array([1.0, float("nan")]))) == [1.0, "NaN"]


@pytest.mark.parametrize(
    "value", ["x" * 1_500_000, ["x" * 1_500_000], Message.assistant("x" * 1_500_000)]
)
def test_a_result_without_end_is_cut_and_says_so(value):
    text = tool_content(value)
    assert len(text) < 1_000_100
    assert "more characters are left out]" in text
