"""Clients of version 0.3 on the same address: the SDK's own, and by hand; and gRPC beside it."""

import contextlib
import itertools
import socket

import grpc
import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc as grpc_service

from offbook.runtime import UsageError
from offbook.runtime.a2a import BearerTokens, a2a_app
from tests.doubles.a2a import ByHand, scripted, sdk_client, sdk_message, serving

numbers = itertools.count()


async def asks(input, context):
    if context.resume is not None and context.resume.was_interrupted:
        yield f"answered {context.resume.data}"
    elif input.messages[-1].text == "ask":
        yield context.interrupt("?")
    else:
        yield "said"


def former(method, params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def former_message(text="x", **fields):
    return {
        "kind": "message",
        "messageId": f"m{next(numbers)}",
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
        **fields,
    }


def test_a_former_client_by_hand_sends_gets_cancels_and_streams(run):
    async def main():
        async with (
            serving(a2a_app(scripted(asks))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):

            async def call(method, **params):
                return (await http.post("/a2a", json=former(method, params))).json()

            task = (await call("message/send", message=former_message()))["result"]
            assert (task["kind"], task["status"]["state"]) == ("task", "completed")
            assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "said"}]
            assert (await call("tasks/get", id=task["id"]))["result"]["id"] == task["id"]
            waiting = (await call("message/send", message=former_message("ask")))["result"]
            assert waiting["status"]["state"] == "input-required"
            done = (
                await call(
                    "message/send",
                    message=former_message(
                        "yes", taskId=waiting["id"], contextId=waiting["contextId"]
                    ),
                )
            )["result"]
            assert done["status"]["state"] == "completed"
            other = (await call("message/send", message=former_message("ask")))["result"]
            assert (await call("tasks/cancel", id=other["id"]))["result"]["status"][
                "state"
            ] == "canceled"
            assert (await call("tasks/get", id="none"))["error"]["code"] == -32001
            async with http.stream(
                "POST", "/a2a", json=former("message/stream", {"message": former_message()})
            ) as response:
                text = "".join([chunk async for chunk in response.aiter_text()])
            assert [
                text.count(f'"kind": "{kind}"') > 0 or text.count(f'"kind":"{kind}"') > 0
                for kind in ("task", "status-update", "artifact-update")
            ] == [True] * 3
            rest = (
                await http.post(
                    "/a2a/v1/message:send",
                    json={
                        "message": {
                            "messageId": "m",
                            "role": "ROLE_USER",
                            "content": [{"text": "x"}],
                        }
                    },
                )
            ).json()
            assert rest["task"]["status"]["state"] == "TASK_STATE_COMPLETED"

    run(main())


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_sdks_client_of_version_0_3(run, binding):
    async def main():
        async with (
            serving(a2a_app(scripted(asks))) as url,
            httpx.AsyncClient(trust_env=False) as http,
        ):
            client = sdk_client(url, http, bindings=(binding,), version="0.3")
            events = [event async for event in client.send_message(sdk_message())]
            assert events[0].WhichOneof("payload") == "task"
            assert events[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
            assert (await client.get_task(pb.GetTaskRequest(id=events[0].task.id))).id == events[
                0
            ].task.id

    run(main())


@pytest.mark.parametrize("path", ["/.well-known/agent.json", "/a2a/.well-known/agent.json"])
def test_the_card_for_former_clients_has_what_they_need(run, path):
    async def main():
        async with (
            serving(a2a_app(scripted(asks))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            card = (await http.get(path)).json()
            assert card["url"] == f"{url}/a2a"
            assert card["protocolVersion"].startswith("0.3")
            assert card["preferredTransport"] == "JSONRPC"
            asked = (
                await http.get("/.well-known/agent-card.json", headers={"A2A-Version": "0.3"})
            ).json()
            assert asked["url"] == card["url"]
            strict = await http.get("/.well-known/agent-card.json")
            assert "url" not in strict.json()
            assert {one["protocolVersion"] for one in strict.json()["supportedInterfaces"]} == {
                "1.0"
            }
            again = await http.get(
                "/.well-known/agent-card.json", headers={"If-None-Match": strict.headers["etag"]}
            )
            assert again.status_code == 304

    run(main())


def test_grpc_begins_and_ends_with_the_app_and_is_in_the_card(run):
    async def main():
        app = a2a_app(scripted(asks), grpc="127.0.0.1:0")
        async with serving(app) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
            card = (await http.get("/.well-known/agent-card.json")).json()
            address = next(
                one["url"]
                for one in card["supportedInterfaces"]
                if one["protocolBinding"] == "GRPC"
            )
            wire = pb.AgentCard(
                name="x",
                description="d",
                version="1",
                capabilities=pb.AgentCapabilities(streaming=True),
            )
            wire.supported_interfaces.add(
                url=address, protocol_binding="GRPC", protocol_version="1.0"
            )
            config = ClientConfig(
                supported_protocol_bindings=["GRPC"], grpc_channel_factory=grpc.aio.insecure_channel
            )
            client = ClientFactory(config).create(wire)
            events = [event async for event in client.send_message(sdk_message())]
            assert events[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
            async with ByHand(url) as hand:
                assert (await hand.get(events[0].task.id))["id"] == events[0].task.id
            await client.close()
        async with grpc.aio.insecure_channel(address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await grpc_service.A2AServiceStub(channel).GetTask(
                    pb.GetTaskRequest(id="x"), timeout=5
                )
            assert raised.value.code() in (
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            )

    run(main())


def test_grpc_lets_in_only_who_is_known_and_refuses_what_the_others_refuse(run):
    async def main():
        app = a2a_app(
            scripted(asks),
            grpc="127.0.0.1:0",
            auth=BearerTokens({"t": "alice", "u": "bob"}),
            max_body=10_000,
        )
        async with serving(app) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
            card = (await http.get("/.well-known/agent-card.json")).json()
            address = next(
                one["url"]
                for one in card["supportedInterfaces"]
                if one["protocolBinding"] == "GRPC"
            )
            async with grpc.aio.insecure_channel(address) as channel:
                stub = grpc_service.A2AServiceStub(channel)

                async def code_of(call):
                    try:
                        await call
                    except grpc.aio.AioRpcError as error:
                        return error.code().name
                    return "OK"

                alice, bob = ((("authorization", f"Bearer {token}"),) for token in "tu")
                assert await code_of(stub.SendMessage(sdk_message())) == "UNAUTHENTICATED"
                assert (
                    await code_of(
                        stub.SendMessage(sdk_message(), metadata=(("authorization", "Bearer x"),))
                    )
                    == "UNAUTHENTICATED"
                )
                stream = stub.SendStreamingMessage(sdk_message())
                assert await code_of(stream.read()) == "UNAUTHENTICATED"
                task = (await stub.SendMessage(sdk_message("ask"), metadata=alice)).task
                assert (
                    await code_of(stub.GetTask(pb.GetTaskRequest(id=task.id), metadata=bob))
                    == "NOT_FOUND"
                )
                assert (
                    await code_of(stub.GetTask(pb.GetTaskRequest(id=task.id), metadata=alice))
                    == "OK"
                )
                assert (
                    await code_of(
                        stub.SendMessage(sdk_message(), metadata=(*alice, ("a2a-version", "99.0")))
                    )
                    == "UNIMPLEMENTED"
                )
                assert (
                    await code_of(stub.SendMessage(sdk_message("x" * 20_000), metadata=alice))
                    == "RESOURCE_EXHAUSTED"
                )
                request = sdk_message()
                request.message.parts.add().data.number_value = float("nan")
                assert (
                    await code_of(stub.SendMessage(request, metadata=alice)) == "INVALID_ARGUMENT"
                )

    run(main())


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("0.0.0.0:50051", "needs auth="),
        ("[::]:50051", "needs auth="),
        ("127.0.0.1", "host and a port"),
        ("x:y", "host and a port"),
    ],
)
def test_a_grpc_address_that_everybody_reaches_needs_authentication(address, why):
    with pytest.raises(UsageError, match=why):
        a2a_app(scripted(asks), grpc=address)
    if why == "needs auth=":
        a2a_app(scripted(asks), grpc=address, allow_anonymous=True)
        a2a_app(scripted(asks), grpc=address, auth=BearerTokens({"t": "s"}))


def test_a_grpc_address_in_use_is_said_to_be(run):
    async def main():
        with contextlib.closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            app = a2a_app(scripted(asks), grpc=f"127.0.0.1:{taken.getsockname()[1]}")
            with pytest.raises(UsageError, match="in use"):
                async with app.lifespan():
                    pass

    run(main())
