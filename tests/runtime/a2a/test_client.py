"""`A2AClient` against a server that was made with the official SDK, over real HTTP: each operation
by each transport.
"""

import asyncio
import json

import httpx
import pytest

from offbook.runtime import UsageError
from offbook.runtime.a2a import (
    A2AClient,
    A2AMessage,
    A2ARequestError,
    AgentCard,
    AgentInterface,
    DataPart,
    FilePart,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
)
from offbook.runtime.a2a.client.pump import Pump
from offbook.runtime.a2a.conversion import card_from_wire
from tests.doubles.a2a_servers import (
    RawServer,
    SdkServer,
    card_of,
    data,
    json_card,
    send_json,
    text,
)

TRANSPORTS = ["JSONRPC", "HTTP+JSON"]


async def works(job):
    if job.said == "plain":
        return await job.reply("no task")
    updater = await job.begin()
    await updater.start_work(updater.new_agent_message([text("at work")]))
    if job.said == "wait":
        await asyncio.Event().wait()
    if job.said == "ask" and job.is_new:
        return await updater.requires_input(updater.new_agent_message([text("which?")]))
    await updater.add_artifact(
        [text("one ")], artifact_id="a", name="out", append=False, last_chunk=False
    )
    await updater.add_artifact(
        [text("two")], artifact_id="a", name="out", append=True, last_chunk=True
    )
    await updater.add_artifact(
        [data({"n": 1, "x": 0.5})], artifact_id="b", name="data", last_chunk=True
    )
    await updater.complete()


def server_for(_transport, **more):
    return SdkServer(works, **more)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_send_returns_the_task_when_it_has_ended(run, transport):
    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            task = await client.send("go", metadata={"k": 1})
            assert isinstance(task, Task)
            assert task.status.state is TaskState.COMPLETED
            assert [artifact.text for artifact in task.artifacts] == ["one two", ""]
            assert task.artifacts[1].parts == (DataPart({"n": 1, "x": 0.5}, "application/json"),)
            assert repr(task.artifacts[1].parts[0].data) == "{'n': 1, 'x': 0.5}"
            assert (await client.get(task.id)).id == task.id

    with server_for(transport) as server:
        run(main(server))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_stream_shows_the_task_first_and_then_its_changes(run, transport):
    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            events = [event async for event in client.stream("go")]
            assert [type(event) for event in events] == [
                Task,
                TaskStatusUpdateEvent,
                *[TaskArtifactUpdateEvent] * 3,
                TaskStatusUpdateEvent,
            ]
            pieces = [event for event in events if isinstance(event, TaskArtifactUpdateEvent)]
            assert [
                (piece.artifact.text, piece.append, piece.last_chunk) for piece in pieces[:2]
            ] == [("one ", False, False), ("two", True, True)]
            assert events[-1].status.state is TaskState.COMPLETED

    with server_for(transport) as server:
        run(main(server))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_answer_that_is_a_plain_message_is_one_message(run, transport):
    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            answer = await client.send("plain")
            assert isinstance(answer, A2AMessage)
            assert (answer.text, answer.task_id) == ("no task", None)
            assert [event.text async for event in client.stream("plain")] == ["no task"]

    with server_for(transport) as server:
        run(main(server))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_task_that_asks_is_answered_by_a_message_to_it(run, transport):
    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            task = await client.send("ask")
            assert (task.status.state, task.status.message.text) == (
                TaskState.INPUT_REQUIRED,
                "which?",
            )
            done = await client.send("this one", task_id=task.id)
            assert (done.id, done.context_id, done.status.state) == (
                task.id,
                task.context_id,
                TaskState.COMPLETED,
            )

    with server_for(transport) as server:
        run(main(server))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_subscribe_takes_a_task_up_and_cancel_ends_it(run, transport):
    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            task = await client.send("wait", wait=False)
            assert task.status.state in (TaskState.SUBMITTED, TaskState.WORKING)
            seen = []
            async for event in client.subscribe(task.id):
                seen.append(event)
                if len(seen) == 1:
                    await client.cancel(task.id)
            assert seen[0].id == task.id
            assert seen[-1].status.state is TaskState.CANCELED
            assert server.canceled == [task.id]

    with server_for(transport) as server:
        run(main(server))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_that_is_left_early_leaves_nothing_behind(run, transport):
    """The fixture `run` fails, if a task is left on the loop."""

    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            for _ in range(3):
                events = client.stream("wait")
                async for event in events:
                    task_id = event.id
                    break
                await events.aclose()
                await client.cancel(task_id)

    with server_for(transport) as server:
        run(main(server))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_the_server_refuses_says_why(run, transport):
    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            with pytest.raises(A2ARequestError, match="refused the request") as caught:
                await client.get("no-such-task")
            assert caught.value.reason == "TASK_NOT_FOUND"
            task = await client.send("go")
            with pytest.raises(A2ARequestError) as caught:
                await client.cancel(task.id)
            assert caught.value.reason == "TASK_NOT_CANCELABLE"
            assert "\n" not in str(caught.value)

    with server_for(transport) as server:
        run(main(server))


