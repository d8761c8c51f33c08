"""Long texts that are streamed: memory in proportion to the text, readers that are slow or gone."""

import json
import subprocess
import sys

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InternalError

from offbook.runtime.a2a.server.event_stream import _Written
from offbook.runtime.a2a.tasks.keys import ANONYMOUS, TaskKeys
from offbook.runtime.a2a.tasks.subscription import Subscription, joined
from offbook.runtime.a2a.tasks.task_log import StoredTask, TaskLog, read_task

PROGRAM = """
import asyncio, json, resource, sys
from offbook.actors import ChatModelAgent
from offbook.runtime import Message, MessageDelta
from offbook.runtime.a2a import a2a_app

tasks, size, piece = (int(one) for one in sys.argv[1:])

class Talks:
    async def generate(self, request):
        raise NotImplementedError

    async def stream(self, request):
        for _ in range(size // piece):
            yield MessageDelta("x" * piece)
            await asyncio.sleep(0)
        yield Message.assistant("x" * size)

async def main():
    app = a2a_app(ChatModelAgent(name="talks", description="d", model=Talks()))
    async with app.lifespan():
        async def call(method, keep, **params):
            # The answer's beginning: a client that kept a stream would take more than the server.
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
            asked, kept = [{"type": "http.request", "body": body, "more_body": False}], bytearray()

            async def receive():
                return asked.pop() if asked else await asyncio.Event().wait()

            async def send(message):
                if message["type"] == "http.response.body" and len(kept) < keep:
                    kept.extend(message["body"])

            headers = [(b"host", b"test"), (b"content-type", b"application/json"), (b"a2a-version", b"1.0")]
            scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/a2a", "raw_path": b"/a2a", "query_string": b"", "root_path": "", "headers": headers, "client": ("127.0.0.1", 1), "server": ("test", 80)}
            await app(scope, receive, send)
            return kept.decode()

        async def send(number):
            message = {"messageId": str(number), "role": "ROLE_USER", "parts": [{"text": "talk"}]}
            answer = await call("SendStreamingMessage", 1, message=message)
            first = json.loads(answer.partition("data: ")[2].partition(chr(13))[0])
            task = json.loads(await call("GetTask", 10 * size, id=first["result"]["task"]["id"]))["result"]
            return len(task["artifacts"][0]["parts"][0]["text"])

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lengths = await asyncio.gather(*(send(number) for number in range(tasks)))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(min(lengths), (after - before) // 1024)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "size", "piece", "most"),
    [(1, 10_000_000, 1_000, 250), (50, 18_000, 3, 90)],
    ids=["10 MB", "50 tasks"],
)
def test_the_memory_for_a_streamed_text_is_in_proportion_to_it(tasks, size, piece, most):
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, (tasks, size, piece))],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout.split()
    length, mebibytes = map(int, said)
    assert length == size
    assert mebibytes < most


def log():
    return TaskLog(TaskKeys("a"), pb.Task(id="t", context_id="c"), StoredTask(ANONYMOUS))


def piece(text, artifact_id="a", **parts):
    return pb.Artifact(artifact_id=artifact_id, parts=parts.get("parts", [pb.Part(text=text)]))


def test_pieces_are_one_text_wherever_the_task_is_read():
    one = log()
    one.submitted(1)
    for number, text in enumerate(("a", "b", "c")):
        one.artifact(piece(text), append=number > 0, last=False, joins=True)
        assert (
            "".join(part.text for part in one.snapshot().artifacts[0].parts) == "abc"[: number + 1]
        )
        assert read_task(TaskKeys("a"), one._packed()).task == one.snapshot()
    one.artifact(piece("", parts=[pb.Part(url="https://x")]), append=True, last=False, joins=True)
    one.artifact(piece("d"), append=True, last=False, joins=True)
    one.artifact(piece("e"), append=True, last=True, joins=True)
    assert [part.text or part.url for part in one.task.artifacts[0].parts] == [
        "abc",
        "https://x",
        "de",
    ]
    one.artifact(piece("z"), append=False, last=False)
    one.artifact(piece("y"), append=True, last=False, joins=True)
    one.status(pb.TASK_STATE_COMPLETED, 2)
    assert one.task == one.snapshot()
    assert [part.text for part in one.task.artifacts[0].parts] == ["zy"]


def test_pieces_that_wait_to_be_read_are_joined_to_the_same_text():
    def update(text, artifact_id="a", append=True, last=False):
        return pb.TaskArtifactUpdateEvent(
            task_id="t", artifact=piece(text, artifact_id), append=append, last_chunk=last
        )

    status = pb.TaskStatusUpdateEvent(
        task_id="t", status=pb.TaskStatus(state=pb.TASK_STATE_WORKING)
    )
    shown = [
        update("1", append=False),
        update("2"),
        update("3"),
        update("x", "b", append=False),
        update("4"),
        update("5", last=True),
        status,
        status,
    ]
    found = list(joined(shown))
    assert [
        (one.artifact.artifact_id, one.artifact.parts[0].text, one.append, one.last_chunk)
        for one in found[:-1]
    ] == [
        ("a", "123", False, False),
        ("b", "x", False, False),
        ("a", "45", True, True),
    ]
    assert found[-1] == status


def test_a_stream_that_is_ended_while_its_client_reads_tells_why(run):
    async def main():
        shows = Subscription()
        written = _Written(
            shows, lambda shown: shown.id, lambda error: json.dumps({"error": str(error)})
        ).rest()
        shows.put(pb.Task(id="t"))
        assert await anext(written) == b"data: t\r\n\r\n"
        shows.end(InternalError("too slow"))  # while the client reads
        assert [chunk async for chunk in written] == [
            b'event: error\r\ndata: {"error": "too slow"}\r\n\r\n'
        ]

    run(main())
