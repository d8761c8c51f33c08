"""Agents that hand over, before they wait or after: the run goes on with whoever waited, and on its
way back.
"""

import pytest

from offbook.actors import (
    DeterministicTransfer,
    PlanExecute,
    Sequential,
    Supervisor,
    ToolContext,
    make_executor,
    make_planner,
    make_replanner,
    tool,
)
from offbook.runtime import (
    AddressStep,
    Exit,
    MaxTransfersExceeded,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
)
from tests.doubles.waiting import Asker, Stage, chain, chat, ids, is_whole, to, told


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    """How to put an agent on a stage, with either durability."""
    return lambda agent, **options: Stage(agent, durability=request.param, **options)


@tool
async def ask(context: ToolContext, question: str = "?") -> str:
    return f"heard {context.interrupt(question)}"


def agents(context):
    return [step.name for step in context.address]


def handed_over(agent, path, target):
    return [
        f'{agent} [{path}] assistant "" tc(transfer_to_agent {{"agent_name":"{target}"}})',
        f'{agent} [{path}] tool(transfer_to_agent) "successfully transferred to agent '
        f'[{target}]" {{TransferToAgent {target}}}',
    ]


# --- transfers ---


def test_who_was_handed_over_to_waits_and_goes_on(lines, asked, stage):
    weather = chat("Weather", ToolCalls(ask={}), "25°C", tools=[ask])
    router = chat("Router", to("Weather"), sub_agents=[weather])
    play = stage(router)
    result = play.start("weather?")
    assert lines(result) == [
        *handed_over("Router", "Router", "Weather"),
        'Weather [Router,Weather] assistant "" tc(ask {})',
        "Weather [Router,Weather] {Interrupted 1}",
    ]
    assert agents(result.interrupts[0]) == ["Router", "Weather", "ask"]
    result = play.go_on(data="Paris")
    assert lines(result) == [
        'Weather [Router,Weather] tool(ask) "heard Paris"',
        'Weather [Router,Weather] assistant "25°C"',
    ]
    assert (result.status, result.last_agent) == (RunStatus.COMPLETED, "Weather")
    assert len(router.model.requests) == 1
    assert asked(weather.model.requests[-1].messages)[1:] == [
        'user "weather?"',
        'user "For context: [Router] called tool: `transfer_to_agent` with arguments: '
        '{"agent_name":"Weather"}."',
        'user "For context: [Router] `transfer_to_agent` tool returned result: successfully '
        'transferred to agent [Weather]."',
        'assistant "" tc(ask {})',
        'tool(ask) "heard Paris"',
    ]


def test_transfers_chain_in_an_address(stage):
    a = chat("A", to("B"), ToolCalls(ask={}), "end", tools=[ask], sub_agents=[chat("B", to("A"))])
    play = stage(a)
    (context,) = play.start().interrupts
    assert context.address[:-1] == tuple(AddressStep("agent", name) for name in "ABA")
    result = play.go_on(data="x")
    assert {event.run_path for event in result.events} == {("A", "B", "A")}
    assert told(a.model) == [
        ("transfer_to_agent", "successfully transferred to agent [B]"),
        ("ask", "heard x"),
    ]


def test_after_an_interrupt_one_may_hand_over_down_and_up(lines, actor, stage):
    a = chat(
        "A",
        ToolCalls(ask={}),
        to("B"),
        "A ends",
        tools=[ask],
        sub_agents=[chat("B", ToolCalls(ask={}), to("A"), tools=[ask])],
    )
    play = stage(a)
    assert lines(play.start())[-1] == "A [A] {Interrupted 1}"
    assert lines(play.go_on(data=1))[-1] == "B [A,B] {Interrupted 1}"
    result = play.go_on(data=2)
    assert lines(result) == [
        'B [A,B] tool(ask) "heard 2"',
        *handed_over("B", "A,B", "A"),
        'A [A,B,A] assistant "A ends"',
    ]
    assert all(is_whole(request.messages) for request in a.model.requests)


def test_a_transfer_in_the_same_reply_happens_when_the_call_that_waits_has_its_answer(
    lines, actor, stage
):
    b = actor("B", "b")
    a = chat(
        "A",
        ToolCalls(("ask", {}), ("transfer_to_agent", {"agent_name": "B"})),
        tools=[ask],
        sub_agents=[b],
    )
    play = stage(a)
    assert lines(play.start())[-1] == "A [A] {Interrupted 1}"
    assert b.inputs == []
    result = play.go_on(data="x")
    assert lines(result)[0] == 'A [A] tool(ask) "heard x"'
    assert lines(result)[-1] == 'B [A,B] assistant "b"'
    assert sum("TransferToAgent B" in line for line in lines(result)) == 1


