"""Programs of versions 0.2.5 and 0.3, in both directions: what they leave out, their cards, and
requests that are malformed.
"""

import json

import httpx
import pytest

from offbook.actors import RemoteAgent
from offbook.runtime import MemoryStore, Runner
from offbook.runtime.a2a import (
    A2AClient,
    A2AConnectionError,
    A2AMessage,
    AgentCard,
    AgentInterface,
    Artifact,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    TextPart,
    a2a_app,
)
from tests.doubles.a2a import VERSION, scripted, serving
from tests.doubles.a2a_servers import RawServer, send_json

OLD_CARD = {
    "protocolVersion": "0.2.5",
    "name": "My Agent",
    "description": "A helpful AI agent",
    "version": "1.0.0",
    "capabilities": {
        "streaming": True,
        "pushNotifications": False,
        "stateTransitionHistory": False,
    },
    "skills": [],
    "defaultInputModes": [],
    "defaultOutputModes": [],
}


async def asks(input, context):
    if context.resume is not None and context.resume.was_interrupted:
        yield f"answered {context.resume.data}"
    elif input.messages[-1].text == "ask":
        yield context.interrupt("Which?")
    else:
        yield f"heard {input.messages[-1].text}"


# A program of theirs asks ours.


@pytest.mark.parametrize(
    "ids",
    [{"messageId": ""}, {}, {"messageId": None}, {"messageId": "", "taskId": "", "contextId": ""}],
)
@pytest.mark.parametrize("kinds", [True, False])
def test_a_client_after_the_examples_of_0_2_5_talks_to_a_served_agent(run, ids, kinds):
    """It fetches the card, streams, gets, answers and cancels; its messages have no ids, and parts
    may have no kinds.
    """

    def said(text, **fields):
        part = {"kind": "text", "text": text} if kinds else {"text": text}
        return {"role": "user", "parts": [part], **ids, **fields}

    async def main():
        async with (
            serving(a2a_app(scripted(asks))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            card = (await http.get("/.well-known/agent.json")).json()
            place = card["url"].removeprefix(url)

            async def call(method, **params):
                return (
                    await http.post(
                        place,
                        json={"jsonrpc": "2.0", "id": "1", "method": method, "params": params},
                    )
                ).json()["result"]

            text = (
                await http.post(
                    place,
                    json={
                        "jsonrpc": "2.0",
                        "id": 1,
                        "method": "message/stream",
                        "params": {"message": said("hello")},
                    },
                )
            ).text
            events = [
                json.loads(line[5:])["result"]
                for line in text.splitlines()
                if line.startswith("data:")
            ]
            assert [event["kind"] for event in events] == [
                "task",
                "status-update",
                "artifact-update",
                "status-update",
            ]
            assert events[2]["artifact"]["parts"] == [{"kind": "text", "text": "heard hello"}]
            assert events[-1]["status"]["state"] == "completed"
            assert (await call("tasks/get", id=events[0]["id"]))["status"]["state"] == "completed"
            waiting = await call("message/send", message=said("ask"))
            assert waiting["status"]["state"] == "input-required"
            done = await call("message/send", message=said("red", taskId=waiting["id"]))
            assert done["artifacts"][0]["parts"][0]["text"] == "answered red"
            other = await call("message/send", message=said("ask"))
            assert (await call("tasks/cancel", id=other["id"]))["status"]["state"] == "canceled"

    run(main())


MALFORMED = {
    "no message": {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}},
    "a role that is none": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {"message": {"role": "king", "parts": []}},
    },
    "parts that are none": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/stream",
        "params": {"message": {"role": "user", "parts": "x"}},
    },
    "an unknown state": {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": []},
    "params of another kind": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"parts": 7}},
    },
    "params that are a list": {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": [1]},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "a method that is none": {"jsonrpc": "2.0", "id": 1, "method": 7},
    "half of a surrogate": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "parts": [{"text": "\ud800"}]}},
    },
    "a text": "hello",
    "nothing": None,
}


