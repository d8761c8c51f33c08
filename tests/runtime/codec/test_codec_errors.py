"""Exceptions are written as data: those that are known come back as themselves, all others as a
record of what they were.
"""

import pytest

from offbook.runtime.codec.packing import RecordedError, pack, unpack
from offbook.runtime.errors import AskTimeout, ModelError, ModelRetry, ToolError


class MyError(ValueError):
    pass


class Mute(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [
        *(
            ValueError("x", 1),
            KeyError("k"),
            OSError(2, "gone", "file"),
            ConnectionResetError("c"),
            TimeoutError(),
            StopIteration(3),
        ),
        *(
            ToolError("t", run="r", agent="a"),
            AskTimeout("late", actor="/a"),
            ModelError("m", kind="rate", status=429, retryable=True, retry_after=1.5),
        ),
        *(ModelRetry(3), ModelRetry(2, "x"), RecordedError("a.B", "t", run="r")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_known_exceptions_come_back_as_themselves(error):
    back = unpack(pack(error))
    assert type(back) is type(error)
    assert (str(back), back.args, vars(back)) == (str(error), error.args, vars(error))


def test_other_exceptions_become_a_record_of_them():
    back = unpack(pack([MyError("text"), Mute(), SystemExit(3)]))
    assert [type(error) for error in back] == [RecordedError] * 3
    assert back[0].type_name.endswith(".MyError")
    assert (back[0].text, str(back[0])) == ("text", f"{back[0].type_name}: text")
    assert "cannot be had" in back[1].text
    assert str(unpack(pack(back[0]))) == str(back[0])


def test_causes_come_back_and_a_circle_of_them_ends():
    inner, outer = KeyError("k"), ToolError("t", message=object())
    outer.__cause__, inner.__cause__ = inner, outer
    back = unpack(pack(outer))
    assert back.message is None
    assert str(back.__cause__) == "'k'"
    assert back.__cause__.__cause__ is None
