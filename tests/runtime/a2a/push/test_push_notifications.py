"""Push notifications over real HTTP: what is sent, in which order, again after failures and after a
restart; what is kept and shown of a configuration.
"""

import asyncio
import logging

import pytest

from offbook.runtime import MemoryStore, SQLiteStore
from offbook.runtime.a2a import AgentCardSettings, Status, WebhookPolicy, a2a_app
from tests.doubles.a2a import ByHand, kind_of, message, scripted, serving, state_of
from tests.doubles.webhooks import Webhook

SECRET = "swordfish-0123456789-abcd"


def policy(**options):
    return WebhookPolicy(
        allow_http=True,
        allow_private=True,
        secret_key="kept",
        **{"first_delay": 0.01, "longest_delay": 0.05, **options},
    )


async def asks(input, context):
    if context.resume is not None and context.resume.was_interrupted:
        yield "done"
    else:
        yield context.interrupt("?")


async def config_of(client, task, url, **fields):
    return await client.call(
        "CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": url, **fields}
    )


def test_a_webhook_gets_each_change_in_order_with_its_secrets(run):
    async def play(input, context):
        for number in range(5):
            yield Status(str(number))
        yield "said"

    async def main():
        async with (
            Webhook() as hook,
            serving(a2a_app(scripted(play), webhooks=policy())) as url,
            ByHand(url) as client,
        ):
            config = {
                "url": hook.url,
                "token": SECRET,
                "authentication": {"scheme": "Bearer", "credentials": SECRET[::-1]},
            }
            task = await client.send(configuration={"taskPushNotificationConfig": config})
            await hook.until(9)
            assert [kind_of(call) for call in hook.calls] == [
                "SUBMITTED",
                *["WORKING"] * 6,
                "artifact",
                "COMPLETED",
            ]
            assert {headers["x-a2a-notification-token"] for headers in hook.headers} == {SECRET}
            assert {headers["authorization"] for headers in hook.headers} == {
                f"Bearer {SECRET[::-1]}"
            }
            assert hook.headers[0]["content-type"] == "application/a2a+json"
            assert {
                (call.get("statusUpdate") or call["artifactUpdate"])["taskId"]
                for call in hook.calls
            } == {task["id"]}

    run(main())


def test_a_webhook_that_fails_is_called_again_and_nothing_overtakes(run):
    async def main():
        async with (
            Webhook(answers=[500, 503, 429, 200, 500]) as hook,
            serving(a2a_app(scripted(asks), webhooks=policy())) as url,
            ByHand(url) as client,
        ):
            await client.send(configuration={"taskPushNotificationConfig": {"url": hook.url}})
            await hook.until(7)
            assert [kind_of(call) for call in hook.calls] == ["SUBMITTED"] * 4 + ["WORKING"] * 2 + [
                "INPUT_REQUIRED"
            ]

    run(main())


def test_a_webhook_that_never_works_is_given_up_and_does_not_hold_up_another(run, caplog):
    async def main():
        async with Webhook(answers=[500] * 100) as bad, Webhook() as good:
            app = a2a_app(scripted(asks), webhooks=policy(attempts=3))
            async with serving(app) as url, ByHand(url) as client:
                task = await client.send()
                await config_of(client, task, bad.url, id="bad", token=SECRET)
                await config_of(client, task, good.url, id="good")
                await client.send("x", taskId=task["id"])
                await good.until(3)
                assert [kind_of(call) for call in good.calls] == [
                    "WORKING",
                    "artifact",
                    "COMPLETED",
                ]
                await bad.until(3)
                while "is not called again" not in caplog.text:
                    await asyncio.sleep(0.01)
                assert [kind_of(call) for call in bad.calls[:3]] == ["WORKING"] * 3

    with caplog.at_level(logging.DEBUG, logger="offbook"):
        run(main())
    assert SECRET not in caplog.text


