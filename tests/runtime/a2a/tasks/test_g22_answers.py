"""An answer over A2A is bound to what its client was shown."""

import asyncio
import json

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Message, ScriptedModel, SQLiteStore, ToolCalls
from offbook.runtime.a2a import AuthRequired, a2a_app
from tests.doubles.a2a import ByHand, message, scripted, serving, state_of, text_of


class Shop:
    """An agent that pays twice, and each time has to be allowed to."""

    def __init__(self):
        self.paid = paid = []

        @tool(needs_approval=True)
        def pay(euros: int) -> str:
            paid.append(euros)
            return "paid"

        model = ScriptedModel(
            [
                ToolCalls(("pay", {"euros": 10})),
                ToolCalls(("pay", {"euros": 10_000})),
                Message.assistant("Both are paid."),
            ]
        )
        self.agent = ChatModelAgent(name="shop", description="Pays.", model=model, tools=[pay])


def asked(task):
    """The id and the amount of what a task asks."""
    data = task["status"]["message"]["parts"][1]["data"]
    arguments = data["info"]["arguments"]
    return data["interruptId"], (
        json.loads(arguments) if isinstance(arguments, str) else arguments
    )["euros"]


@pytest.fixture
def shopping(run):
    def shopping(story, **options):
        async def main():
            shop = Shop()
            async with serving(a2a_app(shop.agent, **options)) as url, ByHand(url) as client:
                await story(shop, client, await client.send("pay"))

        return run(main())

    return shopping


def yes(interrupt_id, **fields):
    return {"parts": [{"data": {"interruptId": interrupt_id, "answer": "approve"}}], **fields}


def test_g22_a_message_sent_twice_approves_one_call_and_returns_the_task(shopping):
    async def story(shop, client, first):
        assert asked(first)[1] == 10
        second = await client.send("approve", taskId=first["id"], messageId="yes")
        assert (state_of(second), asked(second)[1], shop.paid) == ("INPUT_REQUIRED", 10_000, [10])
        for _ in range(3):
            assert await client.send("approve", taskId=first["id"], messageId="yes") == second
        async with client.streaming(
            "SendStreamingMessage",
            {"message": message("approve", taskId=first["id"], messageId="yes")},
        ) as events:
            assert [event async for event in events] == [{"task": second}]
        assert shop.paid == [10]
        assert await client.get(first["id"]) == second
        done = await client.send(taskId=first["id"], **yes(asked(second)[0], messageId="yes too"))
        assert (state_of(done), shop.paid) == ("COMPLETED", [10, 10_000])
        again = await client.send(taskId=first["id"], **yes(asked(second)[0], messageId="yes too"))
        assert (state_of(again), shop.paid) == ("COMPLETED", [10, 10_000])

    shopping(story)


def test_g22_messages_at_the_same_time_approve_one_call(shopping):
    async def story(shop, client, first):
        answers = await asyncio.gather(
            *(
                client.send("approve", taskId=first["id"], messageId=f"yes {number % 5}")
                for number in range(20)
            )
        )
        assert shop.paid == [10]
        assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32004}
        assert {asked(answer)[1] for answer in answers if "error" not in answer} == {10_000}

    shopping(story)


def test_g22_a_late_answer_approves_nothing_else(shopping):
    async def story(shop, client, first):
        second = await client.send("approve", taskId=first["id"])
        late = await client.send("approve", taskId=first["id"])
        assert asked(second)[0] in late["error"]["message"], "it names what has to be named"
        assert "error" in await client.send(taskId=first["id"], **yes(asked(first)[0]))
        assert shop.paid == [10]
        assert await client.get(first["id"]) == second, "a refused message changes nothing"

    shopping(story)


def test_g22_another_message_with_the_same_id_is_one_of_its_own(shopping):
    async def story(shop, client, first):
        second = await client.send("approve", taskId=first["id"], messageId="one")
        answer = await client.send("deny", taskId=first["id"], messageId="one")
        assert (answer["error"]["code"], shop.paid) == (-32602, [10])
        assert await client.get(first["id"]) == second

    shopping(story)


