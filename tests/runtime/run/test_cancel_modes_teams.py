"""`run.cancel(mode)` where agents work for others: within an agent tool, in a team, in a plan that
is being carried out.
"""

import pytest

from offbook.actors import (
    PlanExecute,
    Supervisor,
    ToolContext,
    make_executor,
    make_planner,
    make_replanner,
    tool,
)
from offbook.runtime import ScriptedModel, ToolCalls
from tests.doubles.cancelling import (
    BACK,
    MODES,
    SAFE,
    TO_B,
    CancelledRun,
    Door,
    after,
    chat,
    quick,
    to,
    turns,
    waiting,
)

# --- within an agent tool ---


def test_immediate_reaches_an_agent_that_is_called_as_a_tool_and_the_outer_model_is_not_asked_again(
    run,
):
    async def main():
        door = Door()
        inner = chat("I", after(door, "never"), "inner")
        outer = chat(
            "O", ToolCalls(I={"request": "go"}), "outer", tools=[inner.as_tool(emit_events=True)]
        )
        async with CancelledRun(outer) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["O calls I", "O RunCancelled"]
            assert await stage.go_on() == ["I inner", "O I: inner", "O outer"]
            assert [len(agent.model.requests) for agent in (outer, inner)] == [2, 2]
            assert inner.model.requests[0] == inner.model.requests[1]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_an_agent_that_is_called_as_a_tool_comes_to_its_own_safe_point(run, mode):
    async def main():
        door, slow = Door(), Door()
        slow.open()
        inner = chat("I", after(door, ToolCalls(slow={})), "inner", tools=[waiting(slow)])
        outer = chat(
            "O", ToolCalls(I={"request": "go"}), "outer", tools=[inner.as_tool(emit_events=True)]
        )
        async with CancelledRun(outer) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            left = [] if mode == "after_model" else ["I slow: slow done"]
            assert await stage.end() == ["O calls I", "I calls slow", *left, "O RunCancelled"]
            assert await stage.go_on() == [
                *([] if left else ["I slow: slow done"]),
                "I inner",
                "O I: inner",
                "O outer",
            ]
            assert (len(outer.model.requests), len(inner.model.requests), slow.reached) == (2, 2, 1)

    run(main())


@pytest.mark.parametrize("mode", SAFE)
@pytest.mark.parametrize("how", ["plain", "direct", "fails", "waits"])
def test_a_call_beside_an_agent_tool_may_be_the_last_that_comes_to_an_end(run, mode, how):
    """Nothing is shown of a call that returns directly, that fails its agent, or that waits for
    something: the run ends all the same.
    """

    async def main():
        inside, door = Door(), Door()
        inner = chat("I", after(inside, ToolCalls(quick={})), "inner", tools=[quick])
        slow = (
            waiting(door, return_directly=how == "direct")
            if how in ("plain", "direct")
            else _ending(door, how)
        )
        outer = chat(
            "O",
            ToolCalls(("I", {"request": "go"}), ("slow", {})),
            "outer",
            tools=[inner.as_tool(), slow],
            on_tool_error="raise" if how == "fails" else "report",
        )
        async with CancelledRun(outer) as stage:
            await stage.play()
            await inside.somebody()
            await door.somebody()
            handle = await stage.cancel(mode)
            inside.open()
            await turns(20)
            door.open()
            assert await handle is True
            assert await stage.end() == [
                "O calls I calls slow",
                *(["O slow: slow done"] if how == "plain" else []),
                "O RunCancelled",
            ]

    run(main())


def _ending(door, how):
    @tool(name="slow")
    async def slow(context: ToolContext) -> str:
        await door.wait()
        if how == "fails":
            raise ValueError("broken")
        return context.interrupt("well?")

    return slow


# --- teams ---


@pytest.mark.parametrize("mode", MODES)
def test_a_supervisor_goes_on_where_its_team_was_when_the_run_was_cancelled(run, mode):
    async def main():
        door = Door()
        chief = chat("A", to("B"), "all done")
        member = chat("B", after(door, "b"), "b again")
        async with CancelledRun(Supervisor(supervisor=chief, sub_agents=[member])) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            if mode == "immediate":
                assert await stage.end() == [*TO_B, "A RunCancelled"]
                assert await stage.go_on() == ["B b again", *BACK, "A all done"]
            else:
                assert await stage.end() == [*TO_B, "B b", *BACK, "A RunCancelled"]
                assert await stage.go_on() == ["A all done"]
            assert len(chief.model.requests) == 2

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_plan_that_is_being_carried_out_is_carried_out_to_its_end(run, mode):
    async def main():
        door = Door()
        planner, replanner = (
            ScriptedModel([ToolCalls(plan={"steps": ["a", "b"]})]),
            ScriptedModel([ToolCalls(respond={"response": "R"})]),
        )
        executor = ScriptedModel(
            [after(door, "ra"), *(["ra again"] if mode == "immediate" else [])]
        )
        agent = PlanExecute(
            planner=make_planner(planner),
            executor=make_executor(executor),
            replanner=make_replanner(replanner),
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            done = [] if mode == "immediate" else ["executor ra"]
            assert await stage.end() == [
                'planner {"steps":["a","b"]}',
                *done,
                "plan_execute_replan RunCancelled",
            ]
            again = ["executor ra again"] if mode == "immediate" else []
            assert await stage.go_on() == [
                *again,
                'replanner {"response":"R"} breaks',
                "replanner R",
            ]
            result = await stage.run
            assert result.session_values["ExecutedSteps"] == [
                {"step": "a", "result": "ra again" if again else "ra"}
            ]
            for model in (planner, executor, replanner):
                model.assert_done()

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_a_planner_that_is_being_asked_has_made_its_plan_when_the_run_ends(run, mode):
    async def main():
        door = Door()
        planner = ScriptedModel([after(door, ToolCalls(plan={"steps": ["a"]}))])
        executor, replanner = (
            ScriptedModel(["ra"]),
            ScriptedModel([ToolCalls(respond={"response": "R"})]),
        )
        agent = PlanExecute(
            planner=make_planner(planner),
            executor=make_executor(executor),
            replanner=make_replanner(replanner),
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == [
                'planner {"steps":["a"]}',
                "plan_execute_replan RunCancelled",
            ]
            assert await stage.go_on() == [
                "executor ra",
                'replanner {"response":"R"} breaks',
                "replanner R",
            ]

    run(main())
