"""Plan, do the first step, look again at the plan, until there is an answer."""

import pytest

from offbook.actors import (
    ChatModelAgent,
    Loop,
    PlanExecute,
    Sequential,
    make_executor,
    make_planner,
    make_replanner,
)
from offbook.runtime import (
    BreakLoop,
    MaxIterationsExceeded,
    ModelBehaviorError,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    Usage,
    UsageError,
)

PE = "plan_execute_replan"
ER = "execute_replan"


def plan(*steps):
    return ToolCalls(plan={"steps": list(steps)})


def respond(text):
    return ToolCalls(respond={"response": text})


class Team:
    """The three roles, with what each model says."""

    def __init__(self, planner, executor, replanner, *, tools=(), **options):
        self.planner, self.executor, self.replanner = (
            ScriptedModel(script) for script in (planner, executor, replanner)
        )
        self.agent = PlanExecute(
            planner=make_planner(self.planner),
            executor=make_executor(self.executor, tools),
            replanner=make_replanner(self.replanner),
            **options,
        )

    def play(self, **options):
        return Runner(self.agent).query("the objective", **options).result(10)


@pytest.fixture
def team():
    return Team([plan("a", "b")], ["ra", "rb"], [plan("b"), respond("R")])


def test_the_events_are_these(lines, team):
    result = team.play()
    assert lines(result) == [
        f'planner [{PE},planner] assistant "{{"steps":["a","b"]}}"',
        f'executor [{PE},planner,{ER},executor] assistant "ra"',
        f'replanner [{PE},planner,{ER},executor,replanner] assistant "{{"steps":["b"]}}"',
        f'executor [{PE},planner,{ER},executor,replanner,executor] assistant "rb"',
        f"replanner [{PE},planner,{ER},executor,replanner,executor,replanner] assistant "
        '"{"response":"R"}" {BreakLoop by replanner, done, iteration 1}',
        f'replanner [{PE},planner,{ER},executor,replanner,executor,replanner] assistant "R"',
    ]
    assert result.status is RunStatus.COMPLETED
    assert result.final_message.text == result.final_output == "R"
    assert result.last_agent == "replanner"


def test_its_parts_are_named(team):
    assert team.agent.name == PE
    planner, loop = team.agent.sub_agents
    assert (planner.name, loop.name, [one.name for one in loop.sub_agents]) == (
        "planner",
        ER,
        ["executor", "replanner"],
    )
    assert isinstance(team.agent, Sequential)
    assert isinstance(loop, Loop)


def test_the_session_values_are_these(team):
    values = team.play().session_values
    assert {"UserInput", "Plan", "ExecutedStep", "ExecutedSteps"} <= set(values)
    assert [message.text for message in values["UserInput"]] == ["the objective"]
    assert values["Plan"] == ["b"]
    assert values["ExecutedStep"] == "rb"
    assert values["ExecutedSteps"] == [{"step": "a", "result": "ra"}, {"step": "b", "result": "rb"}]


def test_the_planner_is_forced_to_plan(team):
    team.play()
    (request,) = team.planner.requests
    assert [tool.name for tool in request.tools] == ["plan"]
    assert request.tool_choice == "plan"
    assert request.tools[0].parameters["properties"]["steps"]["type"] == "array"
    assert request.messages[-1].text == "the objective"


def test_the_replanner_is_forced_to_plan_or_respond(team):
    team.play()
    for request in team.replanner.requests:
        assert sorted(tool.name for tool in request.tools) == ["plan", "respond"]
        assert request.tool_choice == "required"


def test_the_executor_is_asked_for_the_first_step_with_all_that_it_needs(team):
    team.play()
    first, second = (request.messages[-1].text for request in team.executor.requests)
    assert all("the objective" in text for text in (first, second))
    assert "1. a\n2. b" in first
    assert first.endswith("\na")
    assert "ra" not in first
    assert second.endswith("\nb")
    assert "Step: a\nResult: ra" in second


def test_the_replanner_is_told_the_objective_the_plan_and_what_was_done(team):
    team.play()
    text = team.replanner.requests[1].messages[-1].text
    assert all(
        part in text
        for part in ("the objective", "1. b", "Step: a\nResult: ra", "Step: b\nResult: rb")
    )


