"""Schemas of functions, and the pieces of a message put together."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated

import pytest

from offbook.actors.swarm.util import debug_print, function_to_json, merge_chunk, merge_fields


def parameters_of(function):
    return function_to_json(function)["function"]["parameters"]


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (bool, "boolean"),
        (list, "array"),
        (dict, "object"),
        (type(None), "null"),
        (list[int], "string"),
        (int | None, "string"),
        (bytes, "string"),
        ("int", "string"),
        (None, "string"),
        (Annotated[int, []], "string"),  # which cannot be hashed
    ],
)
def test_annotations_become_types_and_those_that_are_not_known_are_strings(annotation, kind):
    def function(one):
        pass

    function.__annotations__["one"] = annotation
    assert parameters_of(function) == {
        "type": "object",
        "properties": {"one": {"type": kind}},
        "required": ["one"],
    }


def test_the_schema_says_no_more_than_swarm_s():
    def function(one, two=2, *rest, three, four=None, **more):
        """Say.

        Args:
            one: the first
        """

    schema = function_to_json(function)["function"]
    assert schema["description"] == function.__doc__
    names = ["one", "two", "rest", "three", "four", "more"]
    parameters = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": ["one", "rest", "three", "more"],
    }
    assert schema["parameters"] == parameters


def test_annotations_that_are_texts_are_not_looked_up():
    def function(one: int):
        pass

    assert parameters_of(function)["properties"] == {"one": {"type": "string"}}


def test_the_context_variables_are_in_the_schema_until_an_agent_is_asked():
    def function(context_variables, one):
        pass

    assert parameters_of(function)["required"] == ["context_variables", "one"]


def test_methods_and_functions_without_parameters():
    class Desk:
        def method(self, one: str = ""):
            """Do."""

    assert parameters_of(Desk().method)["properties"] == {"one": {"type": "string"}}
    assert parameters_of(lambda: None) == {"type": "object", "properties": {}, "required": []}


def test_a_default_that_cannot_be_compared_is_one():
    class Odd:
        def __eq__(self, other):
            raise ValueError

        __hash__ = None

    def function(one=Odd()):  # noqa: B008
        pass

    assert parameters_of(function)["required"] == []


def test_what_has_no_signature_is_an_error():
    with pytest.raises(ValueError, match="Failed to get signature for function type"):
        function_to_json(type)


def test_fields_are_put_behind_those_that_are_there():
    target = {"a": "x", "b": {"c": ""}, "n": None}
    merge_fields(
        target,
        {"a": "y", "b": {"c": "z", "d": None}, "e": "new", "n": {"m": "1"}, "l": [1], "i": 5},
    )
    assert target == {"a": "xy", "b": {"c": "z"}, "e": "new", "n": {"m": "1"}}


def test_chunks_are_put_together_by_the_index_of_their_calls():
    whole = {
        "content": "",
        "role": "assistant",
        "tool_calls": defaultdict(
            lambda: {"function": {"arguments": "", "name": ""}, "id": "", "type": ""}
        ),
    }
    deltas = [
        {"role": "assistant", "content": "a", "tool_calls": None},
        {
            "role": None,
            "content": None,
            "tool_calls": [
                {
                    "index": 1,
                    "id": "i",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ],
        },
        {
            "content": "b",
            "tool_calls": [
                {"index": 1, "id": None, "function": {"name": None, "arguments": "{"}},
                {"index": 0, "function": {"name": "g"}},
            ],
        },
        {"content": "", "tool_calls": [{"index": 1, "function": {"arguments": "}"}}]},
    ]
    for delta in deltas:
        merge_chunk(whole, delta)
    assert whole["content"] == "ab"
    assert whole["role"] == "assistant"
    assert list(whole["tool_calls"].values()) == [
        {"function": {"arguments": "{}", "name": "f"}, "id": "i", "type": "function"},
        {"function": {"arguments": "", "name": "g"}, "id": "", "type": ""},
    ]


def test_debug_print_prints_only_if_it_is_to(capsys):
    debug_print(False, "no")
    debug_print(True, "one", 2)
    out = capsys.readouterr().out
    assert out.startswith("\033[97m[\033[90m20")
    assert out.endswith("\033[97m]\033[90m one 2\033[0m\n")
    assert "no" not in out.split()
