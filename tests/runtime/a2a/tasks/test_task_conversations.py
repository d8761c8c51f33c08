"""A task over several messages, over real HTTP: what it asks and how it is answered, its context,
its history, what is streamed, what may be said beside.
"""

import asyncio

import pytest
from pydantic import BaseModel

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    AgentEvent,
    MemoryStore,
    Message,
    Options,
    Runner,
    ScriptedModel,
    ToolCalls,
)
from offbook.runtime.a2a import AuthRequired, Task, TaskState, TaskStatus, a2a_app
from tests.doubles.a2a import (
    ByHand,
    kind_of,
    message,
    scripted,
    serving,
    state_of,
    status_text,
    text_of,
)


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


async def asks(input, context):
    if context.resume is None or not context.resume.was_interrupted:
        yield context.interrupt({"question": "Which colour?", "options": ["red", "blue"]})
    else:
        yield f"painted {context.resume.data}"


def test_an_interrupt_asks_its_client_and_a_message_to_the_task_answers(served):
    async def story(client):
        task = await client.send("paint")
        assert state_of(task) == "INPUT_REQUIRED"
        text, data = task["status"]["message"]["parts"]
        assert text["text"] == "Which colour?"
        assert data["data"]["options"] == ["red", "blue"]
        assert data["data"]["interruptId"]
        done = await client.send("blue", taskId=task["id"])
        assert (state_of(done), text_of(done)) == ("COMPLETED", "painted blue")
        assert [said["role"] for said in done["history"]] == [
            "ROLE_USER",
            "ROLE_AGENT",
            "ROLE_USER",
        ]

    served(asks, story)


def test_an_answer_may_name_its_interrupt(served):
    async def story(client):
        task = await client.send("paint")
        name = task["status"]["message"]["parts"][1]["data"]["interruptId"]
        wrong = await client.send(
            taskId=task["id"], parts=[{"data": {"interruptId": "nothing", "answer": "red"}}]
        )
        assert wrong["error"]["code"] == -32602
        assert state_of(await client.get(task["id"])) == "INPUT_REQUIRED"
        done = await client.send(
            taskId=task["id"], parts=[{"data": {"interruptId": name, "answer": "red"}}]
        )
        assert text_of(done) == "painted red"

    served(asks, story)


def test_the_checkpoint_id_stays_on_the_server(served):
    async def story(client):
        task = await client.send("paint")
        assert "checkpoint" not in str(task).lower()

    served(asks, story)


@pytest.mark.parametrize("as_action", [True, False])
def test_credentials_are_asked_for_by_auth_required(served, as_action):
    async def play(input, context):
        if context.resume is not None and context.resume.was_interrupted:
            yield f"let in by {context.resume.data}"
        elif as_action:
            yield AuthRequired({"at": "the bank"})
            yield context.interrupt()
        else:
            yield context.interrupt(AuthRequired({"at": "the bank"}))

    async def story(client):
        task = await client.send()
        assert state_of(task) == "AUTH_REQUIRED"
        assert task["status"]["message"]["parts"][1]["data"]["info"] == {"at": "the bank"}
        assert text_of(await client.send("a key", taskId=task["id"])) == "let in by a key"

    served(play, story)


def test_a_tool_that_needs_approval_is_approved_over_the_wire(run):
    called = []

    @tool(needs_approval=True)
    def drop_table(name: str) -> str:
        called.append(name)
        return "dropped"

    async def main():
        model = ScriptedModel(
            [ToolCalls(("drop_table", {"name": "users"})), Message.assistant("It is done.")]
        )
        agent = ChatModelAgent(
            name="dba", description="Looks after tables.", model=model, tools=[drop_table]
        )
        async with serving(a2a_app(agent)) as url, ByHand(url) as client:
            task = await client.send("drop it")
            assert state_of(task) == "INPUT_REQUIRED"
            assert "drop_table" in status_text(task)
            unclear = await client.send("what?", taskId=task["id"])
            assert unclear["error"]["code"] == -32602
            assert called == []
            done = await client.send("approve", taskId=task["id"])
            assert (state_of(done), text_of(done), called) == (
                "COMPLETED",
                "It is done.",
                ["users"],
            )

    run(main())


