"""G22 in the console: a call is shown to the last digit, and what was not shown is not approved."""

import json

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Message, ScriptedModel, ToolCall
from tests.doubles.console import Asking, desk, refunding, runner_of

LARGE = 2**53 + 1


def wanting(arguments, *more, **options):
    """An agent whose model wants to pay, with that text as the arguments."""
    paid = []

    @tool(needs_approval=True)
    def pay(account: int, note: str = "") -> str:
        paid.append((account, note))
        return "paid"

    calls = [
        Message.assistant("", (ToolCall(f"c{number}", "pay", text),))
        for number, text in enumerate((arguments, *more))
    ]
    return ChatModelAgent(
        name="Desk", model=ScriptedModel([*calls, "It is done."]), tools=[pay], **options
    ), paid


async def shown_in(ask):
    (run,) = (await ask.get("pending"))["runs"]
    (context,) = run["waiting"]
    return context


def test_g22_a_second_yes_to_one_call_is_none_to_the_next(run):
    async def main():
        agent, paid = wanting('{"account":10}', '{"account":10000}')
        runner = runner_of(agent)
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            first = await shown_in(ask)
            await ask.post("run/answer", id="r", interrupt=first["id"], kind="approve")
            await runner.attach("r")
            assert (await shown_in(ask))["id"] != first["id"]
            late = await ask.post("run/answer", 409, id="r", interrupt=first["id"], kind="approve")
            assert "does not wait for" in late["error"]
            await ask.post("run/resume", 409, id="r", data=True)  # going on is no answer
            assert paid == [(10, "")]

    run(main())


def test_g22_arguments_are_shown_and_sent_back_to_the_last_digit(run):
    async def main():
        agent, paid = wanting(f'{{"account": {LARGE}, "note": 1.10, "note": "a\u202e\u200b"}}')
        runner = runner_of(agent)
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            context = await shown_in(ask)
            lines = context["arguments"].split("\n")
            assert lines == [
                "{",
                f'  "account": {LARGE},',
                '  "note": 1.10,',
                '  "note": "a\\u202e\\u200b"',
                "}",
            ]
            edited = (
                context["arguments"]
                .replace('"note": 1.10,\n', "")
                .replace(str(LARGE), str(LARGE + 2))
            )
            await ask.post(
                "run/answer", id="r", interrupt=context["id"], kind="approve", arguments=edited
            )
            await runner.attach("r")
        assert paid == [(LARGE + 2, "a\u202e\u200b")]

    run(main())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "must be JSON"),
        ("[1]", "must be a JSON object"),
        ("", "must be JSON"),
        ("1" * 5_000, "must be JSON"),
    ],
)
def test_g22_arguments_that_are_none_approve_nothing(run, text, said):
    async def main():
        agent, paid = wanting('{"account":1}')
        runner = runner_of(agent)
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            answer = await ask.post(
                "run/answer",
                400,
                id="r",
                interrupt=(await shown_in(ask))["id"],
                kind="approve",
                arguments=text,
            )
            assert said in answer["error"]
            assert (await shown_in(ask))["approval"]
        assert paid == []

    run(main())


def test_g22_long_arguments_are_approved_when_all_of_them_were_shown(run):
    async def main():
        note = "x" * 50_000 + "and 10,000 to Mallory"
        agent, paid = wanting(json.dumps({"account": 1, "note": note}))
        runner = runner_of(agent)
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            context = await shown_in(ask)
            what = {"id": "r", "interrupt": context["id"]}
            assert "Mallory" not in context["arguments"]
            for seen in (None, "", "x"):
                answer = await ask.post("run/answer", 400, **what, kind="approve", seen=seen)
                assert "were not shown in full" in answer["error"]
            text, more, seen = context["arguments"], context["more"], None
            while more:
                assert seen is None
                part = await ask.get("run/arguments", **what, after=len(text))
                text, more, seen = text + part["text"], part["more"], part["seen"]
            assert json.loads(text)["note"] == note
            await ask.post("run/answer", **what, kind="approve", seen=seen)
            await runner.attach("r")
        assert paid == [(1, note)]

    run(main())


def test_g22_an_answer_in_json_is_read_by_the_server(run):
    async def main():
        runner = runner_of(refunding())
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            context = await shown_in(ask)
            answer = await ask.post(
                "run/answer", 400, id="r", interrupt=context["id"], kind="json", json="{"
            )
            assert "must be JSON" in answer["error"]
            answer = await ask.post(
                "run/answer", 400, id="r", interrupt=context["id"], kind="json", value=True
            )
            assert "kind='approve'" in answer["error"]
            await ask.post("run/answer", id="r", interrupt=context["id"], kind="json", json="false")
            result = await runner.attach("r")
        assert any(
            "was denied" in event.message.text
            for event in result.events
            if event.message is not None
        )

    run(main())


def test_g22_what_is_hidden_in_a_text_is_shown_escaped(run):
    async def main():
        runner = runner_of(desk("pay \u202eyrollaM\u2066 \x1b[2Jnow\u200b\nand then"))
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            events = await ask.streamed("run/events", method="GET", id="r")
            return json.dumps(events)

    assert "pay \\\\u202eyrollaM\\\\u2066 \\\\u001b[2Jnow\\\\u200b\\nand then" in run(main())
