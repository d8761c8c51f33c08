"""Events and results between processes: what comes out is what went in, and pieces of messages are
small.
"""

import pytest

from offbook.runtime import (
    AgentEvent,
    CheckpointError,
    Exit,
    Message,
    MessageDelta,
    RunResult,
    RunStatus,
    ToolCall,
    Usage,
)
from offbook.runtime.cluster.event_batch import (
    pack_events,
    pack_rest,
    pack_result,
    read_events,
    read_rest,
    read_result,
    split,
)


def events_of(count):
    where = {
        "agent_name": "Shop",
        "run_path": ("Root", "Shop"),
        "run_id": "r" * 24,
        "invocation_id": "i" * 24,
    }
    return [
        AgentEvent(delta=MessageDelta("word "), seq=number, timestamp=1000.0 + number / 8, **where)
        for number in range(count)
    ]


def test_events_come_back_equal():
    message = Message.assistant("hi", tool_calls=(ToolCall("c", "f", "{}"),))
    events = [
        *events_of(3),
        AgentEvent("A", ("A",), message, seq=4, timestamp=7.5, run_id="r", invocation_id="i"),
        AgentEvent("A", ("A", "B"), None, MessageDelta("x", reasoning="why"), seq=5, run_id="r"),
        AgentEvent("A", ("A",), None, None, {"a": [1]}, Exit(), None, 6, 8.0, "r", "i"),
    ]
    found = read_events(pack_events(events))
    assert found == events
    assert [one.run_id for one in found] == [one.run_id for one in events]
    assert [round(one.timestamp, 6) for one in found] == [one.timestamp for one in events]


def test_a_piece_of_a_message_takes_no_more_than_200_bytes_in_a_batch():
    assert len(pack_events(events_of(256))) / 256 < 40
    whole = [
        AgentEvent(
            "Shop",
            ("Shop",),
            Message.assistant("a sentence of some words"),
            seq=n,
            run_id="r" * 24,
            invocation_id="i" * 24,
        )
        for n in range(256)
    ]
    assert len(pack_events(whole)) / 256 < 200


def test_an_error_comes_as_what_it_is():
    (found,) = read_events(pack_events([AgentEvent("A", ("A",), error=ValueError("no"), seq=1)]))
    assert isinstance(found.error, ValueError)
    assert str(found.error) == "no"


def test_large_events_travel_in_parts():
    events = [
        AgentEvent("A", ("A",), Message.assistant("x" * 30_000), seq=number) for number in range(5)
    ]
    parts = [list(part) for part in split(events)]
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [event for part in parts for event in part] == events


def test_a_result_comes_back_equal():
    events = tuple(events_of(1))
    result = RunResult(
        RunStatus.COMPLETED,
        None,
        Message.assistant("hi"),
        "hi",
        events,
        (),
        Usage(1, 2, 3, 4),
        {"a": 1},
        "A",
    )
    assert read_result(pack_result(result, None)) == result
    assert read_rest(pack_result(result, None, [pack_events(events_of(3))])) == events_of(3)
    assert read_rest(pack_rest([pack_events(events_of(2)), pack_events(events_of(1))])) == [
        *events_of(2),
        *events_of(1),
    ]


def test_what_of_a_result_cannot_be_written_is_left_out():
    odd = object()
    result = RunResult(RunStatus.COMPLETED, None, None, odd, session_values={"odd": odd, "even": 2})
    found = read_result(pack_result(result, None))
    assert found.output is None, "a repr is no output"
    assert found.session_values == {"even": 2}


def test_the_run_of_a_batch_may_be_named_anew():
    assert {one.run_id for one in read_events(pack_events(events_of(2), "mine"))} == {"mine"}


@pytest.mark.parametrize("damage", [b"", b"x", pack_events(events_of(2))[:-1]])
def test_damaged_events_are_told(damage):
    with pytest.raises(CheckpointError):
        read_events(damage)