def test_structured_output_is_a_data_part(run):
    class Answer(BaseModel):
        colour: str
        count: int

    async def main():
        model = ScriptedModel([Message.assistant('{"colour": "red", "count": 3}')])
        agent = ChatModelAgent(name="a", description="d", model=model, output_type=Answer)
        async with serving(a2a_app(agent)) as url, ByHand(url) as client:
            task = await client.send()
            assert task["artifacts"][0]["parts"] == [
                {"data": {"colour": "red", "count": 3}, "mediaType": "application/json"}
            ]

    run(main())


def test_what_a_model_streams_is_pieces_of_one_artifact(run):
    async def main():
        model = ScriptedModel([Message.assistant("a long answer in many words")])
        agent = ChatModelAgent(name="a", description="d", model=model)
        async with serving(a2a_app(agent)) as url, ByHand(url) as client:
            events = await client.stream()
            pieces = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
            assert len({piece["artifact"]["artifactId"] for piece in pieces}) == 1
            assert not pieces[0].get("append", False)
            assert all(piece["append"] for piece in pieces[1:])
            assert [piece.get("lastChunk", False) for piece in pieces] == [False] * (
                len(pieces) - 1
            ) + [True]
            assert (
                "".join(piece["artifact"]["parts"][0]["text"] for piece in pieces)
                == "a long answer in many words"
            )
            task = await client.get(events[0]["task"]["id"])
            assert [part["text"] for part in task["artifacts"][0]["parts"]] == [
                "a long answer in many words"
            ]

    run(main())


def test_a_context_is_a_session(run):
    async def main():
        model = ScriptedModel(
            [Message.assistant("hello"), Message.assistant("again"), Message.assistant("else")]
        )
        agent = ChatModelAgent(name="a", description="d", model=model)
        async with serving(a2a_app(agent)) as url, ByHand(url) as client:
            first = await client.send("one")
            second = await client.send("two", contextId=first["contextId"])
            assert second["contextId"] == first["contextId"]
            await client.send("three")
        asked = [
            [message.text for message in request.messages if message.role != "system"]
            for request in model.requests
        ]
        assert asked == [["one"], ["one", "hello", "two"], ["three"]]

    run(main())


def test_run_options_history_and_resume_translate_what_clients_say(run):
    seen = []

    async def play(input, context):
        seen.append(([message.text for message in input.messages], context.options["who"]))
        if context.resume is not None and context.resume.was_interrupted:
            yield f"answered {context.resume.data}"
        else:
            yield context.interrupt("?")

    def run_options(task, message, metadata):
        return Options(who=f"{metadata.get('who')}/{message.text}/{task.status.state}")

    async def main():
        app = a2a_app(
            scripted(play),
            run_options=run_options,
            history=lambda messages: [Message.user(f"<{message.text}>") for message in messages],
            resume=lambda task, message, metadata: {"said": message.text},
        )
        async with serving(app) as url, ByHand(url) as client:
            task = await client.send("one", metadata={"who": "me"})
            done = await client.send("two", taskId=task["id"], metadata={"who": "you"})
            assert text_of(done) == "answered {'said': 'two'}"
        assert seen == [(["<one>"], "me/one/working"), (["<one>"], "you/two/working")]

    run(main())


def test_consolidate_says_what_the_task_is_at_the_end_of_a_turn(served):
    seen = []

    def consolidate(task, events, error):
        seen.append((len(events), error))
        return Task(
            task.id,
            task.context_id,
            TaskStatus(TaskState.COMPLETED),
            (),
            task.history,
            {"made": "by hand"},
        )

    async def play(input, context):
        yield "an artifact"
        if input.messages[-1].text == "fail":
            raise ValueError("gone wrong")

    async def story(client):
        task = await client.send()
        assert ("artifacts" not in task, task["metadata"]) == (True, {"made": "by hand"})
        assert state_of(await client.send("fail")) == "COMPLETED"
        assert [count for count, _ in seen] == [3, 3]
        assert isinstance(seen[1][1], ValueError)

    served(play, story, consolidate=consolidate)


def test_ids_are_made_by_who_serves(served):
    made = iter(["task-1", "context-1"][::-1])

    async def play(input, context):
        yield "x"

    async def story(client):
        task = await client.send()
        assert {task["id"], task["contextId"]} == {"task-1", "context-1"}

    served(play, story, new_task_id=lambda: next(made), new_context_id=lambda: next(made))


