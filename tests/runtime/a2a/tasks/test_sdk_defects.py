"""What the SDK's own handler gets wrong, each held here over real HTTP with the SDK's client."""

import asyncio
import gc
import time
from contextlib import asynccontextmanager

import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import UnsupportedOperationError

from offbook.runtime import SQLiteStore
from offbook.runtime.a2a import ArtifactUpdate, Status, WebhookPolicy, a2a_app
from tests.doubles.a2a import (
    ByHand,
    kind_of,
    scripted,
    sdk_client,
    sdk_message,
    serving,
    state_of,
    status_text,
    text_of,
)
from tests.doubles.webhooks import Webhook


@asynccontextmanager
async def talking(app, **options):
    async with serving(app) as url, httpx.AsyncClient(timeout=20, trust_env=False) as http:
        yield sdk_client(url, http, **options), ByHand(url)


async def all_of(stream):
    return [response async for response in stream]


async def asks(input, context):
    if context.resume is not None and context.resume.was_interrupted:
        yield f"answered {context.resume.data}"
    else:
        yield context.interrupt("?")


def test_a_follow_up_with_only_a_task_id_keeps_the_context(run):
    async def main():
        async with talking(a2a_app(scripted(asks)), streaming=False) as (client, _):
            [first] = await all_of(client.send_message(sdk_message()))
            [second] = await all_of(client.send_message(sdk_message("x", task_id=first.task.id)))
            assert second.task.status.state == pb.TASK_STATE_COMPLETED
            assert second.task.context_id == first.task.context_id != ""
            assert [said.context_id for said in second.task.history] == [first.task.context_id] * 3

    run(main())


def test_a_follow_up_after_a_restart_keeps_the_context_and_is_worked_on(run, tmp_path):
    async def main():
        task = None
        for _process in range(2):
            store = SQLiteStore(tmp_path / "tasks.db")
            async with talking(a2a_app(scripted(asks), store=store), streaming=False) as (
                client,
                _,
            ):
                request = sdk_message("x", **({} if task is None else {"task_id": task.id}))
                [response] = await all_of(client.send_message(request))
                assert task is None or response.task.context_id == task.context_id
                task = response.task
            await store.aclose()
        assert task.status.state == pb.TASK_STATE_COMPLETED

    run(main())


def test_a_second_message_to_a_working_task_waits_its_turn_and_answers_nothing_asked_since(run):
    gate, begun = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        if context.resume is not None and context.resume.was_interrupted:
            yield f"second had {context.resume.data}"
            return
        begun.set()
        await gate.wait()
        yield context.interrupt("first is done")

    async def main():
        async with talking(a2a_app(scripted(play)), streaming=False) as (client, hand):
            async with hand:
                task = await hand.send(configuration={"returnImmediately": True})
                await begun.wait()
                second = asyncio.create_task(
                    all_of(client.send_message(sdk_message("mine", task_id=task["id"])))
                )
                third = asyncio.create_task(hand.send("late", taskId=task["id"]))
                while len((await hand.get(task["id"]))["history"]) < 1:
                    await asyncio.sleep(0)
                gate.set()
                with pytest.raises(UnsupportedOperationError, match="asked a question since"):
                    await second
                assert (await third)["error"]["code"] == -32004
                assert state_of(await hand.get(task["id"])) == "INPUT_REQUIRED"
                done = await hand.send("mine", taskId=task["id"])
                assert (state_of(done), text_of(done)) == ("COMPLETED", "second had mine")
                assert (await hand.send("late", taskId=task["id"]))["error"]["code"] == -32004

    run(main())


def test_a_webhook_that_takes_its_time_does_not_delay_the_events(run):
    async def play(input, context):
        for number in range(6):
            yield Status(f"step {number}")
        yield "done"

    async def main():
        held = asyncio.Event()
        async with Webhook(hold=held) as hook:
            app = a2a_app(
                scripted(play), webhooks=WebhookPolicy(allow_http=True, allow_private=True)
            )
            async with serving(app) as url, ByHand(url) as client:
                params = {
                    "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]},
                    "configuration": {"taskPushNotificationConfig": {"url": hook.url}},
                }
                async with client.streaming("SendStreamingMessage", params) as events:
                    kinds = [
                        kind_of(event) async for event in events
                    ]  # while not one call of the webhook has been answered
                assert kinds[-1] == "COMPLETED"
                assert len(hook.calls) <= 1
                held.set()
                await hook.until(10)
            numbers = [
                status_text(call["statusUpdate"])
                for call in hook.calls
                if status_text(call.get("statusUpdate", {"status": {}}))
            ]
            assert numbers == [f"step {number}" for number in range(6)]
            assert state_of(hook.calls[-1]) == "COMPLETED"

    run(main())


def test_raw_exception_texts_never_reach_the_sdks_client(run):
    async def play(input, context):
        raise RuntimeError("postgres://user:swordfish@db")
        yield

    async def main():
        async with talking(a2a_app(scripted(play))) as (client, hand):
            async with hand:
                responses = await all_of(client.send_message(sdk_message()))
                assert "swordfish" not in str(responses)
                assert responses[-1].status_update.status.state == pb.TASK_STATE_FAILED

    run(main())


