"""Cancelling a run cancels the task that it has begun, in a bounded time; a run that another
process continues leaves its task alone.
"""

import asyncio
import threading
import time

import pytest

from offbook.actors import ChatModelAgent, Loop, RemoteAgent, Sequential
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    SQLiteStore,
    ToolCalls,
)
from offbook.runtime.a2a import ClientLimits
from tests.doubles.a2a_servers import RawServer, SdkServer, json_card, send_json, text


class Works:
    """An agent of others that says that it works, and then waits for its gate."""

    def __init__(self):
        self.begun = threading.Event()
        self.gate = asyncio.Event()
        self.tasks = []

    async def __call__(self, job):
        updater = await job.begin()
        self.tasks.append(job.context.task_id)
        await updater.start_work(updater.new_agent_message([text("at work")]))
        self.begun.set()
        await self.gate.wait()
        await updater.add_artifact([text("done")], artifact_id="out", last_chunk=True)
        await updater.complete()


async def until(event):
    while not event.is_set():
        await asyncio.sleep(0.002)


@pytest.fixture(params=[True, False], ids=["streams", "polled"])
def streaming(request):
    return request.param


def remote(server, **options):
    return RemoteAgent(server.url, **{"name": "Remote", **options})


def test_cancelling_the_run_cancels_the_task(run, streaming):
    agent = Works()

    async def main(server):
        one = Runner(remote(server)).query("go")
        await until(agent.begun)
        one.cancel()
        result = await one
        assert result.status is RunStatus.CANCELLED
        assert server.canceled == agent.tasks
        assert len(agent.tasks) == 1

    with SdkServer(agent, streaming=streaming) as server:
        run(main(server))


def test_a_consumer_that_goes_away_cancels_the_task(run):
    agent = Works()

    async def main(server):
        one = Runner(remote(server)).query("go")
        async for _ in one:
            break
        assert (await one).status is RunStatus.CANCELLED
        assert server.canceled == agent.tasks != []

    with SdkServer(agent) as server:
        run(main(server))


def test_a_timeout_cancels_the_task(run):
    agent = Works()

    async def main(server):
        result = await Runner(remote(server)).query("go", timeout=0.5)
        assert result.status is RunStatus.CANCELLED
        assert server.canceled == agent.tasks != []

    with SdkServer(agent) as server:
        run(main(server))


def test_it_is_cancelled_inside_of_a_tool_and_a_workflow(run):
    agent = Works()

    async def main(server):
        model = ScriptedModel([ToolCalls(("Remote", {"request": "x"})), Message.assistant("never")])
        tooled = ChatModelAgent(name="Outer", model=model, tools=[remote(server).as_tool()])
        one = Runner(
            Sequential(name="S", sub_agents=[Loop(name="L", sub_agents=[tooled], max_iterations=1)])
        ).query("go")
        await until(agent.begun)
        one.cancel()
        assert (await one).status is RunStatus.CANCELLED
        assert server.canceled == agent.tasks != []

    with SdkServer(agent) as server:
        run(main(server))


def test_a_run_that_was_cancelled_and_is_resumed_begins_another_task(run, streaming):
    agent = Works()

    async def main(server):
        runner = Runner(remote(server), store=MemoryStore())
        one = runner.query("go", checkpoint_id="c")
        await until(agent.begun)
        one.cancel()
        await one
        server.do(agent.gate.set)
        assert (await runner.resume("c")).text == "done"
        assert len(set(agent.tasks)) == 2

    with SdkServer(agent, streaming=streaming) as server:
        run(main(server))


def test_a_drained_run_leaves_its_task_alone_and_is_continued_with_it(run, tmp_path, streaming):
    agent = Works()

    async def main(server):
        async with ActorSystem() as system:
            one = Runner(
                remote(server),
                system=system,
                store=SQLiteStore(tmp_path / "s.db"),
                durability="step",
            ).query("go", run_id="r")
            await until(agent.begun)
            while server.requests[-1][0] == "/.well-known/agent-card.json":
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.3)  # its first event has arrived
            await system.drain(0.2)
            assert (await one).status is RunStatus.DRAINED
        assert server.canceled == []
        server.do(agent.gate.set)
        (found,) = await Runner(
            remote(server), store=SQLiteStore(tmp_path / "s.db"), durability="step"
        ).recover()
        assert (await found).text == "done"
        assert len(set(agent.tasks)) == 1

    with SdkServer(agent, streaming=streaming) as server:
        run(main(server))


def test_a_system_that_is_left_leaves_the_task_of_a_kept_run_alone(run, tmp_path):
    agent = Works()

    async def main(server):
        async with ActorSystem() as system:
            Runner(
                remote(server),
                system=system,
                store=SQLiteStore(tmp_path / "s.db"),
                durability="step",
            ).query("go", run_id="r")
            await until(agent.begun)
            await asyncio.sleep(0.2)
        assert server.canceled == []

    with SdkServer(agent) as server:
        run(main(server))


def test_a_server_that_does_not_answer_the_cancel_is_not_waited_for_long(run):
    async def answer(path, body, writer):
        if path.endswith("agent-card.json"):
            return await send_json(writer, json_card(writer))
        if b"CancelTask" in body:
            await asyncio.Event().wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(
            b"data: "
            b'{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}\n\n'
        )
        await writer.drain()
        begun.set()
        await asyncio.Event().wait()

    begun = asyncio.Event()

    async def main():
        async with RawServer(answer) as server:
            agent = remote(server, limits=ClientLimits(cancel=0.3))
            one = Runner(agent).query("go")
            await begun.wait()
            started = time.monotonic()
            one.cancel()
            assert (await one).status is RunStatus.CANCELLED
            assert time.monotonic() - started < 5
            assert server.paths.count("/a2a") == 2
            await agent.aclose()

    run(main())


def test_a_task_that_has_just_begun_is_canceled_once_its_id_is_known(run):
    """The run is cancelled between its message and the first answer."""
    asked, gate = asyncio.Event(), asyncio.Event()
    canceled = []

    async def answer(path, body, writer):
        if path.endswith("agent-card.json"):
            return await send_json(writer, json_card(writer))
        if b"CancelTask" in body:
            canceled.append(body)
            return await send_json(
                writer,
                {
                    "jsonrpc": "2.0",
                    "id": "1",
                    "result": {"id": "late", "status": {"state": "TASK_STATE_CANCELED"}},
                },
            )
        asked.set()
        await gate.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(
            b"data: "
            b'{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"late","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}\n\n'
        )
        await writer.drain()
        await asyncio.Event().wait()

    async def main():
        async with RawServer(answer) as server:
            agent = remote(server)
            one = Runner(agent).query("go")
            await asked.wait()
            one.cancel()
            asyncio.get_running_loop().call_later(0.2, gate.set)
            await one
            assert len(canceled) == 1
            assert b'"late"' in canceled[0]
            await agent.aclose()

    run(main())