def test_a_custom_agent_hands_over_to_one_that_waits(lines, actor, stage):
    play = stage(actor("A", TransferToAgent("B"), sub_agents=[Asker("B")]))
    assert lines(play.start()) == ["A [A] {TransferToAgent B}", "B [A,B] {Interrupted 1}"]
    assert lines(play.go_on(data="x")) == ['B [A,B] assistant "B heard x"']


def test_transfers_before_and_after_an_interrupt_are_counted_together(stage):
    a = chat("A", to("B"), to("B"), sub_agents=[chat("B", ToolCalls(ask={}), to("A"), tools=[ask])])
    play = stage(a, max_transfers=2)
    play.start()
    result = play.go_on()
    assert isinstance(result.error, MaxTransfersExceeded)


# --- deterministic transfers ---


def test_a_deterministic_transfer_follows_when_its_agent_has_gone_on(lines, actor, stage):
    root = actor(
        "R",
        ["go", TransferToAgent("X")],
        ["end"],
        sub_agents=[DeterministicTransfer(Asker("X", "1?", "2?"), to=["R"])],
    )
    play = stage(root)
    result = play.start()
    assert lines(result)[2:] == ["X [R,X] {Interrupted 1}"]
    assert agents(result.interrupts[0]) == ["R", "X"], (
        "what stands around an agent has its place and its name"
    )
    assert lines(play.go_on(data=1)) == ["X [R,X] {Interrupted 1}"]
    assert lines(play.go_on(data=2)) == [
        'X [R,X] assistant "X heard 1,2"',
        *handed_over("X", "R,X", "R"),
        'R [R,X,R] assistant "end"',
    ]


# --- Supervisor ---


def test_a_supervised_agent_waits_and_hands_back_when_it_has_gone_on(lines, stage):
    boss = chat("S", to("A"), to("B"), "finish")
    team = Supervisor(
        supervisor=boss, sub_agents=[chat("A", ToolCalls(ask={}), "a", tools=[ask]), chat("B", "b")]
    )
    play = stage(team)
    result = play.start()
    assert lines(result)[-1] == "A [S,A] {Interrupted 1}"
    assert chain(result.interrupts[0])[0] == "agent:S/agent:A/tool:ask '?' root"
    result = play.go_on(data="x")
    assert lines(result) == [
        'A [S,A] tool(ask) "heard x"',
        'A [S,A] assistant "a"',
        *handed_over("A", "S,A", "S"),
        *handed_over("S", "S,A,S", "B"),
        'B [S,A,S,B] assistant "b"',
        *handed_over("B", "S,A,S,B", "S"),
        'S [S,A,S,B,S] assistant "finish"',
    ]
    assert all(is_whole(request.messages) for request in boss.model.requests)


def test_the_supervisor_itself_may_wait(lines, actor, stage):
    boss = chat("S", to("A"), ToolCalls(ask={}), "finish", tools=[ask])
    play = stage(Supervisor(supervisor=boss, sub_agents=[actor("A", "a")]))
    result = play.start()
    assert lines(result)[-1] == "S [S,A,S] {Interrupted 1}"
    assert lines(play.go_on(data="x")) == [
        'S [S,A,S] tool(ask) "heard x"',
        'S [S,A,S] assistant "finish"',
    ]


@pytest.mark.parametrize("on_error", ["abort", "report"])
def test_supervisors_of_supervisors_go_on_through_all_levels(lines, actor, stage, on_error):
    mid = Supervisor(
        supervisor=actor("Mid", [TransferToAgent("Leaf")], ["mid ends"]),
        sub_agents=[Asker("Leaf")],
        on_error=on_error,
    )
    top = Supervisor(
        supervisor=actor("Top", [TransferToAgent("Mid")], ["top ends"]),
        sub_agents=[mid],
        on_error=on_error,
    )
    play = stage(top)
    result = play.start()
    assert lines(result)[2:] == ["Leaf [Top,Mid,Leaf] {Interrupted 1}"]
    assert agents(result.interrupts[0]) == ["Top", "Mid", "Leaf"]
    result = play.go_on(data="x")
    assert lines(result)[0] == 'Leaf [Top,Mid,Leaf] assistant "Leaf heard x"'
    assert [event.agent_name for event in result.events] == [
        "Leaf",
        "Leaf",
        "Leaf",
        "Mid",
        "Mid",
        "Mid",
        "Top",
    ]
    assert result.final_output == "top ends"


