"""`handlers=`: a server without an agent: what handlers are given, what they may write and return,
and how they are cancelled.
"""

import asyncio

import pytest

from offbook.runtime import UsageError
from offbook.runtime.a2a import (
    A2AMessage,
    AgentCardSettings,
    Artifact,
    ArtifactUpdate,
    Reject,
    Status,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
    a2a_app,
)
from tests.doubles.a2a import ByHand, kind_of, serving, state_of, status_text, text_of

CARD = AgentCardSettings(name="By hand", description="Handlers without an agent.")


@pytest.fixture
def served(run):
    def served(handlers, story, **options):
        async def main():
            async with (
                serving(a2a_app(handlers=handlers, card=CARD, **options)) as url,
                ByHand(url) as client,
            ):
                return await story(client)

        return run(main())

    return served


class Seeds:
    """The example of the text: it shows that it works, then an artifact with its last chunk; and it
    has a cancel handler.
    """

    def __init__(self):
        self.cancelled = []
        self.begun = asyncio.Event()

    async def stream(self, request, writer):
        await writer.write(TaskStatus(TaskState.WORKING))
        if request.message.text == "wait":
            self.begun.set()
            await asyncio.Event().wait()
        await writer.write(ArtifactUpdate("result", f"processed {request.message.text}", last=True))

    async def cancel(self, request):
        self.cancelled.append(request.task.id)
        return TaskStatus(TaskState.CANCELED, A2AMessage.agent("stopped by hand"))


def test_a_streaming_handler_shows_working_and_an_artifact_and_is_cancelled(served):
    handlers = Seeds()

    async def story(client):
        events = await client.stream("this")
        assert [kind_of(event) for event in events] == [
            "SUBMITTED",
            "WORKING",
            "WORKING",
            "artifact",
            "COMPLETED",
        ]
        assert text_of(await client.send("that")) == "processed that", (
            "a handler that streams answers what does not stream, too"
        )
        task = await client.send("wait", configuration={"returnImmediately": True})
        await handlers.begun.wait()
        canceled = (await client.call("CancelTask", {"id": task["id"]}))["result"]
        assert (state_of(canceled), status_text(canceled)) == ("CANCELED", "stopped by hand")
        assert handlers.cancelled == [task["id"]]

    served(handlers, story)


def test_what_a_message_handler_returns_is_the_task(served):
    class Handlers:
        async def message(self, request):
            word = request.message.text
            match word:
                case "plain":
                    return "a plain message"
                case "artifact":
                    return Artifact("a", (TextPart("content"),), "name")
                case "status":
                    return TaskStatus(TaskState.INPUT_REQUIRED, A2AMessage.agent("which one?"))
                case "task":
                    return Task(
                        request.task.id,
                        request.task.context_id,
                        TaskStatus(TaskState.COMPLETED),
                        (Artifact("b", (TextPart("whole"),)),),
                    )
                case "reject":
                    return Reject("no")
                case "working":
                    return Status("never mind")
            return None

    async def story(client):
        assert (await client.send("plain"))["message"]["parts"][0]["text"] == "a plain message"
        assert text_of(await client.send("artifact")) == "content"
        task = await client.send("status")
        assert (state_of(task), status_text(task)) == ("INPUT_REQUIRED", "which one?")
        again = await client.send("artifact", taskId=task["id"])
        assert (state_of(again), len(again["history"])) == ("COMPLETED", 3)
        assert text_of(await client.send("task")) == "whole"
        assert state_of(await client.send("reject")) == "REJECTED"
        assert [state_of(await client.send(word)) for word in ("nothing", "working")] == [
            "COMPLETED",
            "COMPLETED",
        ]

    served(Handlers(), story)


def test_a_handler_is_given_the_task_the_message_and_the_metadata(served):
    seen = []

    class Handlers:
        async def message(self, request):
            seen.append(request)

    async def story(client):
        task = await client.send("hello", metadata={"trace": "x"})
        [request] = seen
        assert (request.task.id, request.message.text, request.metadata) == (
            task["id"],
            "hello",
            {"trace": "x"},
        )
        assert [said.text for said in request.task.history] == ["hello"]

    served(Handlers(), story)


@pytest.mark.parametrize(
    "error",
    [ValueError("swordfish"), asyncio.CancelledError("swordfish"), SystemError("swordfish")],
)
def test_a_handler_that_raises_has_failed_its_task_and_is_told_to_the_log(served, error, caplog):
    class Handlers:
        async def message(self, request):
            raise error

    async def story(client):
        task = await client.send()
        assert state_of(task) in ("FAILED", "CANCELED")
        assert "swordfish" not in str(task)

    served(Handlers(), story)
    if not isinstance(error, asyncio.CancelledError):
        assert "swordfish" in caplog.text


def test_nothing_can_be_written_after_the_end(served):
    problems = []

    class Handlers:
        async def stream(self, request, writer):
            await writer.write(TaskStatus(TaskState.COMPLETED))
            try:
                await writer.write(Status("more"))
            except UsageError as error:
                problems.append(str(error))

    async def story(client):
        assert state_of(await client.send()) == "COMPLETED"
        assert "accepts no more values" in problems[0]

    served(Handlers(), story)


class NoMethods:
    pass


class NotAsync:
    def message(self, request):
        return None


@pytest.mark.parametrize("handlers", [NoMethods(), NotAsync()])
def test_handlers_that_cannot_work_are_refused_at_once(handlers):
    with pytest.raises(UsageError, match="handlers"):
        a2a_app(handlers=handlers, card=CARD)


def test_a_card_needs_a_name_and_a_description():
    class Handlers:
        async def message(self, request):
            return None

    with pytest.raises(UsageError, match="name"):
        a2a_app(handlers=Handlers())
    with pytest.raises(UsageError, match="and not both"):
        a2a_app()
