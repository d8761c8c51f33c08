"""Sending a message by our own routes: byte for byte what the SDK's routes answer, which are asked
the same with a header that sends them there.
"""

import asyncio
import json
import math
import re

import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict

from offbook.runtime.a2a import (
    ArtifactUpdate,
    BearerTokens,
    DataPart,
    FilePart,
    Reject,
    Reply,
    Status,
    TextPart,
    a2a_app,
)
from offbook.runtime.a2a.data.message import A2AMessage
from offbook.runtime.a2a.server import event_stream
from offbook.runtime.a2a.server.quick_routes import _ordinary_call
from offbook.runtime.a2a.server.wire_json import as_json_object, read_message
from tests.doubles.a2a import VERSION, ByHand, message, scripted, serving

# 1.0.0 is the same version, and nothing that our routes take.
DETOUR = {"A2A-Version": "1.0.0"}
STRANGE_TO_SAY = 'Grüße \u2028 "quoted" 🎭 \\ \r\n end'


async def plays(said, _context):
    words = said[-1].text if said else ""
    if words == "plain":
        yield Reply(A2AMessage("agent", (TextPart("No task."),), "r1"))
    elif words == "refuse":
        yield Reject("Not this.")
    elif words == "raise":
        raise ValueError("a secret")
    elif words == "much":
        yield Status("half of it")
        yield ArtifactUpdate(
            "data", DataPart({"b": [1, 2.5, None, True], "a": {"deep": STRANGE_TO_SAY}}, name="n")
        )
        yield ArtifactUpdate(
            "file",
            (
                FilePart(data=b"\x00\xff", media_type="application/x", name="f.bin"),
                FilePart("https://example.com/x", name="x"),
            ),
        )
        yield ArtifactUpdate("pieces", TextPart("one"), last=False)
        yield ArtifactUpdate("pieces", TextPart("two"), append=True)
    else:
        yield words or STRANGE_TO_SAY


async def asked(http, path, body, headers):
    """Status, headers and body, without what is new each time."""
    response = await http.post(
        path,
        content=body if isinstance(body, bytes) else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    seen = {
        name: value
        for name, value in response.headers.items()
        if name not in ("date", "content-length")
    }
    ids: dict[str, str] = {}
    text = re.sub(
        r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
        lambda found: ids.setdefault(found[0], f"id-{len(ids)}"),
        response.text,
    )
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)
    text = re.sub(r'(?<="artifactId"): ?"[^"]+"|(?<="messageId"): ?"[0-9a-f]{20,}"', "<made>", text)
    return response.status_code, seen, text


def rpc(method, params, request_id=1, **fields):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params, **fields}