def test_card_says_who_it_is_and_is_fetched_once(run):
    async def main(server):
        async with A2AClient(server.url) as client:
            card = await client.card()
            assert (card.name, card.description, card.version, card.streaming) == (
                "Theirs",
                "an agent of others",
                "7",
                True,
            )
            assert card.skills[0].name == "All"
            await asyncio.gather(client.card(), client.card(), client.send("go"))
            assert [path for path, _ in server.requests].count("/.well-known/agent-card.json") == 1

    with server_for("JSONRPC") as server:
        run(main(server))


def test_files_go_both_ways(run):
    got = []

    async def echoes(job):
        updater = await job.begin()
        got.extend(job.message.parts)
        await updater.add_artifact(list(job.message.parts), artifact_id="a", last_chunk=True)
        await updater.complete()

    async def main(server):
        parts = (
            FilePart(data=b"\0\1\xff", media_type="image/png", name="p.png"),
            FilePart("https://x.test/f.pdf", media_type="application/pdf"),
        )
        async with A2AClient(server.url) as client:
            task = await client.send(A2AMessage.user(parts))
            assert task.artifacts[0].parts == parts

    with SdkServer(echoes) as server:
        run(main(server))


@pytest.mark.parametrize("path", ["a2a", "rest"])
def test_a_server_of_version_0_3_is_asked_in_its_words(run, path):
    transport = "JSONRPC" if path == "a2a" else "HTTP+JSON"

    async def main(server):
        async with A2AClient(server.url, transport=transport) as client:
            events = [event async for event in client.stream("go")]
            assert isinstance(events[0], Task)
            assert events[-1].status.state is TaskState.COMPLETED
            task = await client.send("ask")
            assert task.status.state is TaskState.INPUT_REQUIRED
            assert (await client.send("b", task_id=task.id)).status.state is TaskState.COMPLETED
            assert (await client.get(task.id)).artifacts[0].text == "one two"

    with SdkServer(works, v03=True, version="0.3.0") as server:
        run(main(server))


def test_u2028_in_a_stream_is_no_end_of_a_line(run):
    """JSON may hold it as it is; `splitlines` ends a line there."""
    said = "one\u2028two\u2029three\x85four"

    async def answer(path, body, writer):
        if path.endswith("agent-card.json"):
            return await send_json(writer, json_card(writer))
        reply = {
            "jsonrpc": "2.0",
            "id": "1",
            "result": {
                "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": said}]}
            },
        }
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        for byte in f"data: {json.dumps(reply, ensure_ascii=False)}\n\n".encode():
            writer.write(bytes([byte]))
            await writer.drain()

    async def main():
        async with RawServer(answer) as server, A2AClient(server.url) as client:
            assert [event.text async for event in client.stream("go")] == [said]

    run(main())


# Credentials, and the user's own client.


@pytest.mark.parametrize(
    "auth",
    [
        "secret",
        {"Authorization": "Bearer secret"},
        lambda: "secret",
        pytest.param("httpx", id="httpx.Auth"),
    ],
    ids=["token", "headers", "function", None],
)
@pytest.mark.parametrize("transport", ["JSONRPC", "HTTP+JSON"])
def test_auth_is_a_token_headers_a_function_or_httpxs(run, auth, transport):
    class Own(httpx.Auth):
        def auth_flow(self, request):
            request.headers["Authorization"] = "Bearer secret"
            yield request

    async def main(server):
        async with A2AClient(
            server.url, auth=Own() if auth == "httpx" else auth, transport=transport
        ) as client:
            assert [event async for event in client.stream("go")][
                -1
            ].status.state is TaskState.COMPLETED
            assert (await client.send("go")).status.state is TaskState.COMPLETED

    with SdkServer(works, token="secret") as server:
        run(main(server))


