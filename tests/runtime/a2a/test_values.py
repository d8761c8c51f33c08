"""The values of Agent2Agent: what they take, how they go through the codec, and through protobuf
and back.
"""

import json
import subprocess
import sys

import pytest

from offbook.runtime import FilePart as MessageFile
from offbook.runtime import ImagePart, Message, UsageError
from offbook.runtime import TextPart as MessageText
from offbook.runtime.a2a import (
    A2AMessage,
    Artifact,
    ArtifactUpdate,
    AuthRequired,
    DataPart,
    FilePart,
    Reject,
    Reply,
    Status,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    TextPart,
)
from offbook.runtime.a2a import conversion as wire
from offbook.runtime.codec import pack, unpack

pb = wire.pb

PARTS = (
    TextPart("words", "text/markdown", {"a": 1}),
    DataPart(
        {"n": 1, "x": 1.5, "deep": [{"b": None}, True, "t"]}, "application/vnd.x+json", "d.json"
    ),
    FilePart(data=b"\0\1", media_type="image/png", name="p.png"),
    FilePart("https://x.test/f.pdf", media_type="application/pdf"),
)
MESSAGE = A2AMessage("agent", PARTS, "t1", "c1", {"k": [1, 2.5]}, ("t0",), ("urn:x",), "m1")
ARTIFACT = Artifact("a1", PARTS, "name", "what it is", {"z": True}, ("urn:x",))
STATUS = TaskStatus(TaskState.INPUT_REQUIRED, MESSAGE, "2026-01-31T12:00:00Z")
EVENTS = [
    MESSAGE,
    Task("t1", "c1", STATUS, (ARTIFACT,), (MESSAGE,), {"m": "n"}),
    Task("t1", "c1", TaskStatus(TaskState.SUBMITTED)),
    TaskStatusUpdateEvent("t1", "c1", STATUS, {"i": 3}),
    TaskArtifactUpdateEvent(
        "t1", "c1", ARTIFACT, append=True, last_chunk=True, metadata={"q": "r"}
    ),
]
ACTIONS = [
    Reply("hello"),
    Reject("no"),
    ArtifactUpdate("n", PARTS, append=True, last=False),
    Status("soon"),
    AuthRequired({"url": "https://x.test"}),
]


@pytest.mark.parametrize("value", [*EVENTS, *ACTIONS])
def test_each_value_goes_through_the_codec(value):
    assert unpack(pack(value)) == value


@pytest.mark.parametrize("event", EVENTS)
def test_what_goes_over_the_wire_comes_back_as_it_was(event):
    sent = wire.event_to_wire(event)
    back = wire.event_from_wire(type(sent).FromString(sent.SerializeToString()))
    assert back == event
    if isinstance(back, A2AMessage):
        assert back.message_id == "m1"


@pytest.mark.parametrize("state", TaskState)
def test_each_state_has_its_number_and_back(state):
    assert wire.state_from_wire(wire.state_to_wire(state)) is state


def test_a_state_of_a_later_version_is_unknown():
    assert wire.state_from_wire(99) is TaskState.UNKNOWN


def test_every_state_of_the_protocol_has_one_of_ours():
    assert {wire.state_from_wire(number) for number in pb.TaskState.values()} == set(TaskState)


def test_a_state_is_terminal_paused_or_neither():
    assert {state.name for state in TaskState if state.is_terminal} == {
        "COMPLETED",
        "FAILED",
        "CANCELED",
        "REJECTED",
    }
    assert {state.name for state in TaskState if state.is_paused} == {
        "INPUT_REQUIRED",
        "AUTH_REQUIRED",
    }