def test_g22_a_repetition_is_known_after_a_restart(run, tmp_path):
    async def main():
        shop = Shop()
        for process in range(2):
            store = SQLiteStore(tmp_path / "tasks.db")
            async with serving(a2a_app(shop.agent, store=store)) as url, ByHand(url) as client:
                if not process:
                    task = await client.send("pay")
                again = await client.send("approve", taskId=task["id"], messageId="yes")
                assert (state_of(again), asked(again)[1], shop.paid) == (
                    "INPUT_REQUIRED",
                    10_000,
                    [10],
                )
            await store.aclose()

    run(main())


def test_g22_a_message_from_before_a_question_does_not_answer_it(run):
    gate, begun = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        if context.resume is not None and context.resume.was_interrupted:
            yield f"had {context.resume.data}"
            return
        begun.set()
        await gate.wait()
        yield context.interrupt("May I?")

    async def main():
        app = a2a_app(scripted(play))
        async with serving(app) as url, ByHand(url) as client:
            task = await client.send(configuration={"returnImmediately": True})
            await begun.wait()
            early = asyncio.create_task(client.send("yes", taskId=task["id"]))
            while not any(actor._waiting for actor in app._service.actors()):
                await asyncio.sleep(0)
            gate.set()
            assert (await early)["error"]["code"] == -32004
            assert state_of(await client.get(task["id"])) == "INPUT_REQUIRED"
            assert text_of(await client.send("yes", taskId=task["id"])) == "had yes"

    run(main())


def test_g22_an_answer_that_is_refused_leaves_the_task_as_it_was(run):
    async def play(input, context):
        if context.resume is not None and context.resume.was_interrupted:
            yield "in"
        else:
            yield context.interrupt(AuthRequired({"at": "the bank"}))

    async def main():
        async with serving(a2a_app(scripted(play))) as url, ByHand(url) as client:
            task = await client.send()
            assert state_of(task) == "AUTH_REQUIRED"
            wrong = await client.send(
                taskId=task["id"], parts=[{"data": {"interruptId": "none", "answer": 1}}]
            )
            assert wrong["error"]["code"] == -32602
            assert await client.get(task["id"]) == task
            assert text_of(await client.send("a key", taskId=task["id"])) == "in"

    run(main())


def test_an_agent_that_asks_for_credentials_and_works_on_completes(run):
    async def play(input, context):
        yield AuthRequired({"at": "the bank"})
        yield "it went without"

    async def main():
        async with serving(a2a_app(scripted(play))) as url, ByHand(url) as client:
            task = await client.send()
            assert (state_of(task), text_of(task)) == ("COMPLETED", "it went without")

    run(main())


def test_resume_is_given_the_question_that_is_answered(run):
    seen = []

    async def play(input, context):
        if context.resume is not None and context.resume.was_interrupted:
            yield f"painted {context.resume.data}"
        else:
            yield context.interrupt("Which colour?")

    def resume(task, said, metadata):
        seen.append((task.status.state.name, task.status.message.text))
        return said.text

    async def main():
        async with serving(a2a_app(scripted(play), resume=resume)) as url, ByHand(url) as client:
            task = await client.send()
            assert text_of(await client.send("blue", taskId=task["id"])) == "painted blue"
            assert seen[0][0] == "INPUT_REQUIRED"
            assert seen[0][1].startswith("Which colour?")

    run(main())


@pytest.mark.parametrize(
    "parts",
    [
        lambda name: [
            {"data": {"interruptId": name, "answer": "deny"}},
            {"data": {"interruptId": name, "answer": "approve"}},
        ],
        lambda name: [
            {"data": {"interruptId": name, "answer": "approve"}},
            {"text": "no, do NOT pay"},
        ],
        lambda name: [{"data": {"interruptId": name, "answer": "approve"}}, {"data": {"why": "?"}}],
        lambda name: [
            {"data": {"interruptId": name, "answer": "approve", "arguments": {"euros": 1}}}
        ],
        lambda name: [{"data": {name: "approve"}}, {"data": {name: "deny"}}],
    ],
    ids=["twice", "with a text", "with other data", "with arguments", "as a mapping, twice"],
)
def test_g22_an_answer_that_contradicts_itself_or_changes_the_call_is_refused(shopping, parts):
    async def story(shop, client, first):
        interrupt_id, _ = asked(first)
        refused = await client.call(
            "SendMessage",
            {"message": {**message("", taskId=first["id"]), "parts": parts(interrupt_id)}},
        )
        assert "No tool was called" in json.dumps(refused)
        assert shop.paid == []

    shopping(story)