def test_the_executor_has_tools_and_its_last_message_is_the_step_s_result(lines):
    def look(what: str) -> str:
        return f"saw {what}"

    team = Team([plan("a")], [ToolCalls(look={"what": "x"}), "ra"], [respond("R")], tools=[look])
    result = team.play()
    assert [line for line in lines(result) if line.startswith("executor")] == [
        f'executor [{PE},planner,{ER},executor] assistant "" tc(look {{"what":"x"}})',
        f'executor [{PE},planner,{ER},executor] tool(look) "saw x"',
        f'executor [{PE},planner,{ER},executor] assistant "ra"',
    ]
    assert result.session_values["ExecutedSteps"] == [{"step": "a", "result": "ra"}]


# --- models that do something else ---


@pytest.mark.parametrize(
    "reply",
    [
        "I would rather talk.",
        respond("R"),
        ToolCalls(other={}),
        ToolCalls(plan="broken {"),
        ToolCalls(plan={"steps": "a"}),
        ToolCalls(plan={}),
    ],
)
def test_a_planner_that_does_not_plan_is_an_error(lines, reply):
    result = Team([reply], [], []).play()
    assert len(result.events) == 1
    assert lines(result)[0].startswith(f"planner [{PE},planner] error ModelBehaviorError")
    assert isinstance(result.error, ModelBehaviorError)
    assert result.status is RunStatus.FAILED


@pytest.mark.parametrize(
    "reply",
    [
        "I would rather talk.",
        ToolCalls(other={}),
        ToolCalls(respond={"response": 5}),
        ToolCalls(plan={"steps": [1]}),
    ],
)
def test_a_replanner_that_does_neither_is_an_error(lines, reply):
    result = Team([plan("a")], ["ra"], [reply]).play()
    assert [event.agent_name for event in result.events] == ["planner", "executor", "replanner"]
    assert isinstance(result.events[-1].error, ModelBehaviorError)
    assert result.status is RunStatus.FAILED


def test_an_error_says_what_the_model_did():
    error = Team([ToolCalls(other={})], [], []).play().error
    assert "planner" in str(error)
    assert "plan" in str(error)
    assert "other" in str(error)


@pytest.mark.parametrize("role", ["planner", "executor", "replanner"])
def test_a_model_that_fails_ends_the_run_there(role):
    scripts = {"planner": [plan("a")], "executor": ["ra"], "replanner": [respond("R")]} | {
        role: [ConnectionError("down")]
    }
    result = Team(**scripts).play()
    assert result.status is RunStatus.FAILED
    assert result.last_agent == role


def test_an_executor_that_runs_out_of_model_calls_is_an_error():
    def look() -> str:
        return "x"

    executor = make_executor(ScriptedModel([ToolCalls(look={})] * 3), [look], max_iterations=2)
    agent = PlanExecute(
        planner=make_planner(ScriptedModel([plan("a")])),
        executor=executor,
        replanner=make_replanner(ScriptedModel([])),
    )
    assert isinstance(Runner(agent).query("q").result().error, MaxIterationsExceeded)


# --- the last time ---


def test_in_the_last_round_the_replanner_is_asked_to_respond_only(lines):
    team = Team(
        [plan("a", "b", "c")], ["ra", "rb"], [plan("b", "c"), respond("so far")], max_iterations=2
    )
    result = team.play()
    first, last = team.replanner.requests
    assert sorted(tool.name for tool in first.tools) == ["plan", "respond"]
    assert [tool.name for tool in last.tools] == ["respond"]
    assert last.tool_choice == "respond"
    assert lines(result)[-2].endswith(
        'assistant "{"response":"so far"}" {BreakLoop by replanner, done, iteration 1}'
    )
    assert result.final_output == "so far"
    assert result.status is RunStatus.COMPLETED


def test_with_one_round_the_replanner_is_asked_to_respond_at_once():
    team = Team([plan("a")], ["ra"], [respond("R")], max_iterations=1)
    assert team.play().final_output == "R"
    assert [tool.name for tool in team.replanner.requests[0].tools] == ["respond"]