def test_whole_numbers_stay_whole_and_fractions_stay_fractions():
    data = {"one": 1, "half": 0.5, "big": 2**53, "less": -3, "zero": 0, "yes": True}
    back = wire.data_from_wire(wire.data_to_wire(data))
    assert json.dumps(back, sort_keys=True) == json.dumps(data, sort_keys=True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"id": 2**53 + 1},
            "data.id is 9007199254740993: clients round numbers of more than 53 bits",
        ),
        ([float("nan")], r"data\[0\] is nan, which JSON cannot represent"),
        ({"a": {"b": float("inf")}}, "data.a.b is inf"),
        ({1: 2}, "data must have strings as keys, as in JSON, got the key 1"),
        (object(), "data must be JSON data .*, got a object"),
        ({"raw": b"1"}, "data.raw must be JSON data .*, got a bytes"),
    ],
)
def test_data_that_json_cannot_hold_is_refused_with_its_place(data, said):
    with pytest.raises(UsageError, match=said):
        wire.part_to_wire(DataPart(data))


def test_data_that_is_too_deep_is_refused():
    data = []
    for _ in range(200):
        data = [data]
    with pytest.raises(UsageError, match="levels deep"):
        wire.data_to_wire(data)


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert wire.part_from_wire(wire.part_to_wire(TextPart("a\ud800b"))) == TextPart("a?b")


def test_a_card_keeps_what_we_have_no_name_for():
    card = pb.AgentCard(
        name="Books",
        description="finds books",
        version="2",
        supported_interfaces=[
            pb.AgentInterface(
                url="https://x.test/a2a", protocol_binding="JSONRPC", protocol_version="1.0"
            )
        ],
        capabilities=pb.AgentCapabilities(
            streaming=True, extensions=[pb.AgentExtension(uri="urn:x", required=True)]
        ),
        skills=[pb.AgentSkill(id="find", name="Find", description="d", tags=["t"])],
        icon_url="https://x.test/i.png",
    )
    ours = wire.card_from_wire(card)
    assert (ours.name, ours.url, ours.streaming, ours.skills[0].tags) == (
        "Books",
        "https://x.test/a2a",
        True,
        ("t",),
    )
    assert wire.card_to_wire(ours) == card
    assert wire.card_to_wire(unpack(pack(ours))) == card


def test_an_artifact_takes_texts_and_the_parts_of_our_messages():
    given = [
        "text",
        MessageText("more"),
        ImagePart(data=b"1", media_type="image/png"),
        MessageFile(url="https://x.test/f", name="f"),
        DataPart(3),
    ]
    assert ArtifactUpdate("n", given).parts == (
        TextPart("text"),
        TextPart("more"),
        FilePart(data=b"1", media_type="image/png"),
        FilePart("https://x.test/f", name="f"),
        DataPart(3),
    )
    assert ArtifactUpdate("n", "text").parts == (TextPart("text"),)
    assert (ArtifactUpdate("n", "text").append, ArtifactUpdate("n", "text").last) == (False, True)


def test_a_reply_takes_a_text_and_a_message_of_ours():
    assert Reply("hello").message == A2AMessage.agent("hello")
    said = Message.assistant("hello")
    assert Reply(said).message == A2AMessage.agent("hello")
    assert Reply(said).message.message_id == said.id


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ArtifactUpdate("", "x"), "name must not be empty"),
        (lambda: ArtifactUpdate("n", [1]), "a part must be .*, got 1"),
        (lambda: FilePart(), "either url= or data="),
        (lambda: FilePart(data="text"), "must be bytes"),
        (lambda: TextPart(1), "must be a string, got 1"),
        (lambda: Status(1), "must be a string, got 1"),
        (lambda: Reply(1), "a message must be .*, got 1"),
        (lambda: A2AMessage("assistant"), "'user' or 'agent'"),
        (lambda: wire.status_to_wire(TaskStatus(TaskState.WORKING, None, "yesterday")), "ISO 8601"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(make, said):
    with pytest.raises(UsageError, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_importing_the_room_does_not_import_the_sdk():
    code = (
        "import sys, offbook.runtime.a2a; assert not {'a2a', 'google', 'httpx', 'starlette'} & "
        "set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_importing_the_runtime_does_not_import_the_room():
    code = "import sys, offbook.actors; assert 'offbook.runtime.a2a' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