ORDINARY = {
    "a text": {"message": message("hello")},
    "a text that is strange": {"message": message(STRANGE_TO_SAY)},
    "a plain message": {"message": message("plain")},
    "a refusal": {"message": message("refuse")},
    "a failure": {"message": message("raise")},
    "artifacts of every kind": {"message": message("much")},
    "no history": {
        "message": message("hello"),
        "configuration": {"historyLength": 0, "acceptedOutputModes": ["text/plain"]},
    },
    "all that a message can have": {
        "tenant": "t",
        "metadata": {"x": [1, {"y": None}]},
        "message": message(
            parts=[
                {"text": "hello", "metadata": {"p": 1}},
                {"data": {"k": [1]}, "mediaType": "application/json"},
                {"url": "https://example.com/f", "filename": "f"},
            ],
            metadata={"m": "n"},
            extensions=["urn:e"],
            referenceTaskIds=["t1"],
        ),
    },
}
WRONG = {
    "no parts": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}},
    "no message": {"configuration": {}},
    "a role of the agent's": {"message": message(role="ROLE_AGENT")},
    "a task that is not there": {"message": message(taskId="nowhere")},
    "an id that is too long": {"message": message(messageId="m" * 300)},
    "a part with two contents": {"message": message(parts=[{"text": "a", "url": "b"}])},
    "a part without content": {"message": message(parts=[{}])},
    "a number for a text": {"message": message(parts=[{"text": 1}])},
    "null for a field": {"message": message(contextId=None)},
    "a role that is none": {"message": message(role="ROLE_OTHER")},
    "an unknown field": {"message": message(), "colour": "red"},
    "protobuf's own names": {
        "message": {"message_id": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    },
    "half of a surrogate pair": {"message": message("\ud800")},
    "a negative length of the history": {
        "message": message(),
        "configuration": {"historyLength": -1},
    },
    "a length that is true": {"message": message(), "configuration": {"historyLength": True}},
    "raw bytes": {"message": message(parts=[{"raw": "AAE=", "mediaType": "text/plain"}])},
    "a media type that is not taken": {
        "message": message(parts=[{"text": "x", "mediaType": "video/none"}])
    },
}


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("what", [*ORDINARY, *WRONG])
def test_json_rpc_is_answered_as_by_the_routes_of_the_sdk(run, method, what):
    async def main():
        params = (ORDINARY | WRONG)[what]
        async with (
            serving(a2a_app(scripted(plays))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            for request_id in (1, "a text", -7):
                ours, theirs = [
                    await asked(http, "/a2a", rpc(method, params, request_id), headers)
                    for headers in (VERSION, DETOUR)
                ]
                assert ours == theirs

    run(main())


@pytest.mark.parametrize("path", ["/a2a/message:send", "/a2a/message:stream"])
@pytest.mark.parametrize("what", [*ORDINARY, *WRONG])
def test_http_json_is_answered_as_by_the_routes_of_the_sdk(run, path, what):
    async def main():
        params = (ORDINARY | WRONG)[what]
        async with (
            serving(a2a_app(scripted(plays))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            ours, theirs = [
                await asked(http, path, params, headers) for headers in (VERSION, DETOUR)
            ]
            assert ours == theirs

    run(main())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"x"',
        b"null",
        b"[{}]",
        b'{"jsonrpc": "1.0", "id": 1, "method": "SendMessage", "params": {}}',
        *(
            json.dumps(one).encode()
            for one in [
                rpc("SendMessage", {"message": message()}, None),
                rpc("SendMessage", {"message": message()}, True),
                rpc("SendMessage", {"message": message()}, 1.5),
                rpc("SendMessage", {"message": message()}, more=1),
                rpc("SendMessage", []),
                rpc("SendMessage", None),
                rpc("SendOther", {}),
                rpc("", {}),
                {"jsonrpc": "2.0", "method": "SendMessage", "params": {"message": message()}},
            ]
        ),
        b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "SendMessage", "params": '
        b'{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}}',
        b'{"message": {"messageId": "m", "messageId": "n", "role": "ROLE_USER", "parts": '
        b'[{"text": "x"}]}}',
    ],
)
def test_what_is_no_ordinary_request_is_answered_as_by_the_routes_of_the_sdk(run, body):
    async def main():
        async with (
            serving(a2a_app(scripted(plays))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            for path in ("/a2a", "/a2a/", "/a2a/message:send", "/a2a/message:stream"):
                ours, theirs = [
                    await asked(http, path, body, headers) for headers in (VERSION, DETOUR)
                ]
                assert ours == theirs

    run(main())


def test_a_required_extension_and_credentials_are_looked_at_as_well(run):
    async def main():
        app = a2a_app(scripted(plays), auth=BearerTokens({"secret": "anna"}))
        async with serving(app) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
            body = rpc("SendMessage", {"message": message()})
            for headers in (
                {},
                {"Authorization": "Bearer secret"},
                {"Authorization": "Bearer secret", "A2A-Extensions": "urn:a, urn:b"},
            ):
                ours, theirs = [
                    await asked(http, "/a2a", body, {**headers, **version})
                    for version in (VERSION, DETOUR)
                ]
                assert ours == theirs

    run(main())


def test_a_stream_that_lasts_is_handed_over_and_loses_nothing(run, monkeypatch):
    async def main():
        monkeypatch.setattr(event_stream, "_SOON", 0.0)
        gate = asyncio.Event()

        async def waits(_said, _context):
            yield ArtifactUpdate("a", TextPart("one"))
            await gate.wait()
            yield ArtifactUpdate("b", TextPart("two"))

        async with (
            serving(a2a_app(scripted(waits))) as url,
            ByHand(url) as client,
            client.streaming("SendStreamingMessage", {"message": message()}) as events,
        ):
            seen = []
            async for event in events:
                seen.append(event)
                if "artifactUpdate" in event:
                    gate.set()
            texts = [
                part["text"]
                for event in seen
                if "artifactUpdate" in event
                for part in event["artifactUpdate"]["artifact"]["parts"]
            ]
            assert texts == ["one", "two"]
            assert seen[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"

    run(main())


def test_a_client_that_goes_in_the_middle_of_a_stream_is_let_go(run):
    async def main():
        gate = asyncio.Event()

        async def waits(_said, _context):
            yield ArtifactUpdate("a", TextPart("one"))
            await gate.wait()

        app = a2a_app(scripted(waits))
        async with serving(app) as url, ByHand(url) as client:
            async with client.streaming("SendStreamingMessage", {"message": message()}) as events:
                first = await anext(events)
            service = await app.service()
            async with asyncio.timeout(10):
                while any(actor.waiting() for actor in service.actors()):
                    await asyncio.sleep(0.01)  # until the server has seen it
            gate.set()
            assert (await client.until(first["task"]["id"], "COMPLETED"))["artifacts"]

    run(main())


@pytest.mark.parametrize(
    "kind",
    [
        pb.SendMessageRequest,
        pb.StreamResponse,
        pb.Task,
        pb.Message,
        pb.Part,
        pb.SendMessageConfiguration,
    ],
)
def test_every_field_is_written_as_message_to_dict_does(kind):
    filled = _filled(kind)
    assert json.dumps(as_json_object(filled)) == json.dumps(MessageToDict(filled))
    assert as_json_object(kind()) == MessageToDict(kind())


def test_ordinary_requests_do_go_that_way():
    for params in ORDINARY.values():
        assert _ordinary_call(rpc("SendMessage", params)) is not None
        assert _ordinary_call(rpc("SendStreamingMessage", params, "a text")) is not None
    assert _ordinary_call(rpc("GetTask", {"id": "t"})) is None


@pytest.mark.parametrize("params", [*ORDINARY.values(), *WRONG.values()])
def test_what_is_read_is_what_parse_dict_reads(params):
    ours, theirs = pb.SendMessageRequest(), pb.SendMessageRequest()
    if read_message(params, ours):
        assert ours == ParseDict(params, theirs, ignore_unknown_fields=True)


def _filled(kind):
    """Each field set, those of a oneof in turn, down to the innermost."""
    found = kind()
    _fill(found, 0)
    return found


def _fill(found, depth):
    for field in found.DESCRIPTOR.fields:
        name, value = (
            field.name,
            {9: "é\u2028", 12: b"\x00\xff", 8: True, 5: 7, 14: 2}.get(field.type),
        )
        many = isinstance(getattr(found, name), list) or hasattr(getattr(found, name), "extend")
        if field.type != 11:
            getattr(found, name).extend([value, value]) if many else setattr(found, name, value)
        elif field.message_type.full_name == "google.protobuf.Timestamp":
            getattr(found, name).FromNanoseconds(1_234_567_890_123_000_000)
        elif field.message_type.full_name == "google.protobuf.Struct":
            getattr(found, name).update({"b": [1, None, math.pi], "a": {"c": True}})
        elif field.message_type.full_name == "google.protobuf.Value":
            getattr(found, name).struct_value.update({"z": [1.5, "x"]})
        elif depth < 5:
            _fill(getattr(found, name).add() if many else getattr(found, name), depth + 1)