def test_a_replanner_that_plans_in_the_last_round_is_an_error():
    result = Team([plan("a")], ["ra"], [plan("b")], max_iterations=1).play()
    assert isinstance(result.error, ModelBehaviorError)
    assert result.status is RunStatus.FAILED


def test_without_a_number_there_are_ten_rounds():
    team = Team([plan("a")], ["r"] * 10, [*[plan("a")] * 9, respond("R")])
    result = team.play()
    assert result.final_output == "R"
    assert result.events[-2].action == BreakLoop("replanner", done=True, iteration=9)
    assert [tool.name for tool in team.replanner.requests[9].tools] == ["respond"]


def test_no_round_at_all_is_refused():
    with pytest.raises(UsageError, match="max_iterations must be 1 or more, got 0"):
        Team([], [], [], max_iterations=0)


def test_one_replanner_plays_in_two_teams_of_different_length():
    replanner = make_replanner(ScriptedModel([respond("one"), plan("b"), respond("two")]))

    def make(most):
        return PlanExecute(
            planner=make_planner(ScriptedModel([plan("a")])),
            executor=make_executor(ScriptedModel(["r"] * 5)),
            replanner=replanner,
            max_iterations=most,
        )

    short, long = make(1), make(5)
    assert Runner(short).query("q").result().final_output == "one"
    assert Runner(long).query("q").result().final_output == "two"


# --- in other places ---


def test_the_next_agent_goes_on_after_it(team, actor):
    after = actor("Z", "z")
    result = Runner(Sequential(name="S", sub_agents=[team.agent, after])).query("q").result()
    assert result.final_output == "z"
    assert after.inputs[0][-1].text == "For context: [replanner] said: R."


def test_as_a_tool_its_result_is_the_answer(team):
    outer = ChatModelAgent(
        name="outer",
        model=ScriptedModel([ToolCalls(plan_execute_replan={"request": "do it"}), "end"]),
        tools=[team.agent.as_tool()],
    )
    assert [event.message.text for event in Runner(outer).query("q").result().events] == [
        "",
        "R",
        "end",
    ]
    assert team.planner.requests[0].messages[-1].text == "do it"


def test_a_break_of_the_replanner_does_not_reach_a_loop_around_all(actor):
    team = Team([plan("a"), plan("a")], ["r", "r"], [respond("one"), respond("two")])
    result = Runner(Loop(name="L", sub_agents=[team.agent], max_iterations=2)).query("q").result()
    assert result.final_output == "two"
    assert result.session_values["ExecutedSteps"] == [{"step": "a", "result": "r"}]


def test_a_second_run_begins_anew():
    team = Team([plan("a"), plan("b")], ["ra", "rb"], [respond("one"), respond("two")])
    runner = Runner(team.agent)
    runner.query("q1").result()
    assert runner.query("q2").result().session_values["ExecutedSteps"] == [
        {"step": "b", "result": "rb"}
    ]


def test_agents_of_one_s_own_may_take_a_role(actor):
    async def set_plan(context):
        context.session["Plan"] = ["x"]

    agent = PlanExecute(
        planner=actor("planner", set_plan, "p"),
        executor=actor("executor", "e"),
        replanner=actor("replanner", ["r"], ["done", BreakLoop()]),
    )
    result = Runner(agent).query("q").result()
    assert [event.agent_name for event in result.events if event.message] == [
        "planner",
        "executor",
        "replanner",
        "executor",
        "replanner",
    ]


def test_what_its_models_used_is_counted():
    from offbook.runtime import Message

    def used(name, arguments, number):
        return Message(
            "assistant", "", (ToolCall(f"c{number}", name, arguments),), usage=Usage(number, number)
        )

    team = Team(
        [used("plan", '{"steps":["a"]}', 1)],
        [Message("assistant", "ra", usage=Usage(10, 10))],
        [used("respond", '{"response":"R"}', 100)],
    )
    assert team.play().usage == Usage(111, 111)


def test_its_roles_stream_their_deltas_no_less_than_their_messages(team):
    events = list(Runner(team.agent, streaming=True).query("q"))
    whole = [event for event in events if event.delta is None]
    assert len(whole) == 6
    assert any(event.delta is not None for event in events)
