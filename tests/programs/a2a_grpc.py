"""Asks an agent that was made with the official SDK over gRPC.

Prints what came, a line for each step. Server and client share a loop, as grpcio wants it.
"""

import asyncio
import sys
from pathlib import Path

import grpc
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.types import a2a_pb2_grpc

sys.path.insert(0, str(Path(__file__).parents[2]))

from offbook.actors import RemoteAgent
from offbook.runtime import MemoryStore, Runner
from offbook.runtime.a2a import A2AClient, A2AConnectionError, A2AError
from tests.doubles.a2a_servers import SdkServer, text


async def works(job):
    if job.said == "plain":
        return await job.reply("no task")
    updater = await job.begin()
    if job.said == "ask":
        return await updater.requires_input(updater.new_agent_message([text("which?")]))
    if job.said == "wait":
        await updater.start_work()
        await asyncio.Event().wait()
    if job.said == "large":
        await updater.add_artifact([text("x" * 20_000_000)], artifact_id="large", last_chunk=True)
    await updater.add_artifact([text("done: " + job.said)], artifact_id="a", last_chunk=True)
    await updater.complete()


async def main():
    made = SdkServer(works, transports=("GRPC",))  # not started: only its handler is used
    url = made.card.supported_interfaces[0].url
    server = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(made.handler), server)
    server.add_insecure_port(url)
    await server.start()
    from offbook.runtime.a2a.conversion import card_from_wire

    card = card_from_wire(made.card)
    async with A2AClient(card) as client:
        print("send", (await client.send("go")).artifacts[0].text)
        print(
            "plain",
            (await client.send("plain")).text,
            [event.text async for event in client.stream("plain")],
        )
        print("stream", [type(event).__name__ async for event in client.stream("go")])
        async for event in client.stream("wait"):
            task_id = event.id
            break
        print("cancel", (await client.cancel(task_id)).status.state)
        for what in (client.get("no-such-task"), client.send("large")):
            try:
                await what
            except A2AError as error:
                print("refused", type(error).__name__, getattr(error, "reason", ""))
    remote = RemoteAgent(card, name="Remote")
    runner = Runner(remote, store=MemoryStore())
    print("waits", (await runner.query("ask", checkpoint_id="c")).interrupts[0].info)
    print("resumed", (await runner.resume("c", data="this one")).text)
    await remote.aclose()
    await server.stop(0)
    async with A2AClient(card) as client:
        try:
            await client.send("go")
        except A2AConnectionError as error:
            print("gone", "\n" not in str(error))


asyncio.run(main())
