"""What is said to an agent from the console: in a session, and on the page Try, with another
instruction for one run.
"""

import asyncio
import json

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    InstructionOptions,
    Message,
    MessageDelta,
    Runner,
    RunStatus,
    ScriptedModel,
)
from tests.doubles.console import Asking, desk, events_of, refunding, runner_of


class Echo:
    """A model that says what its instruction and the last message are, in pieces."""

    def __init__(self):
        self.asked = []

    async def generate(self, request):
        self.asked.append([f"{message.role}: {message.text}" for message in request.messages])
        system = next(
            (message.text for message in request.messages if message.role == "system"), ""
        )
        return Message.assistant(f"{system}|{request.messages[-1].text}")

    async def stream(self, request):
        reply = await self.generate(request)
        for piece in reply.text:
            yield MessageDelta(content=piece)
        yield reply


def echo(**options):
    return ChatModelAgent(name="Desk", instruction="Be kind.", model=Echo(), **options)


def test_a_message_to_a_session_is_streamed_and_becomes_part_of_it(run):
    async def main():
        runner = runner_of(echo())
        async with Asking(runner) as ask:
            streamed = await ask.streamed("session/say", id="ada", text="hello you")
            return streamed, await runner.session("ada").history(), await ask.get("runs")

    streamed, history, runs = run(main())
    assert streamed[0][0] == "run"
    events = events_of(streamed)
    assert (
        "".join(event["delta"]["text"] for event in events if event["kind"] == "delta")
        == "Be kind.|hello you"
    )
    # Pieces that come together go together.
    assert len([event for event in events if event["kind"] == "delta"]) < len("Be kind.|hello you")
    assert [message.text for message in history] == ["hello you", "Be kind.|hello you"]
    assert [one["session_id"] for one in runs["runs"]] == ["ada"]
    assert streamed[0][1]["run_id"] == runs["runs"][0]["id"]


def test_another_instruction_is_for_that_run_only(run):
    async def main():
        agent = echo()
        runner = runner_of(agent)
        async with Asking(runner) as ask:
            tried = await ask.streamed("try", text="q", instructions={"Desk": "Be rude."})
            after = await ask.streamed("try", text="q")
            runs = await ask.get("runs", label="offbook.console=try")
        return tried[-1][1], after[-1][1], len(runs["runs"]), agent.instruction

    tried, after, kept, instruction = run(main())
    assert (tried["text"], after["text"], instruction) == ("Be rude.|q", "Be kind.|q", "Be kind.")
    assert kept == 2


def test_the_same_input_again_is_what_the_other_run_was_asked(run):
    async def main():
        runner = runner_of(echo())
        await runner.run(
            [Message.user("one"), Message.assistant("two"), Message.user("three")], run_id="r"
        )
        async with Asking(runner) as ask:
            return (await ask.streamed("try", again="r", instructions={"Desk": ""}))[-1][
                1
            ], await ask.post("try", 404, again="nothing")

    again, unknown = run(main())
    assert again["text"] == "|three"
    assert "no run 'nothing'" in unknown["error"]


def test_a_conversation_is_tried_as_messages(run):
    async def main():
        agent = echo()
        async with Asking(runner_of(agent)) as ask:
            await ask.streamed(
                "try",
                messages=[
                    {"role": "user", "text": "a"},
                    {"role": "assistant", "text": "b"},
                    {"role": "user", "text": "c"},
                ],
            )
        return agent.model.asked

    assert run(main()) == [["system: Be kind.", "user: a", "assistant: b", "user: c"]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "'text' must be a non-empty string"),
        ({"text": ""}, "non-empty"),
        ({"messages": []}, "1 to 200"),
        ({"messages": [{"role": "system", "text": "x"}]}, "each role must be one of"),
        ({"messages": ["x"]}, "each role must be one of"),
        ({"text": "q", "instructions": {"Nobody": "x"}}, "not an agent with an instruction"),
        ({"text": "q", "instructions": {"Desk": 7}}, "must be a string of at most"),
        ({"text": "q", "instructions": []}, "must be an object"),
        ({"text": "x" * 500_001}, "500,001 characters"),
    ],
)
def test_what_cannot_be_tried_is_named(run, body, words):
    async def main():
        async with Asking(runner_of(echo())) as ask:
            return await ask.post("try", 400, **body)

    assert words in run(main())["error"]


