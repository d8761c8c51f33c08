"""Events as JSON: one form, which its schema describes."""

import dataclasses
import datetime as dt
import json
import math

import jsonschema
import pytest
from pydantic import BaseModel

from offbook.actors import Agent, ChatModelAgent, Loop, Sequential, tool
from offbook.runtime import (
    AgentEvent,
    BreakLoop,
    CustomAction,
    FilePart,
    MemoryStore,
    Message,
    MessageDelta,
    ModelRetry,
    Runner,
    ScriptedModel,
    TextPart,
    ToolCalls,
    Usage,
    event_json,
)
from offbook.runtime.observe import EVENT_SCHEMA


def shown(run):
    """The events of a run as JSON that has been written and read again. Each fits the schema."""
    found = [json.loads(json.dumps(event_json(event), allow_nan=False)) for event in run]
    for one in found:
        jsonschema.validate(one, EVENT_SCHEMA)
    return found


def test_a_message_has_its_role_text_calls_and_usage():
    def add(a: int, b: int) -> int:
        return a + b

    model = ScriptedModel(
        [ToolCalls(add={"a": 1, "b": 2}), Message.assistant("3", usage=Usage(5, 1, 0, 1))]
    )
    call, result, answer = shown(
        Runner(ChatModelAgent(name="A", tools=[add], model=model)).query("1 + 2?")
    )
    assert [one["seq"] for one in (call, result, answer)] == [1, 2, 3]
    assert call["kind"] == "message"
    assert call["message"]["tool_calls"] == [
        {"id": "call_1", "name": "add", "arguments": '{"a":1,"b":2}'}
    ]
    assert (
        result["message"]["role"],
        result["message"]["tool_name"],
        result["message"]["text"],
    ) == ("tool", "add", "3")
    assert answer["message"]["usage"] == {
        "input_tokens": 5,
        "output_tokens": 1,
        "cached_tokens": 0,
        "requests": 1,
    }
    assert (answer["agent"], answer["run_path"]) == ("A", ["A"])


def test_the_pieces_of_a_message_and_a_retry_are_kinds_of_their_own():
    events = shown(
        Runner(ChatModelAgent(name="A", model=ScriptedModel(["two words"])), streaming=True).query(
            "q"
        )
    )
    assert [one["kind"] for one in events] == ["delta", "delta", "message"]
    assert "".join(one["delta"]["text"] for one in events[:2]) == "two words"
    retry = event_json(AgentEvent().replace(delta=MessageDelta(), error=ModelRetry(2)))
    jsonschema.validate(retry, EVENT_SCHEMA)
    assert (retry["kind"], retry["error"]["type"]) == ("retry", "ModelRetry")


def test_an_interrupt_says_what_it_waits_for_and_what_encloses_it():
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return str(amount)

    agent = ChatModelAgent(
        name="Payer", tools=[pay], model=ScriptedModel([ToolCalls(pay={"amount": 3})])
    )
    run = Runner(Sequential(name="S", sub_agents=[agent]), store=MemoryStore()).query("q")
    *_, waiting = shown(run)
    assert waiting["kind"] == "interrupted"
    assert waiting["action"]["checkpoint_id"] == run.checkpoint_id
    (context,) = waiting["action"]["contexts"]
    assert context["info"] == {"tool_name": "pay", "arguments": '{"amount":3}'}
    assert [step["name"] for step in context["address"]] == ["S", "Payer", "pay"]
    assert context["parent"]["is_root_cause"] is False


def test_transfers_and_failures_say_what_has_happened():
    model = ScriptedModel([ToolCalls(transfer_to_agent={"agent_name": "B"})])
    broken = ChatModelAgent(name="B", model=ScriptedModel([ValueError("no luck")]))
    *_, transfer, failure = shown(
        Runner(ChatModelAgent(name="A", model=model, sub_agents=[broken])).query("q")
    )
    assert transfer["action"] == {"type": "transfer", "agent": "B"}
    assert failure["kind"] == "error"
    assert "no luck" in failure["error"]["message"]


def test_a_broken_loop_says_by_whom():
    class Breaker(Agent):
        async def run(self, input, context):
            yield AgentEvent.of(action=BreakLoop())

    (event,) = shown(Runner(Loop(name="L", sub_agents=[Breaker(name="B")])).query("q"))
    assert event["action"] == {"type": "break_loop", "by": "B", "done": True, "iteration": 0}


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Pair:
    left: object
    right: object


class Odd:
    def __repr__(self):
        return "<odd>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": (1, 2.5, None, True)}, {"a": [1, 2.5, None, True]}),
        (Pair(Point(x=1), b"ab"), {"left": {"x": 1}, "right": "YWI="}),
        (math.inf, "inf"),
        (math.nan, "nan"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (Odd(), "<odd>"),
        ({1: {"deep": Odd()}}, {"1": {"deep": "<odd>"}}),
    ],
)
def test_a_value_of_the_users_is_written_as_json_or_as_its_repr(value, expected):
    class Speaker(Agent):
        async def run(self, input, context):
            yield AgentEvent.of(custom_output=value)
            yield AgentEvent.of(action=CustomAction(value))

    output, action = shown(Runner(Speaker(name="S")).query("q"))
    assert output["custom_output"] == expected
    assert action["action"]["value"] == expected


def test_a_value_that_holds_itself_is_cut_off():
    value = []
    value.append(value)
    assert json.dumps(event_json(AgentEvent.of(custom_output=value)))


def test_parts_are_told_one_by_one():
    message = Message.user(
        (TextPart("look"), FilePart(data=b"x", media_type="text/plain", name="a.txt"))
    )
    found = event_json(AgentEvent.of(message))
    jsonschema.validate(found, EVENT_SCHEMA)
    assert found["message"]["parts"] == [
        {"type": "text", "text": "look"},
        {"type": "file", "media_type": "text/plain", "name": "a.txt", "data": "eA=="},
    ]
