"""Servers that send too much, too long, nonsense, or nothing: each ends in one line, in a bounded
time, with bounded memory.
"""

import asyncio
import gc
import gzip
import json
import resource

import pytest

from offbook.actors import RemoteAgent
from offbook.runtime import Runner
from offbook.runtime.a2a import (
    A2AClient,
    A2AConnectionError,
    A2AError,
    A2AProtocolError,
    ClientLimits,
)
from tests.doubles.a2a_servers import RawServer, json_card, send_json

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def line(result):
    return (
        b"data: " + json.dumps({"jsonrpc": "2.0", "id": "1", "result": result}).encode() + b"\n\n"
    )


def task(task_id="t", state="WORKING", **more):
    return {
        "task": {
            "id": task_id,
            "contextId": "c",
            "status": {"state": f"TASK_STATE_{state}"},
            **more,
        }
    }


def artifact(text, task_id="t", **more):
    made = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task_id, "contextId": "c", "artifact": made, **more}}


def serving(play, seen=None):
    """A server with a good card, whose answers to messages are up to `play`; cancels are noted."""

    async def answer(path, body, writer):
        if path.endswith("agent-card.json"):
            return await send_json(writer, json_card(writer))
        if b'"CancelTask"' in body:
            if seen is not None:
                seen.append("canceled")
            return await send_json(
                writer, {"jsonrpc": "2.0", "id": "1", "result": task(state="CANCELED")["task"]}
            )
        if b'"SendStreamingMessage"' not in body:
            return await send_json(
                writer, {"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "gone"}}
            )
        await play(writer)

    return answer


def ends_with(run, play, said, kind=A2AProtocolError, **limits):
    """Both the client and the agent end with that, and the task is canceled if there is one."""
    seen = []

    async def main():
        async with RawServer(serving(play, seen)) as server:
            async with A2AClient(server.url, limits=ClientLimits(**limits)) as client:
                with pytest.raises(kind, match=said) as caught:
                    async for _ in client.stream("go"):
                        pass
                assert "\n" not in str(caught.value)
                assert len(str(caught.value)) < 800
            agent = RemoteAgent(
                server.url,
                name="Remote",
                limits=ClientLimits(**{"attempts": 1, "cancel": 2, **limits}),
            )
            result = await Runner(agent).query("go")
            assert isinstance(result.error, A2AError)
            await agent.aclose()
        # Where the SDK raises, it leaves what it was reading from to the loop, which closes it at
        # once, in tasks of its own.
        for _ in range(100):
            if len(asyncio.all_tasks()) == 1:
                break
            await asyncio.sleep(0)

    run(main())
    return seen


def test_an_endless_stream_ends_at_its_bound(run):
    async def play(writer):
        writer.write(HEAD + line(task()))
        while True:
            writer.write(
                line(
                    {
                        "statusUpdate": {
                            "taskId": "t",
                            "contextId": "c",
                            "status": {"state": "TASK_STATE_WORKING"},
                        }
                    }
                )
                * 50
            )
            await writer.drain()

    assert ends_with(run, play, "sends more than 500 events in one stream", events=500) == [
        "canceled"
    ]


def test_an_endless_event_ends_at_its_bound(run):
    async def play(writer):
        writer.write(HEAD + line(task()) + b"data: ")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    assert ends_with(
        run, play, "sends an event of more than 1,000,000 bytes", response=1_000_000
    ) == ["canceled"]


def test_an_endless_answer_ends_at_its_bound(run):
    async def play(writer):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
        )
        while True:
            writer.write(b" " * 65_536)
            await writer.drain()

    assert (
        ends_with(run, play, "sends an answer of more than 1,000,000 bytes", response=1_000_000)
        == []
    )


def test_artifacts_of_a_hundred_megabytes_are_not_kept(run):
    piece = "x" * 1_000_000

    async def play(writer):
        writer.write(HEAD + line(task()))
        for index in range(100):
            writer.write(line(artifact(piece, append=bool(index))))
            await writer.drain()
        writer.write(
            line(
                {
                    "statusUpdate": {
                        "taskId": "t",
                        "contextId": "c",
                        "status": {"state": "TASK_STATE_COMPLETED"},
                    }
                }
            )
        )
        await writer.drain()

    seen = []

    async def main():
        async with RawServer(serving(play, seen)) as server:
            agent = RemoteAgent(server.url, name="Remote", limits=ClientLimits(content=5_000_000))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result = await Runner(agent).query("go")
            assert "the remote agent 'Remote' sends artifacts of more than 5,000,000 bytes" in str(
                result.error
            )
            assert seen == ["canceled"]
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
            await agent.aclose()

    run(main())


def test_one_artifact_of_a_hundred_megabytes_is_not_read(run):
    async def play(writer):
        writer.write(
            HEAD
            + line(task())
            + (
                b"data: "
                b'{"jsonrpc":"2.0","id":"1","result":{"artifactUpdate":{"taskId":"t","artifact":{"parts":[{"text":"'
            )
        )
        for _ in range(100):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
        writer.write(b'"}]}}}}\n\n')
        await writer.drain()

    assert ends_with(run, play, "sends an event of more than 16,777,216 bytes") == ["canceled"]


def test_more_artifacts_than_are_allowed_end_it(run):
    async def play(writer):
        writer.write(HEAD + line(task()))
        for index in range(50):
            writer.write(
                line(
                    {
                        "artifactUpdate": {
                            "taskId": "t",
                            "contextId": "c",
                            "artifact": {"artifactId": f"a{index}", "parts": [{"text": "x"}]},
                        }
                    }
                )
            )
        await writer.drain()
        await asyncio.Event().wait()

    async def main():
        async with RawServer(serving(play)) as server:
            agent = RemoteAgent(server.url, name="Remote", limits=ClientLimits(artifacts=10))
            result = await Runner(agent).query("go")
            assert "sends more than 10 artifacts" in str(result.error)
            await agent.aclose()

    run(main())


