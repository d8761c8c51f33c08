"""Plan, execute, replan, by plain agents: what they are given, and how their plans and answers are
read.
"""

import pytest
from pydantic import BaseModel

from offbook.actors import (
    ChatModelAgent,
    PlanExecute,
    Supervisor,
    ToolContext,
    make_executor,
    make_planner,
    make_replanner,
    tool,
)
from offbook.actors.prebuilt.plain_roles import read_answer, read_steps
from offbook.runtime import (
    BreakLoop,
    ModelBehaviorError,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from tests.doubles.waiting import Stage, chat

PE = "plan_execute_replan"
ER = "execute_replan"


class Team:
    """Three plain agents, with what each model says."""

    def __init__(self, planner, executor, replanner, *, tools=(), **options):
        self.planner = chat("research_planner", *planner, instruction="Make a detailed plan.")
        self.executor = chat("research_executor", *executor, tools=tools)
        self.replanner = chat("research_replanner", *replanner)
        self.agent = PlanExecute(
            planner=self.planner, executor=self.executor, replanner=self.replanner, **options
        )

    def play(self, **options):
        return Runner(self.agent).query("the objective", **options).result(10)


def asked(agent, call=0):
    return agent.model.requests[call].messages[-1].text


def test_plain_agents_play_the_roles(lines):
    team = Team(
        ["1. read\n2. write"],
        ["have read", "have written"],
        ["1. write", '{"response": "It is done."}'],
    )
    result = team.play()
    planner, executor = f"{PE},research_planner", f"{PE},research_planner,{ER},research_executor"
    again = f"{executor},research_replanner,research_executor"
    assert lines(result) == [
        f'research_planner [{planner}] assistant "1. read\n2. write"',
        f'research_executor [{executor}] assistant "have read"',
        f'research_replanner [{executor},research_replanner] assistant "1. write"',
        f'research_executor [{again}] assistant "have written"',
        f'research_replanner [{again},research_replanner] assistant "{{"response": "It is '
        'done."}"',
        f'research_replanner [{again},research_replanner] assistant "It is done." '
        "{BreakLoop by research_replanner, done, iteration 1}",
    ]
    assert (result.status, result.final_output) == (RunStatus.COMPLETED, "It is done.")
    assert [message.text for message in result.session_values["UserInput"]] == ["the objective"]
    assert result.session_values["ExecutedSteps"] == [
        {"step": "read", "result": "have read"},
        {"step": "write", "result": "have written"},
    ]


def test_each_is_given_the_objective_the_plan_and_the_results():
    team = Team(
        ['["read", "write"]'],
        ["have read", "have written"],
        ['{"steps": ["write"]}', "The answer."],
    )
    team.play()
    assert [message.text for message in team.planner.model.requests[0].messages] == [
        "Make a detailed plan.",
        "the objective",
    ]
    first, second = asked(team.executor), asked(team.executor, 1)
    assert first.startswith("OBJECTIVE:\nthe objective\n\nPLAN:\n1. read\n2. write\n")
    assert first.endswith("YOUR TASK is the first step of the plan:\nread")
    assert "Step: read\nResult: have read" in second
    assert second.endswith("\nwrite")
    text = asked(team.replanner, 1)
    assert all(
        part in text
        for part in (
            "the objective",
            "1. write",
            "Step: read\nResult: have read",
            "Step: write\nResult: have written",
            '"response"',
            '"steps"',
        )
    )


def test_they_play_beside_those_that_were_made_for_it():
    model = ScriptedModel([ToolCalls(plan={"steps": ["a"]}), ToolCalls(respond={"response": "R"})])
    executor = chat("E", "ra")
    result = (
        Runner(
            PlanExecute(
                planner=make_planner(model), executor=executor, replanner=make_replanner(model)
            )
        )
        .query("o")
        .result(10)
    )
    assert result.final_output == "R"
    assert "Result: ra" in model.requests[1].messages[-1].text
    made = PlanExecute(
        planner=chat("P", "- a"),
        executor=make_executor(ScriptedModel(["ra"])),
        replanner=chat("R", "The answer."),
    )
    assert Runner(made).query("o").result(10).session_values["ExecutedSteps"] == [
        {"step": "a", "result": "ra"}
    ]


def test_a_text_that_is_no_list_is_the_answer():
    result = Team(["1. read"], ["have read"], ["It says so:\n1. here\n2. there"]).play()
    assert result.final_output == "It says so:\n1. here\n2. there"
    assert (result.events[-1].message, result.events[-1].action) == (
        None,
        BreakLoop("research_replanner", done=True, iteration=0),
    )


def test_a_replanner_may_break_the_loop_by_a_tool():
    @tool(return_directly=True)
    def finish(context: ToolContext, answer: str) -> str:
        context.send_action(BreakLoop())
        return answer

    replanner = chat("R", ToolCalls(finish={"answer": "done"}), tools=[finish])
    result = (
        Runner(
            PlanExecute(planner=chat("P", "1. a"), executor=chat("E", "ra"), replanner=replanner)
        )
        .query("o")
        .result(10)
    )
    assert (result.status, result.final_output, len(replanner.model.requests)) == (
        RunStatus.COMPLETED,
        "done",
        1,
    )


def test_in_the_last_round_what_it_says_is_the_answer():
    team = Team(["1. a\n2. b"], ["ra"], ["all that is known"], max_iterations=1)
    assert team.play().final_output == "all that is known"
    assert "There is no time for further steps" in asked(team.replanner)


@pytest.mark.parametrize(
    ("planner", "replanner", "most"),
    [([""], [], 3), (["{}"], [], 3), (["1. a"], [""], 3), (["1. a"], ["1. b"], 1)],
)
def test_an_agent_that_says_nothing_of_use_is_an_error(planner, replanner, most):
    result = Team(planner, ["ra"], replanner, max_iterations=most).play()
    assert isinstance(result.error, ModelBehaviorError)
    assert "the reply of its model must contain" in str(result.error)


def test_a_planner_may_have_an_output_type():
    class Plan(BaseModel):
        steps: list[str]

    for form, said in ((Plan, '{"steps": ["a", "b"]}'), (list[str], '{"response": ["a", "b"]}')):
        planner = chat("P", said, output_type=form)
        result = (
            Runner(PlanExecute(planner=planner, executor=chat("E", "ra"), replanner=chat("R", "R")))
            .query("o")
            .result(10)
        )
        assert result.session_values["Plan"] == ["a", "b"]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_executor_that_waits_goes_on_in_its_place(durability):
    @tool
    async def ask(context: ToolContext) -> str:
        return f"heard {context.interrupt('which?')}"

    team = Team(
        ["1. a\n2. b"], ["ra", ToolCalls(ask={}), "rb"], ["1. b", "The answer."], tools=[ask]
    )
    play = Stage(team.agent, durability=durability)
    (context,) = play.start("the objective").interrupts
    assert [step.name for step in context.address] == [PE, ER, "research_executor", "ask"]
    result = play.go_on(data="x")
    assert result.final_output == "The answer."
    assert result.session_values["ExecutedSteps"] == [
        {"step": "a", "result": "ra"},
        {"step": "b", "result": "rb"},
    ]
    assert len(team.planner.model.requests) == 1


# --- agents that cannot play their part ---


@pytest.mark.parametrize("role", ["planner", "executor", "replanner"])
def test_an_agent_that_was_made_for_another_role_is_refused(role):
    model = ScriptedModel([])
    for other, make in (
        ("planner", make_planner),
        ("executor", make_executor),
        ("replanner", make_replanner),
    ):
        if other != role:
            team = {name: chat(name) for name in ("planner", "executor", "replanner")} | {
                role: make(model, name="X")
            }
            agent = PlanExecute(**team)
            with pytest.raises(UsageError, match=rf"{role}='X'.*the {other}.*make_{role}"):
                Runner(agent)


@pytest.mark.parametrize("role", ["planner", "replanner"])
def test_an_output_type_without_a_plan_in_it_is_refused(role):
    class Weather(BaseModel):
        degrees: float

    team = {name: chat(name) for name in ("planner", "executor", "replanner")} | {
        role: chat("X", output_type=Weather)
    }
    agent = PlanExecute(**team)
    with pytest.raises(UsageError, match=rf"{role}='X'.*output_type.*steps"):
        Runner(agent)


def test_what_is_no_agent_is_refused():
    with pytest.raises(UsageError, match=r"must contain instances of Agent.*, got 'plan it'"):
        Runner(PlanExecute(planner="plan it", executor=chat("E"), replanner=chat("R")))


def test_a_team_may_be_the_executor_and_looks_after_the_values_itself(actor):
    team = Supervisor(supervisor=chat("E", "ra"), sub_agents=[actor("helper")])
    result = (
        Runner(PlanExecute(planner=chat("P", "1. a"), executor=team, replanner=chat("R", "R")))
        .query("o")
        .result(10)
    )
    assert result.final_output == "R"


def test_it_is_still_a_chat_model_s_agent():
    assert isinstance(make_executor(ScriptedModel([])), ChatModelAgent)


# --- how a plan is read ---


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. a\n2. b", ["a", "b"]),
        ("1) a\n2) b", ["a", "b"]),
        ("- a\n- b", ["a", "b"]),
        ("* a\n\n* b", ["a", "b"]),
        ("Here is the plan:\n1. a\n   - in detail\n2. b\nGood luck!", ["a", "b"]),
        ("Step 1: a\nStep 2: b", ["a", "b"]),
        ("\u6b65\u9aa41\uff1aa\n\u7b2c2\u6b65\uff1ab", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("# Plan\n\na\nb", ["a", "b"]),
        ('{"steps": ["a", "b"]}', ["a", "b"]),
        ('{"plan": ["a", "b"]}', ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ('Here it is:\n```json\n{"steps": ["a", "b"]}\n```\n', ["a", "b"]),
        ('{"steps": [{"id": 1, "description": "a"}, {"step": "b"}]}', ["a", "b"]),
        ("", []),
        ('{"steps": []}', []),
        ("{}", []),
    ],
)
def test_a_plan_is_read_from_lines_and_from_json(text, steps):
    assert read_steps(text) == steps


@pytest.mark.parametrize(
    ("text", "answer", "steps"),
    [
        ('{"response": "R"}', "R", []),
        ('```json\n{"response": "R"}\n```', "R", []),
        ('{"steps": ["a"]}', None, ["a"]),
        ("1. a\n2. b", None, ["a", "b"]),
        ("It is so:\n1. a", "It is so:\n1. a", []),
        ("It is so.", "It is so.", []),
        ("", None, []),
    ],
)
def test_an_answer_is_told_from_a_plan(text, answer, steps):
    assert read_answer(text) == (answer, steps)
