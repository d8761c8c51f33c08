"""Approvals in runs of the SDK: on the SDK's `RunState`, and by offbook's own resume, in any
process.
"""

import json

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    OutputGuardrail,
    RunHooks,
    RunState,
    UserError,
    function_tool,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

import offbook
from offbook import MemoryStore, ResumeError, UsageError
from offbook.actors import Approve, Deny
from offbook.agents_sdk import Runner, SdkAgent


def payer(paid, *amounts):
    """Pays these amounts one after the other, each with an approval, and then says so."""

    @function_tool(needs_approval=True)
    async def pay(euros: int) -> str:
        paid.append(euros)
        return f"paid {euros}"

    def answer(call):
        results = [
            item["output"] for item in call.input if item.get("type") == "function_call_output"
        ]
        if len(results) < len(amounts):
            return [
                function_call("pay", {"euros": amounts[len(results)]}, call_id=f"c{len(results)}")
            ]
        return [assistant_message("; ".join(results))]

    return Agent(
        name="A", tools=[pay], model=ScriptedModel([ModelStep.respond(answer) for _ in range(9)])
    )


def stored(agent, store):
    return offbook.Runner(SdkAgent(agent), store=store, durability="step")


def test_a_run_state_is_approved_and_the_stored_run_goes_on(run):
    async def main():
        store, paid = MemoryStore(), []
        agent = payer(paid, 10, 20)
        result = await Runner.run(agent, "q", store=store, run_id="r")
        for amount in (10, 20):
            (item,) = result.interruptions
            state = result.to_state()
            state.approve(item)
            result = await Runner.run(agent, state, store=store)
            assert paid[-1] == amount
        assert result.final_output == "paid 10; paid 20"
        assert (await stored(agent, store).info("r")).status == "completed"

    run(main())


class Hooks(RunHooks):
    """Notes which tools are about to be called."""

    def __init__(self):
        self.noted = []

    async def on_tool_start(self, context, agent, tool):
        self.noted.append(tool.name)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_g22_a_state_that_was_answered_is_refused_and_nothing_is_called_again(run, store_of, kind):
    async def main():
        store, paid = store_of(kind), []
        agent = payer(paid, 10, 10_000)
        result = await Runner.run(agent, "q", store=store, run_id="r")
        first, second = result.to_state(), result.to_state()
        first.approve(first.get_interruptions()[0])
        second.approve(second.get_interruptions()[0])
        await Runner.run(agent, first, store=store)
        hooks = Hooks()
        with pytest.raises(ResumeError, match="does not belong to what run 'r'"):
            await Runner.run(agent, second, store=store, hooks=hooks)
        assert hooks.noted == []
        again = await RunState.from_json(agent, second.to_json())
        with pytest.raises(ResumeError, match="does not belong to what run 'r'"):
            await Runner.run(agent, again, store=store, run_id="r")
        assert paid == [10]

    run(main())


@pytest.mark.parametrize("named", [True, False])
def test_a_state_from_json_finds_its_run(run, named):
    async def main():
        store, paid = MemoryStore(), []
        result = await Runner.run(payer(paid, 10), "q", store=store, run_id="r")
        text = json.dumps(result.to_state().to_json())
        agent = payer(paid, 10)  # of another process
        state = await RunState.from_json(agent, json.loads(text))
        state.approve(state.get_interruptions()[0])
        result = await Runner.run(agent, state, store=store, **({"run_id": "r"} if named else {}))
        assert (result.final_output, paid) == ("paid 10", [10])
        assert (await stored(agent, store).info("r")).status == "completed"

    run(main())


def test_what_was_decided_before_the_state_became_json_counts(run):
    async def main():
        store, paid = MemoryStore(), []
        state = (await Runner.run(payer(paid, 10), "q", store=store, run_id="r")).to_state()
        state.reject(state.get_interruptions()[0], rejection_message="too much")
        agent = payer(paid, 10)
        state = await RunState.from_json(agent, state.to_json())
        result = await Runner.run(agent, state, store=store, run_id="r")
        assert (result.final_output, paid) == ("too much", [])

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_g22_a_state_that_the_sdk_refuses_leaves_the_question_open(run, streamed):
    async def main():
        store, paid = MemoryStore(), []
        agent = payer(paid, 10, 20)
        agent.output_guardrails = [
            OutputGuardrail(lambda context, agent, output: GuardrailFunctionOutput(None, False))
        ]

        async def answer(saved):
            state = await RunState.from_json(agent, saved)
            state.approve(state.get_interruptions()[0])
            if not streamed:
                return await Runner.run(agent, state, store=store)
            result = Runner.run_streamed(agent, state, store=store)
            async for _ in result.stream_events():
                pass
            return result

        first = await Runner.run(agent, "q", store=store, run_id="r")
        saved = (await answer(first.to_state().to_json())).to_state().to_json()
        (shown,) = (await stored(agent, store).info("r")).waiting
        spoilt = json.loads(json.dumps(saved))
        spoilt["current_response_generated_item_ownership"]["interruptions"] = [True]
        with pytest.raises(UserError, match="cannot be proven"):
            await answer(spoilt)
        info = await stored(agent, store).info("r")
        assert (info.status, [one.id for one in info.waiting], paid) == (
            "interrupted",
            [shown.id],
            [10],
        )
        assert (await answer(saved)).final_output == "paid 10; paid 20"
        with pytest.raises(ResumeError, match="does not belong to what run 'r'"):
            await answer(saved)
        assert paid == [10, 20]

    run(main())