@pytest.mark.parametrize("what", MALFORMED)
@pytest.mark.parametrize("headers", [VERSION, {}], ids=["1.0", "0.3"])
def test_a_malformed_request_is_one_line_in_the_log_and_its_answer_holds_no_internals(
    run, caplog, what, headers
):
    async def main():
        async with (
            serving(a2a_app(scripted(asks))) as url,
            httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http,
        ):
            answer = await http.post(
                "/a2a",
                content=json.dumps(MALFORMED[what]),
                headers={"Content-Type": "application/json"},
            )
            assert answer.json()["error"]["code"] in (-32600, -32602)
            check_quiet(answer.text)
            if isinstance(MALFORMED[what], dict) and "params" in MALFORMED[what]:
                rest = await http.post(
                    "/a2a/message:send", json={"message": {"parts": 7}}, headers=VERSION
                )
                assert rest.status_code == 400
                check_quiet(rest.text)

    run(main())
    assert [record for record in caplog.records if record.exc_info] == []
    assert all("\n" not in record.getMessage() for record in caplog.records)


def check_quiet(answer):
    for word in (
        "pydantic",
        "Traceback",
        "lf.a2a",
        "google.protobuf",
        "object at",
        "codec",
        "expected",
        "ValidationError",
    ):
        assert word not in answer


# Ours asks a program of theirs.


def old_server(*, streams=True, place="/.well-known/agent.json"):
    """A server after the examples of 0.2.5: it leaves out what it can."""
    seen = []

    async def answer(path, body, writer):
        port = writer.get_extra_info("sockname")[1]
        if path == place:
            await send_json(
                writer,
                {
                    **OLD_CARD,
                    "url": f"http://127.0.0.1:{port}/a2a",
                    "capabilities": {"streaming": streams},
                },
            )
            return
        if body == b"":
            await send_json(writer, {}, status=404)
            return
        request = json.loads(body)
        seen.append(request["method"])
        task = {
            "id": "t1",
            "status": {"state": "completed"},
            "artifacts": [{"parts": [{"kind": "text", "text": "the result"}]}],
            "history": None,
        }
        if request["method"] != "message/stream":
            await send_json(writer, {"jsonrpc": "2.0", "id": request["id"], "result": task})
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        for event in (
            {
                "kind": "task",
                "id": "t1",
                "contextId": "c",
                "status": {"state": "submitted", "timestamp": ""},
            },
            {
                "kind": "status-update",
                "taskId": "t1",
                "status": {
                    "state": "working",
                    "message": {"role": "agent", "parts": [{"text": "on it"}]},
                },
            },
            {
                "taskId": "t1",
                "artifact": {"parts": [{"kind": "text", "text": "the result"}]},
                "lastChunk": True,
            },
            {"taskId": "t1", "contextId": "c", "status": {"state": "completed"}},
        ):
            writer.write(
                b"data: "
                + json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": event}).encode()
                + b"\n\n"
            )
        await writer.drain()

    return RawServer(answer), seen


@pytest.mark.parametrize(
    "place",
    ["/.well-known/agent-card.json", "/.well-known/agent.json", "/a2a/.well-known/agent.json"],
)
@pytest.mark.parametrize("streams", [True, False])
def test_a_server_after_the_examples_of_0_2_5_is_asked(run, place, streams):
    async def main():
        raw, seen = old_server(streams=streams, place=place)
        async with raw as server:
            result = await Runner(RemoteAgent(server.url, name="Old")).query("go")
            assert (result.status, result.text) == ("completed", "the result")
            async with A2AClient(server.url) as client:
                assert (await client.card()).name == "My Agent"
                assert (await client.get("t1")).artifacts[0].parts[0].text == "the result"
                assert (await client.cancel("t1")).id == "t1"
        assert seen[0] == ("message/stream" if streams else "message/send")

    run(main())