def test_what_happens_inside_is_shown_to_those_that_ask_for_the_extension(run):
    extension = "https://offbook.dev/a2a/steps/v1"

    @tool
    def look(place: str) -> str:
        return f"nothing in {place}"

    async def main():
        model = ScriptedModel(
            [ToolCalls(("look", {"place": "attic"})), Message.assistant("No.")] * 2
        )
        agent = ChatModelAgent(name="a", description="d", model=model, tools=[look])
        async with serving(a2a_app(agent)) as url, ByHand(url) as client:
            assert "attic" not in str(await client.stream())
            params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}
            async with client.streaming(
                "SendStreamingMessage", params, headers={"A2A-Extensions": extension}
            ) as events:
                shown = [event async for event in events]
            steps = [
                event["statusUpdate"]["metadata"][extension]
                for event in shown
                if event.get("statusUpdate", {}).get("metadata")
            ]
            assert [next(iter(set(step) - {"agent"})) for step in steps] == [
                "toolCall",
                "toolResult",
            ]
            task = await client.get(shown[0]["task"]["id"])
            assert "attic" not in str(task), "status metadata does not stick to the task"

    run(main())


def test_a_runner_is_served_as_it_is(run):
    async def play(input, context):
        yield "from a runner"

    async def main():
        runner = Runner(scripted(play), store=MemoryStore())
        async with serving(a2a_app(runner)) as url, ByHand(url) as client:
            assert text_of(await client.send()) == "from a runner"

    run(main())


def test_nothing_is_left_of_a_task_at_rest(run):
    async def main():
        app = a2a_app(scripted(asks))
        async with serving(app) as url, ByHand(url) as client:
            for _ in range(5):
                await client.send("paint")
            service = await app.service()
            assert service.at_work == 0
            assert service.system.stats().actors == 0 or service.at_work == 0

    run(main())


def test_return_immediately_gives_the_task_at_once(served):
    gate = asyncio.Event()

    async def play(input, context):
        await gate.wait()
        yield "late"

    async def story(client):
        task = await client.send(configuration={"returnImmediately": True})
        assert state_of(task) in ("SUBMITTED", "WORKING")
        assert state_of(await client.get(task["id"])) == "WORKING"
        gate.set()
        assert text_of(await client.until(task["id"], "COMPLETED")) == "late"

    served(play, story)


def test_history_length_bounds_what_is_told_of_it(served):
    async def story(client):
        task = await client.send("paint")
        done = await client.send("blue", taskId=task["id"], configuration={"historyLength": 1})
        assert [said["parts"][0]["text"] for said in done["history"]] == ["blue"]
        assert "history" not in await client.get(task["id"], historyLength=0)
        assert len((await client.get(task["id"]))["history"]) == 3
        assert (await client.get(task["id"], historyLength=-1))["error"]["code"] == -32602

    served(asks, story)


def test_an_event_of_an_agent_with_several_parts_is_an_artifact_with_these(served):
    async def play(input, context):
        yield AgentEvent.of(Message("assistant", "text"))

    async def story(client):
        assert text_of(await client.send()) == "text"

    served(play, story)


def test_who_subscribes_in_the_middle_of_an_answer_gets_the_task_as_it_is(served):
    gate, begun = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        if context.resume is None or not context.resume.was_interrupted:
            yield context.interrupt("?")
            return
        yield "first"
        begun.set()
        await gate.wait()
        yield "then"

    async def story(client):
        task = await client.send()
        answer = await client.send(
            "x", taskId=task["id"], configuration={"returnImmediately": True}
        )
        await begun.wait()
        async with client.streaming("SubscribeToTask", {"id": task["id"]}) as events:
            first = await anext(events)
            assert (state_of(first), text_of(first["task"])) == ("WORKING", "first")
            gate.set()
            assert [kind_of(event) async for event in events] == ["artifact", "COMPLETED"]
        assert state_of(answer) in ("WORKING", "INPUT_REQUIRED")

    served(play, story)


def test_a_stream_to_a_task_that_has_ended_is_refused_before_it_begins(served):
    async def story(client):
        task = await client.send("paint")
        await client.send("blue", taskId=task["id"])
        answer = await client.call("SendStreamingMessage", {"message": message(taskId=task["id"])})
        assert answer["error"]["code"] == -32004

    served(asks, story)


def test_a_stream_that_answers_shows_the_task_and_what_follows(served):
    async def story(client):
        task = await client.send("paint")
        events = await client.stream("blue", taskId=task["id"])
        assert [kind_of(event) for event in events] == [
            "INPUT_REQUIRED",
            "WORKING",
            "artifact",
            "COMPLETED",
        ]
        assert "task" in events[0]

    served(asks, story)
