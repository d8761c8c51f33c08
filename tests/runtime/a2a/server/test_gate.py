"""What a request has to pass: sizes, times, kinds, depths and numbers; hostile clients over raw
sockets.
"""

import asyncio
import json
import time

import pytest

from offbook.runtime import UsageError
from offbook.runtime.a2a import BearerTokens, ServerLimits, a2a_app
from offbook.runtime.a2a.server import gate
from tests.doubles.a2a import ByHand, message, scripted, serving, state_of


async def echo(input, context):
    yield input.messages[-1].text[:100]


@pytest.fixture
def served(run):
    def served(story, **options):
        async def main():
            async with serving(a2a_app(scripted(echo), **options)) as url, ByHand(url) as client:
                return await story(client)

        return run(main())

    return served


async def raw(url, data, *, read=True):
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await writer.drain()
    if not read:
        return reader, writer
    answer = await asyncio.wait_for(reader.read(), 15)
    writer.close()
    return answer


def head(*more):
    return "\r\n".join(
        (
            "POST /a2a HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            "A2A-Version: 1.0",
            *more,
            "",
            "",
        )
    ).encode()


def test_a_body_that_is_too_large_is_refused_before_anything_else(served):
    async def story(client):
        for path in ("/a2a", "/a2a/message:send"):
            answer = await client.http.post(
                path, content=b"x" * 2_001, headers={"Content-Type": "text/strange"}
            )
            assert answer.status_code == 413, (
                "its size is looked at before who sends it, and before what it is"
            )
        said = await raw(client.url, head("Content-Length: 99999999999"))
        assert said.startswith(b"HTTP/1.1 413")
        assert state_of(await send_known(client)) == "COMPLETED"

    served(story, max_body=2_000, auth=BearerTokens({"t": "s"}))


async def send_known(client):
    client.http.headers["Authorization"] = "Bearer t"
    return await client.send()


def test_a_body_without_an_end_is_cut_off(served):
    async def story(client):
        reader, writer = await raw(client.url, head("Transfer-Encoding: chunked"), read=False)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, AssertionError)):
            for _ in range(10_000):
                writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)
                if reader._buffer or reader.at_eof():
                    assert not reader._buffer.startswith(b"HTTP/1.1 413"), "refused"
        writer.close()
        assert state_of(await client.send()) == "COMPLETED"

    served(story, max_body=10_000)


def test_a_body_that_comes_slowly_or_never_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr(gate, "_BODY_SECONDS", 0.3)

    async def story(client):
        assert (await raw(client.url, head("Content-Length: 100") + b'{"jsonrpc":')).startswith(
            b"HTTP/1.1 408"
        )
        reader, writer = await raw(client.url, head("Content-Length: 100"), read=False)
        assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 408")
        writer.close()
        half_open = [
            await raw(client.url, head("Content-Length: 100") + b"{", read=False) for _ in range(50)
        ]
        for _, writer in half_open[:25]:
            writer.transport.abort()
        assert state_of(await client.send()) == "COMPLETED"
        for _, writer in half_open:
            writer.close()

    served(story)