def test_what_is_tried_may_wait_for_an_answer_like_all_others(run):
    async def main():
        runner = runner_of(refunding())
        async with Asking(runner) as ask:
            tried = await ask.streamed("try", text="q", instructions={"Desk": "Be quick."})
            run_id = tried[0][1]["run_id"]
            (context,) = (await ask.get("run", id=run_id))["waiting"]
            await ask.post("run/answer", id=run_id, interrupt=context["id"], kind="approve")
            result = await runner.attach(run_id)
        asked = [request.messages[0].text for request in runner.agent.model.requests]
        return tried[-1][1]["status"], result.status, asked

    status, after, asked = run(main())
    assert (status, after) == ("interrupted", RunStatus.COMPLETED)
    assert asked == ["Be quick.", "Be quick."]  # also behind the answer


def test_a_failure_is_the_end_of_the_stream(run):
    async def main():
        async with Asking(runner_of(desk(ValueError("no luck")))) as ask:
            return await ask.streamed("session/say", id="s", text="q")

    *_, (kind, end, _) = run(main())
    assert (kind, end["status"], end["error"]["message"]) == ("end", "failed", "no luck")


def test_a_session_of_a_runner_without_a_store_says_what_is_missing(run):
    async def main():
        async with Asking(Runner(desk("hello"))) as ask:
            return await ask.post("session/say", 400, id="s", text="q"), await ask.post(
                "session/say", 400, id="s", text="q", start="middle"
            )

    without, odd = run(main())
    assert "the Runner has no store" in without["error"]
    assert "'root' or 'last'" in odd["error"]


def test_a_browser_that_goes_away_leaves_the_run_running(run):
    class Slow:
        def __init__(self):
            self.gate = asyncio.Event()

        async def generate(self, request):
            await self.gate.wait()
            return Message.assistant("at last")

    async def main():
        model = Slow()
        runner = runner_of(ChatModelAgent(name="Desk", model=model))
        async with Asking(runner) as ask:
            sent, told = [], asyncio.Event()
            left = asyncio.Event()

            async def receive():
                if not sent or sent[0] == "asked":
                    sent[:] = ["body"]
                    return {
                        "type": "http.request",
                        "body": json.dumps({"id": "s", "text": "q"}).encode(),
                        "more_body": False,
                    }
                await left.wait()
                return {"type": "http.disconnect"}

            async def send(message):
                if message.get("body"):
                    told.set()
                    sent.append(message["body"])

            scope = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": "POST",
                "path": "/api/session/say",
                "raw_path": b"",
                "root_path": "",
            }
            scope |= {
                "query_string": b"",
                "scheme": "http",
                "server": ("console.test", 80),
                "client": ("127.0.0.1", 1),
            }
            headers = {
                "host": "console.test",
                "authorization": "Bearer a-token-of-the-test",
                "content-type": "application/json",
            }
            scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
            request = asyncio.ensure_future(ask.app(scope, receive, send))
            await told.wait()
            left.set()
            await request
            (info,) = await runner.runs()
            model.gate.set()
            return info.status, (await runner.attach(info.id)).status

    assert run(main()) == (RunStatus.RUNNING, RunStatus.COMPLETED)


def test_instruction_options_are_for_the_agents_that_they_name(run):
    async def main():
        runner = Runner(echo())
        other = await runner.query("q", options=InstructionOptions("Be rude.", agents=("Another",)))
        all_of_them = await runner.query(
            "q",
            options=[InstructionOptions("Be rude."), InstructionOptions("Be brief, {name}.")],
            session_values={"name": "Ada"},
        )
        return other.text, all_of_them.text

    assert run(main()) == ("Be kind.|q", "Be brief, Ada.|q")


def test_an_instruction_for_one_run_counts_for_its_resume(run):
    async def main():
        runner = runner_of(refunding())
        first = await runner.query("q", run_id="r", options=InstructionOptions("Be quick."))
        await runner.approve(first.interrupts[0])
        return [request.messages[0].text for request in runner.agent.model.requests]

    assert run(main()) == ["Be quick.", "Be quick."]


def test_scripted_models_need_no_pieces(run):
    async def main():
        async with Asking(
            runner_of(ChatModelAgent(name="Desk", model=ScriptedModel(["hello"])))
        ) as ask:
            return (await ask.streamed("try", text="q"))[-1][1]["text"]

    assert run(main()) == "hello"