def test_credentials_that_are_missing_are_said_to_be_missing(run):
    async def main(server):
        async with A2AClient(server.url) as client:
            with pytest.raises(
                A2ARequestError,
                match=r"refused the credentials: HTTP 401\. Pass valid ones as auth=",
            ) as caught:
                await client.send("go")
            assert caught.value.reason == "UNAUTHENTICATED"

    with SdkServer(works, token="secret") as server:
        run(main(server))


def test_the_users_own_http_client_is_used_and_left_open(run):
    seen = []

    async def note(request):
        seen.append((request.url.path, request.headers.get("x-own")))

    async def main(server):
        async with httpx.AsyncClient(
            headers={"X-Own": "1"}, event_hooks={"request": [note]}
        ) as own:
            before = dict(own.headers)
            async with A2AClient(server.url, http_client=own) as client:
                assert [event async for event in client.stream("go")][
                    -1
                ].status.state is TaskState.COMPLETED
            assert not own.is_closed
            assert dict(own.headers) == before
        assert ("/a2a", "1") in seen

    with server_for("JSONRPC") as server:
        run(main(server))


def test_credentials_go_to_the_server_that_was_dialled_whatever_its_card_says(run):
    """The card names another address: there, nothing is ever asked."""
    strangers = []

    async def stranger(path, body, writer):
        strangers.append(path)
        await send_json(writer, {})

    async def main(server):
        async with RawServer(stranger) as other:
            server.card.supported_interfaces[0].url = f"{other.url}/a2a"
            async with A2AClient(server.url, auth="secret", transport="JSONRPC") as client:
                assert (await client.send("go")).status.state is TaskState.COMPLETED
        assert strangers == []

    with server_for("JSONRPC") as server:
        run(main(server))


def test_a_card_that_is_given_is_taken_at_its_word(run):
    async def main(server):
        card = card_from_wire(server.card)
        async with A2AClient(card) as client:
            assert (await client.send("go")).status.state is TaskState.COMPLETED
        assert [path for path, _ in server.requests] == ["/a2a"]

    with server_for("JSONRPC") as server:
        run(main(server))


def test_an_agent_that_does_not_stream_answers_a_stream_with_one_item(run):
    async def main(server):
        async with A2AClient(server.url) as client:
            events = [event async for event in client.stream("go")]
            assert [type(event) for event in events] == [Task]
            with pytest.raises(
                UsageError, match="does not support streaming, according to its card"
            ):
                _ = [event async for event in client.subscribe(events[0].id)]

    with server_for("JSONRPC", streaming=False) as server:
        run(main(server))


def test_an_empty_message_and_a_closed_client_are_refused(run):
    async def main():
        client = A2AClient("http://127.0.0.1:1")
        with pytest.raises(UsageError, match="the message must not be empty"):
            await client.send(A2AMessage("user"))
        with pytest.raises(UsageError, match="task_id must be the id of a task"):
            await client.get("")
        await client.close()
        with pytest.raises(UsageError, match=r"is closed\. Make another one"):
            await client.card()

    run(main())


def test_a_pump_reads_one_item_ahead_and_no_more(run):
    made = []

    async def items():
        for count in range(10):
            made.append(count)
            await asyncio.sleep(0)
            yield count

    async def main():
        pump = Pump(items())
        assert await pump.next() == 0
        for _ in range(10):
            await asyncio.sleep(0)
        # The one that was read, the one that lies ready, and the one for which there is no room.
        assert len(made) <= 3
        await pump.aclose()
        assert len(made) <= 4

    run(main())


def test_a_card_of_ours_needs_no_document():
    card = AgentCard("Ours", interfaces=(AgentInterface("http://x.test/a2a", "JSONRPC", "1.0"),))
    assert card.url == "http://x.test/a2a"
    assert TextPart("x").text == "x"
    assert card_of(1).name == "Theirs"