def test_configurations_are_created_read_listed_and_deleted(run):
    async def main():
        async with (
            Webhook() as hook,
            serving(a2a_app(scripted(asks), webhooks=policy(most_for_a_task=3))) as url,
            ByHand(url) as client,
        ):
            task = await client.send()
            made = (
                await config_of(
                    client,
                    task,
                    hook.url,
                    id="b",
                    token=SECRET,
                    authentication={"scheme": "Bearer", "credentials": SECRET},
                )
            )["result"]
            assert made["id"] == "b"
            assert SECRET not in str(made)
            assert made["token"].startswith("***")
            named = (await config_of(client, task, hook.url))["result"]["id"]
            assert named
            params = {"taskId": task["id"]}
            assert (await client.call("GetTaskPushNotificationConfig", {**params, "id": "b"}))[
                "result"
            ] == made
            listed = (await client.call("ListTaskPushNotificationConfigs", params))["result"][
                "configs"
            ]
            assert {one["id"] for one in listed} == {"b", named}
            assert SECRET not in str(listed)
            await config_of(client, task, hook.url, id="b")  # again: in place of the first
            await config_of(client, task, hook.url, id="c")
            assert (await config_of(client, task, hook.url, id="d"))["error"]["code"] == -32602
            page = (
                await client.call("ListTaskPushNotificationConfigs", {**params, "pageSize": 2})
            )["result"]
            assert len(page["configs"]) == 2
            rest = (
                await client.call(
                    "ListTaskPushNotificationConfigs",
                    {**params, "pageSize": 2, "pageToken": page["nextPageToken"]},
                )
            )["result"]
            assert len(rest["configs"]) == 1
            for _ in range(2):
                assert "error" not in await client.call(
                    "DeleteTaskPushNotificationConfig", {**params, "id": "b"}
                )
            assert (await client.call("GetTaskPushNotificationConfig", {**params, "id": "b"}))[
                "error"
            ]["code"] == -32001

    run(main())


def test_a_deleted_configuration_is_not_called_any_more(run):
    async def main():
        async with (
            Webhook() as hook,
            serving(a2a_app(scripted(asks), webhooks=policy())) as url,
            ByHand(url) as client,
        ):
            task = await client.send()
            await config_of(client, task, hook.url, id="c")
            await client.call("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "c"})
            done = await client.send("x", taskId=task["id"])
            assert state_of(done) == "COMPLETED"
            assert hook.calls == []

    run(main())


def test_secrets_are_not_in_the_store_as_they_are(run, tmp_path):
    async def main():
        async with Webhook() as hook, SQLiteStore(tmp_path / "tasks.db") as store:
            async with (
                serving(a2a_app(scripted(asks), store=store, webhooks=policy())) as url,
                ByHand(url) as client,
            ):
                task = await client.send()
                await config_of(
                    client,
                    task,
                    hook.url,
                    token=SECRET,
                    authentication={"scheme": "Bearer", "credentials": SECRET},
                )
                for key in await store.keys():
                    assert SECRET.encode() not in (await store.get(key) or b"")
        assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())

    run(main())


def test_what_was_not_sent_is_sent_by_the_next_process(run, tmp_path):
    held = asyncio.Event()

    async def main():
        async with Webhook(hold=held) as hook:
            for process in range(2):
                async with SQLiteStore(tmp_path / "tasks.db") as store:
                    async with (
                        serving(a2a_app(scripted(asks), store=store, webhooks=policy())) as url,
                        ByHand(url) as client,
                    ):
                        if not process:
                            task = await client.send()
                            await config_of(client, task, hook.url, token=SECRET)
                            await client.send("x", taskId=task["id"])
                            await hook.until(1)  # it has been called, and has not answered
                        else:
                            await hook.until(4)
                held.set()
            assert [kind_of(call) for call in hook.calls] == [
                "WORKING",
                "WORKING",
                "artifact",
                "COMPLETED",
            ]
            assert {headers["x-a2a-notification-token"] for headers in hook.headers} == {SECRET}

    run(main())


def test_a_server_without_push_notifications_says_so(run):
    async def main():
        app = a2a_app(scripted(asks), card=AgentCardSettings(push_notifications=False))
        async with serving(app) as url, ByHand(url) as client:
            card = (await client.http.get("/.well-known/agent-card.json")).json()
            assert not card["capabilities"].get("pushNotifications")
            task = await client.send()
            for method, params in (
                (
                    "CreateTaskPushNotificationConfig",
                    {"taskId": task["id"], "url": "https://x.example"},
                ),
                ("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "x"}),
                ("ListTaskPushNotificationConfigs", {"taskId": task["id"]}),
                ("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "x"}),
                (
                    "SendMessage",
                    {
                        "message": message(),
                        "configuration": {
                            "taskPushNotificationConfig": {"url": "https://x.example"}
                        },
                    },
                ),
            ):
                assert (await client.call(method, params))["error"]["code"] == -32003, method

    run(main())


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "a\r\nX: y"},
        {"token": "x" * 10_000},
        {"id": "x" * 300},
        {"authentication": {"scheme": "Bearer", "credentials": "ü"}},
    ],
)
def test_secrets_that_no_header_can_hold_are_refused(run, fields):
    async def main():
        async with (
            serving(a2a_app(scripted(asks), store=MemoryStore(), webhooks=policy())) as url,
            ByHand(url) as client,
        ):
            task = await client.send()
            assert (await config_of(client, task, "http://127.0.0.1:9/x", **fields))["error"][
                "code"
            ] == -32602

    run(main())