def test_a_deep_body_is_refused_and_nothing_breaks(served):
    async def story(client):
        for deep in ("[" * 100_000, "[" * 5_000 + "]" * 5_000, '{"a":' * 5_000 + "1" + "}" * 5_000):
            answer = await client.http.post(
                "/a2a", content=deep, headers={"Content-Type": "application/json"}
            )
            assert "error" in answer.json()
            assert "recursion" not in answer.text.lower()
            answer = await client.http.post(
                "/a2a/message:send", content=deep, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 400
        for levels, is_taken in ((27, True), (40, False)):
            data = 1
            for _ in range(levels):
                data = {"a": data}
            answer = await client.send(parts=[{"data": data}], metadata={"also": data})
            assert ("error" not in answer) is is_taken
        listed = (await client.call("ListTasks", {}))["result"]
        assert listed["totalSize"] == 1
        brackets = "[" * 5_000
        assert state_of(await client.send(brackets)) == "COMPLETED", "brackets in a text are text"

    served(story)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5_000, "1e999999999"]
)
def test_numbers_that_json_cannot_hold_are_refused_with_their_message(served, number):
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "SendMessage",
            "params": {"message": message(parts=[{"data": {"n": "HERE"}}])},
        }
    )
    rest = json.dumps({"message": message(parts=[{"text": "x", "metadata": {"n": "HERE"}}])})

    async def story(client):
        good = await client.send()
        answer = await client.http.post(
            "/a2a",
            content=body.replace('"HERE"', number),
            headers={"Content-Type": "application/json"},
        )
        assert answer.json()["error"]["code"] in (-32602, -32700)
        answer = await client.http.post(
            "/a2a/message:send",
            content=rest.replace('"HERE"', number),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 400
        listed = (await client.call("ListTasks", {"includeArtifacts": True}))["result"]
        assert [task["id"] for task in listed["tasks"]] == [good["id"]]
        text = body.replace('"HERE"', f'"{number}"')
        assert (
            "result"
            in (
                await client.http.post(
                    "/a2a", content=text, headers={"Content-Type": "application/json"}
                )
            ).json()
        ), "as a text it is one"

    served(story)


def hostile(body):
    return (
        b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":'
        + body
        + b"}]}}}"
    )


@pytest.mark.parametrize(
    "body",
    [
        hostile(b"[" * 65 + b'"' + b'\\"' * 24_000),
        hostile(b"[" * 65 + b'"a' * 24_000),
        hostile(b"[" + b"0," * 600_000 + b"0]"),
        hostile(b"1" * 4_000_000),
        hostile(b"0." + b"1" * 4_000_000),
        hostile(b'"' + b'\\"' * 2_000_000),
        hostile(b"[" + b'"",' * 1_000_000 + b'""]'),
        hostile(b"{" + b'"a":{},' * 500_000 + b'"b":1}'),
    ],
    ids=[
        "escapes",
        "strings",
        "zeros",
        "digits",
        "fraction",
        "unclosed",
        "empty strings",
        "objects",
    ],
)
def test_a_hostile_body_does_not_stop_the_loop(served, body):
    async def story(client):
        for path in ("/a2a", "/a2a/message:send"):
            begun = time.process_time()
            answer = await client.http.post(
                path, content=body, headers={"Content-Type": "application/json"}
            )
            assert "error" in answer.json()
            assert time.process_time() - begun < 0.5
        assert state_of(await client.send()) == "COMPLETED"

    served(story)


def test_as_many_values_as_are_allowed_are_taken_in_good_time(served):
    async def story(client):
        for count, is_taken in ((19_000, True), (20_001, False)):
            begun = time.process_time()
            answer = await client.send(parts=[{"data": [0] * count}])
            assert ("error" not in answer) is is_taken
            assert time.process_time() - begun < 3
        assert state_of(await client.send("," * 100_000)) == "COMPLETED", (
            "commas in a text are text"
        )

    served(story)


def test_the_number_of_values_is_a_limit_of_the_server(served):
    async def story(client):
        answer = await client.send(parts=[{"data": [0] * 100}])
        assert "at most 50 values" in answer["error"]["message"]

    served(story, limits=ServerLimits(values=50))


@pytest.mark.parametrize("path", ["/a2a", "/a2a/message:send", "/a2a/tasks/x:cancel"])
def test_bytes_that_are_not_utf_8_are_refused_at_the_gate(served, caplog, path):
    async def story(client):
        bad = json.dumps({"message": message("HERE")}).encode().replace(b"HERE", b"\xff\xfe")
        answer = await client.http.post(
            path, content=bad, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 400
        assert "codec" not in answer.text
        assert "byte" not in answer.text

    served(story)
    assert [record for record in caplog.records if record.exc_info] == []


def test_what_is_no_json_is_said_to_be_none(served):
    async def story(client):
        for body in (b"{", b"", b"\xff\xfe", b'"text"', b"[]", b"null", b"{}"):
            answer = await client.http.post(
                "/a2a", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.json()["error"]["code"] in (-32700, -32600), body

    served(story)


def test_the_content_type_is_checked(served):
    async def story(client):
        for kind in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "",
        ):
            rpc = await client.http.post("/a2a", content=b"{}", headers={"Content-Type": kind})
            assert (rpc.status_code, rpc.json()["error"]["code"]) == (415, -32005), kind
            assert (
                await client.http.post(
                    "/a2a/message:send", content=b"{}", headers={"Content-Type": kind}
                )
            ).status_code == 415
        for kind in ("application/json", "application/json; charset=utf-8", "application/a2a+json"):
            answer = await client.http.post(
                "/a2a/message:send",
                content=json.dumps({"message": message()}),
                headers={"Content-Type": kind},
            )
            assert answer.status_code == 200

    served(story)


def test_the_version_is_checked(served):
    async def story(client):
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": message()},
        }
        for version, code in (
            ("1.0", None),
            ("1.0.1", None),
            ("99.0", -32009),
            ("0.2", -32009),
            ("", -32009),
            ("nonsense", -32009),
        ):
            answer = (
                await client.http.post("/a2a", json=body, headers={"A2A-Version": version})
            ).json()
            assert answer.get("error", {}).get("code") == code, version

    served(story)


@pytest.mark.parametrize("path", ["/a2a", "/a2a/"])
def test_the_path_is_answered_with_and_without_its_slash(served, path):
    async def story(client):
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": message()},
        }
        answer = await client.http.post(path, json=body)
        assert (answer.status_code, "result" in answer.json()) == (200, True)

    served(story)


@pytest.mark.parametrize("path", ["/", "/rpc", "rpc/", "/deep/er"])
def test_the_handler_path_can_be_another(served, path):
    async def story(client):
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": message()},
        }
        own = "/" + path.strip("/")
        assert "result" in (await client.http.post(own, json=body)).json()
        card = (await client.http.get("/.well-known/agent-card.json")).json()
        assert card["supportedInterfaces"][0]["url"] == client.url + ("" if own == "/" else own)
        rest = await client.http.post(
            own.rstrip("/") + "/message:send", json={"message": message()}
        )
        assert rest.status_code == 200

    served(story, handler_path=path)


def test_ids_and_parts_are_bounded(served):
    async def story(client):
        for fields in (
            {"messageId": "x" * 300},
            {"contextId": "x" * 300},
            {"parts": [{"text": "x"}] * 1_001},
        ):
            assert (await client.send(**fields))["error"]["code"] == -32602
        assert (await client.send(taskId="x" * 300))["error"]["code"] in (-32602, -32001)
        assert (await client.get("x" * 3_000))["error"]["code"] == -32001
        assert (await client.call("ListTasks", {"tenant": "x" * 300}))["error"]["code"] == -32602

    served(story)


@pytest.mark.parametrize("size", [0, -1, "4 MiB"])
def test_a_limit_that_is_none_is_refused(size):
    with pytest.raises(UsageError, match="max_body"):
        a2a_app(scripted(echo), max_body=size)
