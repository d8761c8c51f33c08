"""What is done with a run from the console: answers and who has given them, cancel, resume from a
save, forget.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, MemoryStore, RunStatus, ScriptedModel, ToolCalls
from tests.doubles.console import Asking, desk, refunding, runner_of
from tests.doubles.gated_model import Gated
from tests.doubles.left_runs import Counts, lose_all


async def ended(runner, run_id="r"):
    return await runner.attach(run_id)


async def waiting(runner, **options):
    await runner.query("q", run_id="r", **options)
    (context,) = (await runner.info("r")).waiting
    return context.id


@pytest.mark.parametrize(
    ("answer", "result", "kind", "noted"),
    [
        ({"kind": "approve"}, "12 for A-7", "approve", ""),
        (
            {"kind": "approve", "arguments": {"order": "B-9", "amount": 3}},
            "3 for B-9",
            "approve with other arguments",
            '{"order": "B-9", "amount": 3}',
        ),
        (
            {"kind": "deny", "reason": "too much"},
            "the call of refund was denied: too much",
            "deny",
            "too much",
        ),
    ],
)
def test_an_approval_is_given_or_denied_and_who_did_so_is_kept(run, answer, result, kind, noted):
    async def main():
        runner = runner_of(refunding())
        interrupt = await waiting(runner)
        async with Asking(runner) as ask:
            (shown,) = (await ask.get("pending"))["runs"]
            state = await ask.post("run/answer", id="r", interrupt=interrupt, by="ada", **answer)
            return (
                shown,
                state,
                await ended(runner),
                await ask.get("run/answers", id="r"),
                await ask.get("pending"),
            )

    shown, state, result_of, (note,), left = run(main())
    assert (shown["waiting"][0]["approval"], shown["waiting"][0]["info"]["tool_name"]) == (
        True,
        "refund",
    )
    assert state["id"] == "r"
    assert result_of.status is RunStatus.COMPLETED
    assert result in next(
        event.message.text
        for event in result_of.events
        if event.message is not None and event.message.role == "tool"
    )
    assert (note["by"], note["kind"], note["answer"], note["asks"]) == (
        "ada",
        kind,
        noted,
        "refund",
    )
    assert left["runs"] == []


def test_who_answers_is_who_the_service_knows_and_not_who_they_say(run):
    async def main():
        runner = runner_of(refunding())
        interrupt = await waiting(runner)
        async with Asking(runner, auth=lambda _: "grace") as ask:
            await ask.post("run/answer", id="r", interrupt=interrupt, kind="approve", by="ada")
            await ended(runner)
            return await ask.get("run/answers", id="r")

    assert [note["by"] for note in run(main())] == ["grace"]


@tool
def wish(context: ToolContext) -> str:
    """Ask."""
    return f"got {context.interrupt('which colour?')!r}"


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ({"kind": "text", "value": "red"}, "'red'"),
        ({"kind": "json", "value": {"a": [1]}}, "{'a': [1]}"),
        ({"kind": "deny"}, "False"),
    ],
)
def test_a_question_is_answered_in_text_or_json(run, answer, got):
    async def main():
        runner = runner_of(
            ChatModelAgent(
                name="Desk", model=ScriptedModel([ToolCalls("wish"), "ok"]), tools=[wish]
            )
        )
        interrupt = await waiting(runner)
        async with Asking(runner) as ask:
            shown = (await ask.get("run", id="r"))["waiting"][0]
            await ask.post("run/answer", id="r", interrupt=interrupt, **answer)
        return shown, await ended(runner)

    shown, result = run(main())
    assert (shown["info"], shown["approval"]) == ("which colour?", False)
    assert f"got {got}" in [
        event.message.text for event in result.events if event.message is not None
    ]


def test_an_answer_that_comes_second_is_refused(run):
    async def main():
        runner = runner_of(refunding())
        interrupt = await waiting(runner)
        async with Asking(runner) as ask:
            await ask.post("run/answer", id="r", interrupt=interrupt, kind="approve", by="ada")
            await ended(runner)
            second = await ask.post(
                "run/answer", 409, id="r", interrupt=interrupt, kind="deny", by="bob"
            )
            return second, await ask.get("run/answers", id="r")

    second, notes = run(main())
    assert "does not wait" in second["error"]
    assert [note["by"] for note in notes] == ["ada"]


def test_of_two_that_answer_at_once_one_is_refused_and_both_are_noted(run):
    class Meeting(MemoryStore):
        """Two that are about to be noted wait for each other: both have seen that the run waits."""

        both, met = None, 0

        async def get(self, key):
            if "answered-by:" in key and self.met < 2:
                self.met += 1
                await self.both.wait()
            return await super().get(key)

    async def main():
        store = Meeting()
        store.both = asyncio.Barrier(2)
        runner = runner_of(refunding(), store)
        interrupt = await waiting(runner)
        async with Asking(runner) as ask:
            bodies = [
                {"id": "r", "interrupt": interrupt, "kind": "approve", "by": name}
                for name in ("ada", "bob")
            ]
            answers = await asyncio.gather(
                *(ask.client.post("/api/run/answer", json=body) for body in bodies)
            )
            await ended(runner)
            return answers, await ask.get("run/answers", id="r")

    answers, notes = run(main())
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    refused = {note["by"] for note in notes if "refused" in note}
    assert len(refused) == 1
    assert {note["by"] for note in notes} == {"ada", "bob"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "shrug"}, "kind must be one of approve, deny, text, json, got 'shrug'"),
        ({"kind": "approve", "arguments": [1]}, "must be a JSON object"),
        ({"kind": "text", "value": 7}, "'value' must be a string"),
        ({"kind": "text", "value": "red"}, "must be True, False"),
        ({"kind": "json"}, "the answer is missing. Pass 'value', as JSON"),
        ({"kind": "approve", "by": "x" * 101}, "101 characters"),
    ],
)
def test_an_answer_that_is_none_is_named_and_the_run_waits_on(run, body, words):
    async def main():
        runner = runner_of(refunding())
        interrupt = await waiting(runner)
        async with Asking(runner) as ask:
            answer = await ask.client.post(
                "/api/run/answer", json={"id": "r", "interrupt": interrupt, **body}
            )
            return answer, await runner.info("r")

    answer, info = run(main())
    assert answer.status_code in (400, 409)
    assert words in answer.json()["error"]
    assert info.status is RunStatus.INTERRUPTED


def test_a_run_at_work_is_cancelled_and_one_that_has_ended_is_not(run):
    async def main():
        model = Gated()
        runner = runner_of(ChatModelAgent(name="Desk", model=model))
        running = runner.query("q", run_id="r", detached=True)
        await model.asked.wait()
        async with Asking(runner) as ask:
            asked = await ask.post("run/cancel", id="r", mode="immediate")
            result = await running
            return (
                asked,
                result,
                await ask.post("run/cancel", 409, id="r"),
                await ask.post("run/cancel", 400, id="r", mode="gently"),
            )

    asked, result, again, odd = run(main())
    assert asked["asked"]
    assert result.status is RunStatus.CANCELLED
    assert "only a running or waiting run can be cancelled" in again["error"]
    assert "mode must be one of" in odd["error"]


def test_a_cancelled_run_is_resumed(run):
    async def main():
        model = Gated()
        runner = runner_of(ChatModelAgent(name="Desk", model=model))
        running = runner.query("q", run_id="r", detached=True)
        await model.asked.wait()
        running.cancel()
        await running
        model.gate.set()
        async with Asking(runner) as ask:
            state = await ask.post("run/resume", id="r")
            return state, await ended(runner)

    state, result = run(main())
    assert state["id"] == "r"
    assert result.text == "at last"


def test_a_save_that_was_answered_is_answered_again_as_a_branch(run):
    async def main():
        runner = runner_of(
            desk(ToolCalls(refund={"order": "A-7", "amount": 12}), "first", "second")
        )
        interrupt = await waiting(runner)
        async with Asking(runner) as ask:
            await ask.post("run/answer", id="r", interrupt=interrupt, kind="approve")
            await ended(runner)
            (save,) = await ask.get("run/saves", id="r")
            asked = await ask.get("run/save", id="r", save=save["id"])
            branch = await ask.post(
                "run/answer",
                id="r",
                save=save["id"],
                interrupt=asked[0]["id"],
                kind="approve",
                arguments={"order": "B-9", "amount": 1},
                by="ada",
            )
            other = await ask.post("run/resume", 400, id="r", save="another@1")
            gone = await ask.get("run/save", 404, id="r", save="r@7")
            return (
                save,
                asked,
                branch,
                await ended(runner, branch["id"]),
                other,
                gone,
                await ask.get("run/answers", id=branch["id"]),
            )

    save, asked, branch, result, other, gone, notes = run(main())
    assert asked[0]["approval"]
    assert "1 for B-9" in [
        event.message.text for event in result.events if event.message is not None
    ]
    assert "no stored checkpoint" in gone["error"]
    assert [note["by"] for note in notes] == ["ada"]
    assert (save["id"], save["answered"]) == ("r@1", True)
    assert branch["id"] != "r"
    assert result.text == "second"
    assert "save must be a checkpoint of run 'r'" in other["error"]


def test_a_run_that_was_set_aside_gets_another_life_and_others_do_not(run):
    class Noting(Counts):
        async def run(self, input, context):
            reached.set()
            async for event in super().run(input, context):
                yield event

    reached = asyncio.Event()

    async def main():
        store, agent = MemoryStore(), Noting(asyncio.Event())
        async with ActorSystem() as system:
            play = runner_of(agent, store, system=system).query("q", detached=True)
            await reached.wait()
            await lose_all(system, store)
        agent.gate.set()
        async with (
            ActorSystem() as system,
            Asking(runner := runner_of(agent, store, system=system)) as ask,
        ):
            assert await runner.recover(max_attempts=1) == []
            stuck = (await ask.get("now"))["stuck"]
            state = await ask.post("run/retry", id=play.id)
            result = await ended(runner, play.id)
            return (
                play.id,
                stuck,
                state,
                result.status,
                await ask.post("run/retry", 409, id=play.id),
            )

    run_id, stuck, state, status, again = run(main())
    assert [one["id"] for one in stuck] == [run_id]
    assert (state["id"], status) == (run_id, RunStatus.COMPLETED)
    assert "no stuck run" in again["error"]


def test_forgetting_a_run_removes_who_has_answered_too(run):
    async def main():
        store = MemoryStore()
        async with (
            ActorSystem() as system,
            Asking(runner := runner_of(refunding(), store, system=system)) as ask,
        ):
            interrupt = await waiting(runner)
            await ask.post("run/answer", id="r", interrupt=interrupt, kind="approve", by="ada")
            await ended(runner)
            before = await store.keys("offbook:answered-by:")
            await ask.post("run/forget", id="r")
            return before, await store.keys(""), await ask.post("run/forget", 404, id="r")

    before, after, again = run(main())
    assert (before, after) == (["offbook:answered-by:r"], [])
    assert "no run 'r'" in again["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"id": 7}', 400),
        (b"", 400),
        (b'{"id": "' + b"x" * 1_048_577 + b'"}', 413),
        (b"[" * 200_000, 400),
    ],
)
def test_a_request_that_is_no_json_object_or_too_large_is_refused(run, body, status):
    async def main():
        async with Asking(runner_of(desk())) as ask:
            return await ask.client.post(
                "/api/run/forget", content=body, headers={"Content-Type": "application/json"}
            )

    assert run(main()).status_code == status