def test_an_answer_of_a_million_small_values_is_not_taken_apart(run):
    """A list of nothing is three bytes over the wire, and hundreds in memory."""

    async def play(writer):
        values = b"[" + b",".join([b"[]"] * 1_000_000) + b"]"
        body = (
            b'{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":'
            + values
            + b"}]}}}"
        )
        writer.write(HEAD + b"data: " + body + b"\n\n")
        await writer.drain()

    assert ends_with(run, play, "more than 500,000 values") == []


def test_another_task_in_the_stream_ends_it(run):
    async def play(writer):
        writer.write(HEAD + line(task()) + line(artifact("x", task_id="another")))
        await writer.drain()
        await asyncio.Event().wait()

    assert ends_with(
        run, play, "sent an event of the task 'another', but the request was about 't'"
    ) == ["canceled"]


def test_a_task_without_an_id_is_none(run):
    async def play(writer):
        writer.write(HEAD + line(task(task_id="")))
        await writer.drain()

    assert ends_with(run, play, "sent an event of the task ''") == []


def test_a_message_in_the_stream_of_a_task_ends_it(run):
    async def play(writer):
        writer.write(
            HEAD
            + line(task())
            + line({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}})
        )
        await writer.drain()
        await asyncio.Event().wait()

    ends_with(run, play, "sent a message in the stream of a task")


@pytest.mark.parametrize(
    "sent",
    [
        b"data: {not json\n\n",
        b"data: [1,2]\n\n",
        b'data: "text"\n\n',
        b'data: {"jsonrpc":"2.0"}\n\n',
        b'data: {"jsonrpc":"2.0","result":7}\n\n',
        b'data: {"jsonrpc":"2.0","result":{"task":{"id":7,"status":"x"}}}\n\n',
        b"data: "
        b'{"jsonrpc":"2.0","result":{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING","timestamp":"soon"}}}}\n\n',
        b"data: " + b"[" * 50_000 + b"\n\n",
        b'data: {"jsonrpc":"2.0","result":{"message":{"parts":[{"data":'
        + b"[" * 400
        + b"]" * 400
        + b"}]}}}\n\n",
        b"data: \xff\xfe\n\n",
    ],
)
def test_what_is_no_json_or_no_event_ends_it(run, sent):
    async def play(writer):
        writer.write(HEAD + sent)
        await writer.drain()

    ends_with(run, play, None, A2AError)


def test_a_state_that_does_not_exist_is_no_end(run):
    """A later version may have more of them."""

    async def play(writer):
        update = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_DREAMING"}}
        writer.write(
            HEAD
            + line(task())
            + line({"statusUpdate": update})
            + line(artifact("made", lastChunk=True))
        )
        writer.write(
            line(
                {
                    "statusUpdate": {
                        "taskId": "t",
                        "contextId": "c",
                        "status": {"state": "TASK_STATE_COMPLETED"},
                    }
                }
            )
        )
        await writer.drain()

    async def main():
        async with RawServer(serving(play)) as server:
            agent = RemoteAgent(server.url, name="Remote")
            assert (await Runner(agent).query("go")).text == "made"
            await agent.aclose()

    run(main())


def test_an_answer_that_is_compressed_is_not_unpacked(run):
    bomb = gzip.compress(b"x" * 50_000_000)

    async def play(writer):
        writer.write(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: "
            f"gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
            + bomb
        )
        await writer.drain()

    ends_with(run, play, "sent a compressed response, although the request does not accept one")


def test_a_redirect_is_not_followed_with_what_was_said(run):
    async def play(writer):
        await send_json(writer, {}, 307, Location="http://127.0.0.1:1/elsewhere")

    ends_with(
        run, play, "redirects to 'http://127.0.0.1:1/elsewhere', and redirects are not followed"
    )


def test_what_a_stranger_says_is_shown_as_one_line(run):
    async def play(writer):
        await send_json(
            writer,
            {
                "jsonrpc": "2.0",
                "id": "1",
                "error": {"code": -32602, "message": "a\nb\x1b[31m" + "z" * 100_000},
            },
        )

    async def main():
        async with RawServer(serving(play)) as server, A2AClient(server.url) as client:
            with pytest.raises(A2AError, match=r"refused the request: a b \[31mzzz") as caught:
                _ = [event async for event in client.stream("go")]
            assert len(str(caught.value)) < 700
            assert str(caught.value).isprintable()
            del caught
        gc.collect()  # what the SDK leaves to the loop to close when an answer is an error
        for _ in range(5):
            await asyncio.sleep(0)

    run(main())


def test_a_connection_that_breaks_off_before_an_answer_is_an_error(run):
    async def play(writer):
        writer.close()

    ends_with(run, play, "broke the connection", A2AConnectionError)


def test_a_failure_in_many_lines_is_shown_in_one(run):
    async def play(writer):
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "line\n" * 10_000}]}
        writer.write(
            HEAD
            + line(
                {
                    "task": {
                        "id": "t",
                        "contextId": "c",
                        "status": {"state": "TASK_STATE_FAILED", "message": message},
                    }
                }
            )
        )
        await writer.drain()

    async def main():
        async with RawServer(serving(play)) as server:
            agent = RemoteAgent(server.url, name="Remote")
            error = (await Runner(agent).query("go")).error
            assert "\n" not in str(error)
            assert len(str(error)) < 700
            await agent.aclose()

    run(main())
