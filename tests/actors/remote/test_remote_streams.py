"""Streams that break off, servers that are restarted, processes that are killed: the same task is
taken up, and nothing is shown twice or lost.
"""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from offbook.actors import RemoteAgent
from offbook.runtime import MemoryStore, Runner, SQLiteStore
from offbook.runtime.a2a import A2AConnectionError, A2AProtocolError, ClientLimits
from tests.doubles.a2a_servers import RawServer, SdkServer, json_card, send_json, text

PROGRAM = Path(__file__).parents[2] / "programs" / "a2a_killed.py"


class Steps:
    """An agent of others that makes an artifact each time that its gate is opened, and ends with
    the third.
    """

    def __init__(self):
        self.tasks = []
        self.messages = []
        self.made = 0
        self.steps = asyncio.Semaphore(0)
        self.waits = threading.Event()

    async def __call__(self, job):
        updater = await job.begin()
        self.tasks.append(job.context.task_id)
        self.messages.append(job.message.message_id)
        await updater.start_work()
        for index in range(3):
            self.waits.set()
            await self.steps.acquire()
            await updater.add_artifact(
                [text(f"step {index} ")], artifact_id=f"a{index}", append=False, last_chunk=False
            )
            await updater.add_artifact(
                [text("done")], artifact_id=f"a{index}", append=True, last_chunk=True
            )
            self.made += 1
        await updater.complete()


STEPS = ["step 0 done", "step 1 done", "step 2 done"]


def remote(server, **options):
    return RemoteAgent(server.url, **{"name": "Remote", **options})


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "whole"])
def test_a_stream_that_is_cut_is_taken_up_again(run, streaming):
    agent = Steps()

    async def main(server):
        shown, pieces = [], []
        async for event in Runner(remote(server)).query("go", streaming=streaming):
            if event.delta is not None:
                assert event.error is None
                pieces.append(event.delta.content)
            if event.message is not None:
                shown.append(event.text)
                server.cut()
                server.do(agent.steps.release)
                server.do(agent.steps.release)
        assert shown == STEPS
        assert "".join(pieces) == ("".join(STEPS) if streaming else "")
        assert len(set(agent.tasks)) == 1
        assert server.canceled == []

    with SdkServer(agent) as server:
        server.do(agent.steps.release)
        run(main(server))


def test_a_stream_that_ends_before_its_first_event_is_a_lost_connection(run):
    sent = []

    async def answer(path, body, writer):
        if path.startswith("/.well-known"):
            await send_json(writer, json_card(writer))
            return
        said = json.loads(body)
        if said["method"] == "ListTasks":
            await send_json(
                writer,
                {
                    "jsonrpc": "2.0",
                    "id": said["id"],
                    "result": {"tasks": [], "totalSize": 0, "pageSize": 50, "nextPageToken": ""},
                },
            )
            return
        sent.append(said["params"]["message"]["messageId"])
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        await writer.drain()

    async def main():
        async with RawServer(answer) as server:
            result = await Runner(remote(server, limits=ClientLimits(attempts=3))).query("go")
            assert isinstance(result.error, A2AConnectionError)
            assert "before its first event" in str(result.error)
            assert len(sent) == 3, "as often as a server that cannot be reached"
            assert len(set(sent)) == 1

    run(main())


def test_a_stream_that_is_cut_in_the_middle_of_an_artifact_shows_the_rest(run):
    gate = asyncio.Event()

    async def play(job):
        updater = await job.begin()
        await updater.add_artifact([text("one ")], artifact_id="a", append=False, last_chunk=False)
        await gate.wait()
        await updater.add_artifact([text("two")], artifact_id="a", append=True, last_chunk=True)
        await updater.complete()

    async def main(server):
        pieces, shown = [], []
        async for event in Runner(remote(server)).query("go", streaming=True):
            if event.delta is not None:
                pieces.append(event.delta.content)
                if len(pieces) == 1:
                    server.cut()
                    server.do(gate.set)
            elif event.message is not None:
                shown.append(event.text)
        assert ("".join(pieces), shown) == ("one two", ["one two"])

    with SdkServer(play) as server:
        run(main(server))