def test_a_state_of_one_run_is_not_taken_for_another_one(run):
    async def main():
        store, paid = MemoryStore(), []
        agent = payer(paid, 10)
        other = await Runner.run(payer(paid, 99), "q", store=store, run_id="other")
        result = await Runner.run(agent, "q", store=store, run_id="r")
        state = result.to_state()
        state.approve(state.get_interruptions()[0])
        with pytest.raises(UsageError, match="belong to different runs"):
            await Runner.run(agent, state, store=store, run_id="other")
        assert paid == []
        assert len(other.interruptions) == 1

    run(main())


@pytest.mark.parametrize("decided", ["before", "after"])
def test_g22_the_json_of_a_state_answers_its_own_run_once(run, decided):
    """Ids of calls are those that a model gives: two runs may have the same.

    The JSON of a state names its run and what that asked.
    """

    async def main():
        store, paid = MemoryStore(), []
        agent = payer(paid, 10)
        first = await Runner.run(agent, "q", store=store)
        await Runner.run(payer(paid, 10), "q", store=store, run_id="other")
        state = first.to_state()
        if decided == "before":
            state.approve(state.get_interruptions()[0])
        text = state.to_json()

        async def answer(**named):
            again = await RunState.from_json(agent, text)
            if decided == "after":
                again.approve(again.get_interruptions()[0])
            return await Runner.run(agent, again, store=store, **named)

        with pytest.raises(UsageError, match="belong to different runs"):
            await answer(run_id="other")
        assert (await answer()).final_output == "paid 10"
        for _ in range(2):
            with pytest.raises(ResumeError, match="does not belong to what run"):
                await answer()
        with pytest.raises(ResumeError, match="which this store does not have"):
            await Runner.run(agent, await RunState.from_json(agent, text), store=MemoryStore())
        assert paid == [10]
        assert (await stored(agent, store).info("other")).status == "interrupted"

    run(main())


@pytest.mark.parametrize(
    ("answer", "text", "amounts"),
    [
        (True, "paid 10", [10]),
        (False, "Tool execution was not approved.", []),
        (Deny("not today"), "not today", []),
        (Approve({"euros": 5}), "paid 5", [5]),
    ],
)
def test_a_run_is_answered_by_offbooks_own_resume_in_another_process(run, answer, text, amounts):
    async def main():
        store, paid = MemoryStore(), []
        await Runner.run(payer(paid, 10), "q", store=store, run_id="r")
        runner = stored(payer(paid, 10), store)
        (info,) = await runner.pending()
        (waiting,) = info.waiting
        assert (waiting.info.tool_name, waiting.info.arguments) == ("pay", '{"euros":10}')
        result = await runner.resume("r", {waiting.id: answer})
        assert (result.text, paid) == (text, amounts)

    run(main())


def test_a_decision_for_always_holds_for_later_calls_and_after_a_crash(run):
    async def main():
        store, paid = MemoryStore(), []
        agent = payer(paid, 1, 2, 3)
        state = (await Runner.run(agent, "q", store=store, run_id="r")).to_state()
        state.approve(state.get_interruptions()[0], always_approve=True)
        result = await Runner.run(agent, state, store=store)
        assert (result.final_output, paid) == ("paid 1; paid 2; paid 3", [1, 2, 3])

    run(main())


def test_a_streamed_run_is_approved_in_a_stream(run):
    async def main():
        store, paid = MemoryStore(), []
        agent = payer(paid, 10)
        result = Runner.run_streamed(agent, "q", store=store, run_id="r")
        async for _ in result.stream_events():
            pass
        state = result.to_state()
        state.approve(result.interruptions[0])
        result = Runner.run_streamed(agent, state, store=store)
        async for _ in result.stream_events():
            pass
        assert (result.final_output, paid) == ("paid 10", [10])
        assert (await stored(agent, store).info("r")).status == "completed"

    run(main())


def test_a_run_that_waits_is_asked_for_again_and_gives_a_result_that_can_be_answered(run):
    async def main():
        store, paid = MemoryStore(), []
        await Runner.run(payer(paid, 10), "q", store=store, run_id="r")
        agent = payer(paid, 10)
        result = await Runner.run(agent, "q", store=store, run_id="r")
        state = result.to_state()
        state.approve(result.interruptions[0])
        result = await Runner.run(agent, state, store=store)
        assert (result.final_output, paid) == ("paid 10", [10])

    run(main())
