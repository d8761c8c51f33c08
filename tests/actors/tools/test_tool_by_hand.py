"""A tool that is made without a function's signature: of a JSON schema, or of a type."""

import asyncio
import dataclasses
import json
import socket

import pytest
from pydantic import BaseModel

from offbook.actors.tools.tool import Tool, ToolArgumentsError
from offbook.actors.tools.tool_context import ToolContext
from offbook.runtime import UsageError


class Context(ToolContext):
    """Runs what blocks in a thread."""

    __slots__ = ("system",)

    def __init__(self, system=None):
        self.system = system

    async def run_blocking(self, function, *args, **kwargs):
        return await asyncio.to_thread(function, *args, **kwargs)


class Place(BaseModel):
    name: str
    size: int = 0


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


def invoke(run, made, **arguments):
    return run(made.invoke(Context(), json.dumps(arguments)))


def said(run, made, text):
    """What the model is told of arguments that are not valid."""
    with pytest.raises(ToolArgumentsError) as caught:
        run(made.invoke(Context(), text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_tool_by_hand_with_a_json_schema(run):
    seen = []

    async def call(context, arguments):
        seen.append(context)
        return arguments

    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    made = Tool(name="mine", description="Mine.", parameters=schema, call=call)
    assert (made.spec.strict, made.spec.parameters) == (True, schema)
    assert invoke(run, made, a=1) == {"a": 1}
    assert isinstance(seen[0], Context)
    assert (
        said(run, made, '{"b": 1}')
        == "arguments of mine are not valid: a: field required; unknown argument: b (known: a)"
    )
    assert "not valid JSON" in said(run, made, "{")
    assert "must be a JSON object" in said(run, made, "3")


def test_a_tool_by_hand_without_parameters_takes_none(run):
    made = Tool(name="mine", call=lambda context, arguments: arguments)
    assert invoke(run, made) == {}
    assert "known: none" in said(run, made, '{"a": 1}')
    assert made.spec.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "required": [],
    }


@pytest.mark.parametrize("kind", [Place, Point])
def test_a_tool_by_hand_with_a_type_is_given_an_instance(run, kind):
    made = Tool(name="mine", parameters=kind, call=lambda context, arguments: arguments)
    given = {"name": "a"} if kind is Place else {"x": 1}
    assert isinstance(invoke(run, made, **given), kind)
    assert "field required" in said(run, made, "{}")


def test_a_tool_by_hand_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="an object"):
        Tool(name="mine", parameters=int, call=print)
    with pytest.raises(UsageError, match="socket"):
        Tool(name="mine", parameters=socket.socket, call=print)
    with pytest.raises(UsageError, match="call must be a function, got 3"):
        Tool(name="mine", call=3)