@pytest.mark.parametrize("make", ["document", "fields", "0.3 document", "document in a card"])
def test_a_card_given_by_hand_is_read(run, make):
    async def main():
        async with serving(a2a_app(scripted(asks))) as url:
            former = {
                **OLD_CARD,
                "protocolVersion": "0.3.0",
                "url": f"{url}/a2a",
                "preferredTransport": "JSONRPC",
            }
            now = {
                "name": "My Agent",
                "description": "d",
                "supportedInterfaces": [
                    {"url": f"{url}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
                ],
            }
            card = {
                "document": now,
                "fields": AgentCard(
                    "My Agent",
                    "d",
                    interfaces=(AgentInterface(f"{url}/a2a", "JSONRPC", "1.0"),),
                    streaming=True,
                ),
                "0.3 document": former,
                "document in a card": AgentCard("My Agent", document=former),
            }[make]
            agent = RemoteAgent(card)
            assert agent.name == "My Agent"
            assert (await Runner(agent).query("you")).text == "heard you"

    run(main())


# A transport of one's own.


class Calls:
    """The six calls, without a network."""

    def __init__(self, asks=False):
        self.calls = []
        self.asks = asks

    async def card(self):
        self.calls.append("card")
        return AgentCard("Near", streaming=True)

    async def send(self, message, metadata):
        self.calls.append("send")
        return A2AMessage("agent", (TextPart(f"heard {message.text}"),))

    async def stream(self, message, metadata):
        self.calls.append("stream")
        is_answer = message.task_id is not None
        yield Task("t", "c", TaskStatus(TaskState.WORKING))
        if self.asks and not is_answer:
            yield TaskStatusUpdateEvent(
                "t",
                "c",
                TaskStatus(TaskState.INPUT_REQUIRED, A2AMessage("agent", (TextPart("Which?"),))),
            )
            return
        yield TaskArtifactUpdateEvent(
            "t", "c", Artifact("a", (TextPart(f"heard {message.text}"),)), last_chunk=True
        )
        yield TaskStatusUpdateEvent("t", "c", TaskStatus(TaskState.COMPLETED))

    async def get(self, task_id):
        self.calls.append("get")
        return Task(task_id, "c", TaskStatus(TaskState.COMPLETED))

    async def cancel(self, task_id):
        self.calls.append("cancel")
        return Task(task_id, "c", TaskStatus(TaskState.CANCELED))

    async def subscribe(self, task_id):
        self.calls.append("subscribe")
        yield Task(task_id, "c", TaskStatus(TaskState.COMPLETED))


def test_a_transport_of_ones_own_is_asked(run):
    async def main():
        calls = Calls()
        async with A2AClient(transport=calls) as client:
            assert (await client.card()).name == "Near"
            assert (await client.send("you")).text == "heard you"
            assert len([event async for event in client.stream("you")]) == 3
            assert [event.id async for event in client.subscribe("t")] == ["t"]
            assert (await client.get("t")).id == (await client.cancel("t")).id == "t"
        assert calls.calls == ["card", "send", "stream", "subscribe", "get", "cancel"]

    run(main())


def test_a_remote_agent_plays_over_a_transport_of_ones_own(run):
    async def main():
        asking = Calls(asks=True)
        runner = Runner(
            RemoteAgent(transport=asking, name="Near", description="d"), store=MemoryStore()
        )
        waiting = await runner.query("paint", checkpoint_id="one")
        assert waiting.interrupts[0].info.text == "Which?"
        assert (await runner.resume("one", data="red")).text == "heard red"

    run(main())


def test_a_transport_that_breaks_off_is_not_sent_the_message_again(run):
    class Breaks(Calls):
        async def stream(self, message, metadata):
            self.calls.append("stream")
            raise A2AConnectionError("gone")
            yield

    async def main():
        calls = Breaks()
        result = await Runner(RemoteAgent(transport=calls, name="Near", description="d")).query(
            "paint"
        )
        assert result.error is not None
        assert calls.calls.count("stream") == 1, "whether it has arrived is not known"

    run(main())
