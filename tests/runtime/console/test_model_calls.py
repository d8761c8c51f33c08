"""The model calls of a run in the console: what each was asked, while content capture is on."""

from offbook.actors import ChatModelAgent
from offbook.runtime import ModelSettings, ScriptedModel, ToolCalls
from offbook.runtime.agent.hooks import hooks_of_a_run
from offbook.runtime.console import model_calls
from tests.doubles.console import Asking, desk, refund, runner_of


def test_each_model_call_is_shown_with_all_that_the_model_was_asked(run):
    async def main():
        model = ScriptedModel([ToolCalls(refund={"order": "A-7", "amount": 12}), "It is done."])
        agent = ChatModelAgent(
            name="Desk",
            instruction="Be kind to {name}.",
            model=model,
            tools=[refund],
            model_settings=ModelSettings(temperature=0.5),
        )
        runner = runner_of(agent)
        async with Asking(runner, capture_content=True) as ask:
            first = await runner.query("a refund", run_id="r", session_values={"name": "Ada"})
            await runner.approve(first.interrupts[0])
            found = await ask.get("run/calls", id="r")
            calls = [
                await ask.get("run/call", id="r", number=one["number"]) for one in found["calls"]
            ]
            unknown = await ask.get("run/call", 404, id="r", number=9)
            return found, calls, unknown

    found, (first, second), unknown = run(main())
    assert found["how"] is None
    assert [
        (one["agent"], one["model"], one["messages"], one["tools"]) for one in found["calls"]
    ] == [
        ("Desk", "ScriptedModel", 1, 1),
        ("Desk", "ScriptedModel", 3, 1),
    ]
    assert all(one["seconds"] >= 0 and one["at"] > 0 for one in found["calls"])
    assert (first["instruction"], first["settings"]) == ("Be kind to Ada.", {"temperature": 0.5})
    assert [(message["role"], message["text"]) for message in first["asked"]] == [
        ("user", "a refund")
    ]
    assert [message["role"] for message in second["asked"]] == ["user", "assistant", "tool"]
    assert (first["tool_specs"][0]["name"], first["tool_specs"][0]["parameters"]["required"]) == (
        "refund",
        ["order", "amount"],
    )
    assert first["reply"]["tool_calls"][0]["name"] == "refund"
    assert second["reply"]["text"] == "It is done."
    assert "not retained" in unknown["error"]


def test_without_content_capture_nothing_is_recorded_and_the_page_says_how_to_turn_it_on(
    run, monkeypatch
):
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)

    async def main():
        runner = runner_of(desk("hello"))
        async with Asking(runner) as ask:
            hooks = hooks_of_a_run(None)
            await runner.query("q", run_id="r")
            return (
                hooks,
                await ask.get("run/calls", id="r"),
                await ask.get("run/call", 400, id="r", number=1),
            )

    hooks, found, refused = run(main())
    assert (hooks, found["calls"]) == ((), [])
    assert "capture_content=True" in found["how"]
    assert refused["error"] == found["how"]


def test_the_environment_turns_it_on_and_the_end_of_the_console_ends_it(run, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")

    async def main():
        runner = runner_of(desk("hello"))
        async with Asking(runner) as ask:
            await runner.query("q", run_id="r")
            return await ask.get("run/calls", id="r")

    found = run(main())
    assert (found["how"], len(found["calls"])) == (None, 1)
    assert hooks_of_a_run(None) == ()


def test_a_call_that_failed_has_no_reply(run):
    async def main():
        runner = runner_of(desk(ValueError("no luck")))
        async with Asking(runner, capture_content=True) as ask:
            await runner.query("q", run_id="r")
            return (await ask.get("run/calls", id="r"))["calls"], await ask.get(
                "run/call", id="r", number=1
            )

    (summary,), call = run(main())
    assert (summary["seconds"], call["reply"]) == (None, None)
    assert [message["text"] for message in call["asked"]] == ["q"]


def test_the_latest_calls_are_retained(run, monkeypatch):
    monkeypatch.setattr(model_calls, "_MOST_CALLS", 3)
    monkeypatch.setattr(model_calls, "_MOST_OF_A_RUN", 2)

    async def main():
        runner = runner_of(desk(*["hello"] * 4))
        async with Asking(runner, capture_content=True) as ask:
            for number in range(4):
                await runner.query("q", run_id=f"r{number}")
            return [
                len((await ask.get("run/calls", id=f"r{number}"))["calls"]) for number in range(4)
            ]

    assert run(main()) == [0, 1, 1, 1]
