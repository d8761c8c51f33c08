"""What a task of a served agent does, over real HTTP: its states, its artifacts, its history, what
it asks and what it is told.
"""

import asyncio

import pytest

from offbook.runtime.a2a import (
    AgentCardSettings,
    ArtifactUpdate,
    DataPart,
    FilePart,
    Reject,
    Reply,
    Status,
    a2a_app,
)
from tests.doubles.a2a import ByHand, kind_of, scripted, serving, state_of, status_text, text_of


@pytest.fixture
def served(run):
    """Run a story with a client of an agent that plays a function."""

    def served(play, story, **options):
        async def main():
            app = a2a_app(scripted(play), **options)
            async with serving(app) as url, ByHand(url) as client:
                return await story(client)

        return run(main())

    return served


def test_what_an_agent_says_is_an_artifact_of_a_completed_task(served):
    async def play(input, context):
        yield f"you said {input.messages[-1].text}"

    async def story(client):
        task = await client.send("this")
        assert state_of(task) == "COMPLETED"
        assert text_of(task) == "you said this"
        assert task["artifacts"][0]["name"] == "served"
        assert [said["parts"][0]["text"] for said in task["history"]] == ["this"]
        assert await client.get(task["id"]) == task

    served(play, story)


def test_a_stream_is_the_task_first_and_then_what_follows(served):
    async def play(input, context):
        yield "one"
        yield Status("still at it")
        yield "two"

    async def story(client):
        events = await client.stream()
        assert [kind_of(event) for event in events] == [
            "SUBMITTED",
            "WORKING",
            "artifact",
            "WORKING",
            "artifact",
            "COMPLETED",
        ]
        assert "task" in events[0]
        assert status_text(events[3]["statusUpdate"]) == "still at it"

    served(play, story)


def test_a_reply_is_a_message_and_leaves_no_task(served):
    async def play(input, context):
        yield Reply("plain")

    async def story(client):
        answer = await client.send()
        assert answer["message"]["parts"] == [{"text": "plain"}]
        assert [kind_of(event) for event in await client.stream()] == ["message"]
        assert (await client.call("ListTasks", {}))["result"]["totalSize"] == 0

    served(play, story)


def test_a_reply_that_comes_after_something_else_is_an_artifact(served):
    async def play(input, context):
        yield "first"
        yield Reply("then")

    async def story(client):
        assert [kind_of(event) for event in await client.stream()] == [
            "SUBMITTED",
            "WORKING",
            "artifact",
            "artifact",
            "COMPLETED",
        ]

    served(play, story)


def test_an_agent_that_ends_without_a_result_completes_its_task(served):
    async def play(input, context):
        return
        yield

    async def story(client):
        task = await client.send()
        assert state_of(task) == "COMPLETED"
        assert "artifacts" not in task

    served(play, story)


def test_artifacts_hold_text_data_and_files(served):
    async def play(input, context):
        yield ArtifactUpdate("text", "words")
        yield ArtifactUpdate("data", DataPart({"n": 42, "deep": [1, {"x": None}]}))
        yield ArtifactUpdate("bytes", FilePart(data=b"abc", media_type="text/plain", name="a.txt"))
        yield ArtifactUpdate(
            "link", FilePart("https://example.com/a.txt", media_type="text/plain", name="a.txt")
        )

    async def story(client):
        parts = {
            artifact["name"]: artifact["parts"][0]
            for artifact in (await client.send())["artifacts"]
        }
        assert parts["text"] == {"text": "words"}
        assert parts["data"] == {
            "data": {"n": 42, "deep": [1, {"x": None}]},
            "mediaType": "application/json",
        }
        assert parts["bytes"] == {"raw": "YWJj", "filename": "a.txt", "mediaType": "text/plain"}
        assert parts["link"] == {
            "url": "https://example.com/a.txt",
            "filename": "a.txt",
            "mediaType": "text/plain",
        }

    served(play, story)


def test_the_first_piece_of_an_artifact_never_appends(served):
    async def play(input, context):
        yield ArtifactUpdate("a", "one ", append=True, last=False)
        yield ArtifactUpdate("a", "two", append=True)

    async def story(client):
        pieces = [
            event["artifactUpdate"] for event in await client.stream() if "artifactUpdate" in event
        ]
        assert [piece.get("append", False) for piece in pieces] == [False, True]
        assert [piece.get("lastChunk", False) for piece in pieces] == [False, True]
        assert pieces[0]["artifact"]["artifactId"] == pieces[1]["artifact"]["artifactId"]

    served(play, story)


def test_a_task_can_be_rejected(served):
    async def play(input, context):
        yield Reject("not my line")

    async def story(client):
        task = await client.send()
        assert state_of(task) == "REJECTED"
        assert status_text(task) == "not my line"

    served(play, story)


def test_raw_exception_texts_never_reach_a_client(served):
    async def play(input, context):
        yield "before"
        raise ValueError("the password is swordfish")

    async def story(client):
        task = await client.send()
        assert state_of(task) == "FAILED"
        assert status_text(task) == "The agent has failed."
        assert "swordfish" not in str(await client.stream())
        assert "swordfish" not in str(await client.get(task["id"]))

    served(play, story)


def test_a_handler_that_does_not_stop_is_cut_off(run, monkeypatch):
    monkeypatch.setattr("offbook.runtime.a2a.tasks.task_actor.CANCEL_SECONDS", 0.2)
    begun, gate = asyncio.Event(), asyncio.Event()

    class Stubborn:
        async def message(self, request):
            begun.set()
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue

    async def story(client):
        task = await client.send(configuration={"returnImmediately": True})
        await begun.wait()
        canceled = (await client.call("CancelTask", {"id": task["id"]}))["result"]
        assert state_of(canceled) == "CANCELED"
        assert state_of(await client.get(task["id"])) == "CANCELED"
        gate.set()

    async def main():
        app = a2a_app(handlers=Stubborn(), card=AgentCardSettings(name="stubborn", description="d"))
        async with serving(app) as url, ByHand(url) as client:
            await story(client)

    run(main())