def test_what_is_wrong_inside_the_server_does_not_reach_a_client_either(run, monkeypatch):
    async def main():
        app = a2a_app(scripted(asks))
        async with serving(app) as url, ByHand(url) as client:
            service = await app.service()

            async def broken(*_):
                raise OSError("disk /dev/swordfish is full")

            monkeypatch.setattr(service.access.store, "get", broken)
            for method, params in (
                ("GetTask", {"id": "x"}),
                ("CancelTask", {"id": "x"}),
                ("SubscribeToTask", {"id": "x"}),
            ):
                answer = await client.http.post(
                    "/a2a", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                )
                assert "swordfish" not in answer.text
                assert answer.json()["error"]["code"] == -32603
            for path in ("/a2a/tasks/x", "/a2a/tasks/x:subscribe"):
                assert "swordfish" not in (await client.http.get(path)).text
            monkeypatch.undo()

    run(main())


def test_a_subscriber_that_does_not_read_is_neither_cut_off_silently_nor_buffered_without_bound(
    run,
):
    count, size = 2_000, 2_000

    async def play(input, context):
        for number in range(count):
            yield ArtifactUpdate("big", "x" * size, append=number > 0, last=number == count - 1)

    async def main():
        app = a2a_app(scripted(play))
        async with serving(app) as url, ByHand(url) as client:
            # A reader that never reads: its socket fills up, and then nothing is taken from the
            # server any more.
            host, port = url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
            body = b'{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}'
            head = (
                "POST /a2a HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                f"application/json\r\nA2A-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await reader.readuntil(b"\r\n\r\n")
            service = await app.service()
            most = 0
            while True:
                tasks = (await client.call("ListTasks", {"includeArtifacts": False}))["result"][
                    "tasks"
                ]
                most = max(
                    most, *(waiting for actor in service.actors() for waiting in actor.waiting()), 0
                )
                if tasks and state_of(tasks[0]) == "COMPLETED":
                    break
                await asyncio.sleep(0.01)
            assert most <= 256, "updates that nobody reads are joined"
            task = await client.get(tasks[0]["id"])
            assert len(text_of(task)) == count * size, "the task itself has all of it"
            writer.close()

    run(main())


def test_refused_messages_leave_no_task_behind(run):
    async def main():
        async with serving(a2a_app(scripted(asks))) as url, ByHand(url) as client:
            bad = [
                {"parts": []},
                {"parts": [{}]},
                {"parts": [{"text": "x", "mediaType": "application/x-strange"}]},
                {
                    "parts": [{"data": {"n": 1}}],
                    "metadata": {"deep": [1e308, {"x": None}]},
                    "role": "ROLE_AGENT",
                },
                {"taskId": "none-such"},
                {"messageId": ""},
            ]
            for fields in bad:
                answer = await client.call(
                    "SendMessage",
                    {
                        "message": {
                            "messageId": "m",
                            "role": "ROLE_USER",
                            "parts": [{"text": "x"}],
                            **fields,
                        }
                    },
                )
                assert "error" in answer, fields
            assert (await client.call("SendMessage", {}))["error"]["code"] == -32602
            assert (await client.call("ListTasks", {}))["result"] == {
                "tasks": [],
                "nextPageToken": "",
                "pageSize": 50,
                "totalSize": 0,
            }

    run(main())


def test_an_idle_task_costs_no_actor_and_no_memory_of_the_server(run, tmp_path):
    async def main():
        async with SQLiteStore(tmp_path / "t.db") as store:
            app = a2a_app(scripted(asks), store=store)
            async with serving(app) as url, ByHand(url) as client:
                await client.send()
                service = await app.service()
                before = len(gc.get_objects())
                for _ in range(20):
                    await client.send()
                gc.collect()
                assert service.at_work == 0
                assert len(gc.get_objects()) - before < 20 * 20

    run(main())


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_sdks_client_sends_streams_gets_lists_and_cancels(run, binding):
    async def main():
        async with talking(a2a_app(scripted(asks)), bindings=(binding,)) as (client, _):
            events = await all_of(client.send_message(sdk_message()))
            task_id = events[0].task.id
            assert events[-1].status_update.status.state == pb.TASK_STATE_INPUT_REQUIRED
            assert (await client.get_task(pb.GetTaskRequest(id=task_id))).id == task_id
            assert [task.id for task in (await client.list_tasks(pb.ListTasksRequest())).tasks] == [
                task_id
            ]
            assert (
                await client.cancel_task(pb.CancelTaskRequest(id=task_id))
            ).status.state == pb.TASK_STATE_CANCELED

    run(main())


def test_cancelling_stops_the_agent_and_is_answered_in_time(run):
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        yield

    async def main():
        async with serving(a2a_app(scripted(play))) as url, ByHand(url) as client:
            task = await client.send(configuration={"returnImmediately": True})
            await begun.wait()
            before = time.monotonic()
            answer = await client.call("CancelTask", {"id": task["id"]})
            assert state_of(answer["result"]) == "CANCELED"
            assert stopped.is_set()
            assert time.monotonic() - before < 8
            assert (await client.call("CancelTask", {"id": task["id"]}))["error"]["code"] == -32002

    run(main())


def test_a_client_that_goes_away_leaves_its_task_at_work(run):
    gate, begun = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        yield "begun"
        begun.set()
        await gate.wait()
        yield "and done"

    async def main():
        app = a2a_app(scripted(play))
        async with serving(app) as url, ByHand(url) as client:
            params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}
            async with client.streaming("SendStreamingMessage", params) as events:
                task_id = (await anext(events))["task"]["id"]
            await begun.wait()
            async with client.streaming("SubscribeToTask", {"id": task_id}) as events:
                first = await anext(events)
                assert (state_of(first), text_of(first["task"])) == ("WORKING", "begun")
                gate.set()
                assert [kind_of(event) async for event in events] == ["artifact", "COMPLETED"]
            assert text_of(await client.get(task_id)) == "begunand done"
            again = await client.call("SubscribeToTask", {"id": task_id})
            assert again["error"]["code"] == -32004

    run(main())