@pytest.mark.parametrize(("on_error", "status"), [("abort", "failed"), ("report", "completed")])
def test_what_goes_wrong_after_an_interrupt_is_the_supervisor_s_as_ever(
    actor, stage, on_error, status
):
    @tool
    async def fail(context: ToolContext) -> str:
        context.interrupt("?")
        raise LookupError("sold out")

    a = chat("A", ToolCalls(fail={}), tools=[fail], on_tool_error="raise")
    boss = actor("S", [TransferToAgent("A")], ["end"])
    play = stage(Supervisor(supervisor=boss, sub_agents=[a], on_error=on_error))
    play.start()
    result = play.go_on()
    assert result.status == status
    assert len(boss.inputs) == (2 if on_error == "report" else 1)
    if on_error == "report":
        assert any("sold out" in message.text for message in boss.inputs[1])


def test_an_exit_after_an_interrupt_ends_the_run_without_the_transfer_back(lines, actor, stage):
    @tool
    async def leave(context: ToolContext) -> str:
        context.interrupt("?")
        context.send_action(Exit())
        return "bye"

    team = Supervisor(
        supervisor=actor("S", [TransferToAgent("A")], ["never"]),
        sub_agents=[chat("A", ToolCalls(leave={}), tools=[leave])],
    )
    play = stage(team)
    play.start()
    assert lines(play.go_on()) == ['A [S,A] tool(leave) "bye" {Exit}']


def test_a_team_in_a_sequential_goes_on_and_so_does_what_follows(lines, actor, stage):
    team = Supervisor(
        supervisor=actor("S", [TransferToAgent("A")], ["s ends"]), sub_agents=[Asker("A")]
    )
    play = stage(Sequential(name="Q", sub_agents=[team, Asker("Z")]))
    result = play.start()
    assert lines(result)[-1] == "A [Q,S,A] {Interrupted 1}"
    assert chain(result.interrupts[0])[-1] == "agent:Q 'Sequential workflow interrupted'"
    result = play.go_on(data="x")
    assert lines(result)[-2].endswith('assistant "s ends"')
    assert set(ids(result)) == {"Z"}
    assert play.go_on(data="z").final_output == "Z heard z"


# --- PlanExecute ---


def trip(executor, replanner, tools=()):
    plan = ScriptedModel([ToolCalls(plan={"steps": ["a", "b"]})])
    models = plan, ScriptedModel(executor), ScriptedModel(replanner)
    return PlanExecute(
        planner=make_planner(models[0]),
        executor=make_executor(models[1], tools),
        replanner=make_replanner(models[2]),
    ), models


def test_an_executor_waits_in_the_middle_of_a_plan(lines, stage):
    agent, models = trip(
        ["ra", ToolCalls(ask={"question": "which?"}), "rb"],
        [ToolCalls(plan={"steps": ["b"]}), ToolCalls(respond={"response": "R"})],
        [ask],
    )
    play = stage(agent)
    result = play.start("the objective")
    path = "plan_execute_replan,planner,execute_replan,executor,replanner,executor"
    assert lines(result)[-1] == f"executor [{path}] {{Interrupted 1}}"
    assert chain(result.interrupts[0]) == [
        "agent:plan_execute_replan/agent:execute_replan/agent:executor/tool:ask 'which?' root",
        "agent:plan_execute_replan/agent:execute_replan/agent:executor None",
        "agent:plan_execute_replan/agent:execute_replan 'Loop workflow interrupted'",
        "agent:plan_execute_replan 'Sequential workflow interrupted'",
    ]
    before = result.session_values
    result = play.go_on(data="B")
    assert lines(result) == [
        f'executor [{path}] tool(ask) "heard B"',
        f'executor [{path}] assistant "rb"',
        f'replanner [{path},replanner] assistant "{{"response":"R"}}" {{BreakLoop by '
        "replanner, done, iteration 1}",
        f'replanner [{path},replanner] assistant "R"',
    ]
    assert (result.final_output, result.session_values["Plan"]) == ("R", before["Plan"])
    assert len(result.session_values["ExecutedSteps"]) == 2
    for model in models:
        model.assert_done()
        assert is_whole(model.requests[-1].messages)
    assert "ra" in " ".join(message.text for message in models[1].requests[-1].messages)