def test_a_task_that_ended_while_the_stream_was_cut_is_looked_at(run):
    """It cannot be subscribed to any more: `GetTask` says how it has ended."""
    agent = Steps()

    async def main(server):
        one = Runner(remote(server)).query("go")
        await until(agent.waits.is_set)
        await until(lambda: len([path for path, _ in server.requests if path == "/a2a"]) == 1)
        for _ in range(3):
            server.do(agent.steps.release)
        server.cut()
        result = await one
        assert [event.text for event in result.events if event.message] == STEPS

    with SdkServer(agent) as server:
        run(main(server))


def test_a_server_that_is_restarted_with_its_store_is_asked_how_the_task_is(run):
    agent = Steps()
    with SdkServer(agent) as first:
        port, store = first.port, first.store

        async def main():
            one = Runner(remote(first)).query("go")
            await until(agent.waits.is_set)
            await until(lambda: bool(store))
            first.do(agent.steps.release)
            async for event in one:
                if event.message is not None:
                    # Its agent is lost, and its task stays as it is; what goes on after that is for
                    # somebody to end.
                    first.stop()
                    second = SdkServer(agent, port=port, store=store)
                    second.__enter__()
                    from offbook.runtime.a2a import A2AClient

                    async with A2AClient(second.url) as client:
                        await client.cancel(agent.tasks[0])
                    break_off.append(second)
            result = await one
            assert "was canceled" in str(result.error)

        break_off = []
        try:
            run(main())
        finally:
            for server in break_off:
                server.stop()


def test_a_process_that_is_killed_is_continued_with_the_task_that_it_had_begun(run, tmp_path):
    agent = Steps()
    with SdkServer(agent) as server:
        store = str(tmp_path / "s.db")
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), server.url, store, "r"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            server.do(agent.steps.release)
            assert process.stdout.readline() == "step 0 done\n"
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        for _ in range(2):
            server.do(agent.steps.release)

        async def main():
            (found,) = await Runner(
                remote(server), store=SQLiteStore(store), durability="step"
            ).recover()
            result = await found
            assert result.text == "step 2 done"
            assert [event.text for event in result.events if event.message] == STEPS[1:]

        run(main())
        assert len(set(agent.tasks)) == 1
        assert len(agent.messages) == 1
        assert server.canceled == []


def test_a_process_that_is_killed_before_the_first_answer_finds_its_task_by_the_message(
    run, tmp_path
):
    """The task has begun over there, and nothing of it has arrived here."""
    hold = threading.Event()
    agent = Steps()

    async def play(job):
        updater = await job.begin()
        agent.tasks.append(job.context.task_id)
        await updater.start_work()
        await updater.add_artifact([text("found")], artifact_id="a", last_chunk=True)
        await updater.complete()

    class Holding(SdkServer):
        """Takes a message, and holds all that is said about it, until the gate opens."""

        async def _serve(self, scope, receive, send):
            async def held(message):
                if scope["path"] == "/a2a" and not hold.is_set():
                    await asyncio.Event().wait()
                await send(message)

            await super()._serve(scope, receive, held)

    with Holding(play) as server:
        store = str(tmp_path / "s.db")
        process = subprocess.Popen([sys.executable, str(PROGRAM), server.url, store, "r"])
        try:
            deadline = threading.Event()
            while not agent.tasks:
                deadline.wait(0.01)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        hold.set()

        async def main():
            (found,) = await Runner(
                remote(server), store=SQLiteStore(store), durability="step"
            ).recover()
            assert (await found).text == "found"

        run(main())
        assert len(agent.tasks) == 1


def test_a_server_that_stays_away_is_an_error_after_some_attempts(run):
    agent = Steps()

    async def main(server):
        one = Runner(remote(server, limits=ClientLimits(attempts=2))).query("go")
        await until(agent.waits.is_set)
        await until(lambda: len(server.requests) > 1)
        server.stop()
        result = await one
        assert isinstance(result.error, A2AConnectionError)

    with SdkServer(agent) as server:
        run(main(server))


def test_a_stream_that_is_quiet_is_asked_about_and_goes_on(run):
    agent = Steps()

    async def main(server):
        one = Runner(remote(server, limits=ClientLimits(quiet=0.05))).query("go")
        # It was asked, and again.
        await until(lambda: len([path for path, _ in server.requests if path == "/a2a"]) >= 4)
        for _ in range(3):
            server.do(agent.steps.release)
        assert [event.text for event in (await one).events if event.message] == STEPS

    with SdkServer(agent) as server:
        run(main(server))


def raw_answers(answers):
    """A server that answers each method by a function of its own."""

    async def answer(path, body, writer):
        if path.endswith("agent-card.json"):
            return await send_json(writer, json_card(writer))
        method = next(name for name in answers if f'"{name}"'.encode() in body)
        await answers[method](writer)

    return answer


async def half_open(writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    writer.write(
        b"data: "
        b'{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}\n\n'
    )
    await writer.drain()
    await asyncio.Event().wait()


def test_a_task_that_ended_behind_a_half_open_connection_is_found_out(run):
    async def done(writer):
        task = {
            "id": "t",
            "contextId": "c",
            "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "made"}]}],
        }
        await send_json(writer, {"jsonrpc": "2.0", "id": "1", "result": task})

    async def main():
        async with RawServer(
            raw_answers({"SendStreamingMessage": half_open, "GetTask": done})
        ) as server:
            agent = remote(server, limits=ClientLimits(quiet=0.1))
            assert (await Runner(agent).query("go")).text == "made"
            await agent.aclose()

    run(main())


def test_a_server_that_takes_no_answer_is_not_asked_for_ever(run, monkeypatch):
    from offbook.actors.remote import task_stream

    monkeypatch.setattr(task_stream, "_LOOK", task_stream.Backoff(initial=0.001, maximum=0.002))
    asks = {
        "id": "t",
        "contextId": "c",
        "status": {
            "state": "TASK_STATE_INPUT_REQUIRED",
            "message": {"messageId": "q", "role": "ROLE_AGENT"},
        },
    }
    asks["status"]["message"]["parts"] = [{"text": "which?"}]

    async def ask(writer):
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        writer.write(
            b"data: "
            + json.dumps({"jsonrpc": "2.0", "id": "1", "result": {"task": asks}}).encode()
            + b"\n\n"
        )
        await writer.drain()

    async def get(writer):
        await send_json(writer, {"jsonrpc": "2.0", "id": "1", "result": asks})

    async def main():
        async with RawServer(
            raw_answers(
                {
                    "SendStreamingMessage": ask,
                    "SubscribeToTask": ask,
                    "GetTask": get,
                    "CancelTask": get,
                }
            )
        ) as server:
            agent = remote(server)
            runner = Runner(agent, store=MemoryStore())
            assert (await runner.query("go", checkpoint_id="c")).status == "interrupted"
            result = await runner.resume("c", data="this")
            assert isinstance(result.error, A2AProtocolError)
            assert "did not accept the answer" in str(result.error)
            await agent.aclose()

    run(main())


def test_a_context_that_is_not_known_over_there_is_begun_anew_with_all_that_was_said(run):
    bodies = []

    async def answer(path, body, writer):
        if path.endswith("agent-card.json"):
            return await send_json(writer, json_card(writer, capabilities={}))
        said = json.loads(body)["params"]["message"]
        bodies.append((said.get("contextId"), [part["text"] for part in said["parts"]]))
        if "contextId" in said:
            return await send_json(
                writer,
                {
                    "jsonrpc": "2.0",
                    "id": "1",
                    "error": {"code": -32602, "message": "no such context"},
                },
            )
        reply = {
            "messageId": f"m{len(bodies)}",
            "role": "ROLE_AGENT",
            "parts": [{"text": "hello"}],
            "contextId": "c",
        }
        await send_json(writer, {"jsonrpc": "2.0", "id": "1", "result": {"message": reply}})

    async def main():
        async with RawServer(answer) as server:
            agent = remote(server)
            session = Runner(agent, store=MemoryStore()).session("s")
            assert (await session.query("one")).text == "hello"
            assert (await session.query("two")).text == "hello"
            await agent.aclose()
        assert bodies == [
            (None, ["one"]),
            ("c", ["two"]),
            (None, ["one", "For context: Remote, you, said: hello", "two"]),
        ]

    run(main())
