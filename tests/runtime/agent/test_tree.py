"""Trees of agents that cannot be: each is refused when the Runner is made, with the names."""

import pytest

from offbook.actors import (
    Agent,
    ChatModelAgent,
    DeterministicTransfer,
    Loop,
    Parallel,
    Sequential,
    Supervisor,
    set_sub_agents,
)
from offbook.runtime import Runner, RunStatus, ScriptedModel, ToolCalls, TransferToAgent, UsageError


def refused(agent, *names):
    """The message with which a Runner refuses it, which names these agents."""
    with pytest.raises(UsageError) as caught:
        Runner(agent)
    for name in names:
        assert f"'{name}'" in str(caught.value), str(caught.value)
    return str(caught.value)


def test_an_agent_under_two_parents(actor):
    shared = actor("X")
    tree = actor("R", sub_agents=[actor("A", sub_agents=[shared]), actor("B", sub_agents=[shared])])
    assert "two parents" in refused(tree, "X", "A", "B")


def test_an_agent_twice_under_one_parent(actor):
    shared = actor("X")
    refused(actor("R", sub_agents=[shared, shared]), "X", "R")


@pytest.mark.parametrize("workflow", [Sequential, Loop, Parallel])
def test_an_agent_twice_in_a_workflow(actor, workflow):
    shared = actor("X")
    refused(workflow(name="W", sub_agents=[shared, shared]), "X", "W")


@pytest.mark.parametrize("workflow", [Sequential, Loop, Parallel])
def test_two_of_one_name_in_a_workflow(actor, workflow):
    assert "two agents are named" in refused(
        workflow(name="W", sub_agents=[actor("X"), actor("X")]), "X", "W"
    )


def test_two_of_one_name_under_one_parent(actor):
    refused(actor("R", sub_agents=[actor("X"), actor("X")]), "X", "R")


def test_two_of_one_name_far_from_each_other(actor):
    tree = actor(
        "R",
        sub_agents=[
            actor("A", sub_agents=[actor("X")]),
            actor("B", sub_agents=[actor("C", sub_agents=[actor("X")])]),
        ],
    )
    refused(tree, "X", "A", "C")


def test_one_that_bears_the_name_of_the_root(actor):
    refused(actor("R", sub_agents=[actor("A", sub_agents=[actor("R")])]), "R", "A")


def test_one_that_bears_the_name_of_its_parent(actor):
    refused(Sequential(name="S", sub_agents=[actor("S")]), "S")


def test_one_that_bears_the_name_of_a_supervisor(actor):
    refused(Supervisor(supervisor=actor("S"), sub_agents=[actor("S")]), "S")


def test_a_supervisor_under_itself(actor):
    s = actor("S")
    refused(Supervisor(supervisor=s, sub_agents=[s]), "S")


def test_an_agent_that_is_handed_over_from_deterministically_and_stands_elsewhere(actor):
    x = actor("X")
    refused(
        actor("R", sub_agents=[DeterministicTransfer(x, to=["R"]), actor("A", sub_agents=[x])]),
        "X",
        "A",
    )


def test_an_agent_under_two_supervisors(actor):
    x = actor("X")
    one, two = (Supervisor(supervisor=actor(name), sub_agents=[x]) for name in ("S1", "S2"))
    refused(Sequential(name="Q", sub_agents=[one, two]), "X")


def test_two_of_one_name_in_two_branches_of_one_parallel(actor):
    tree = Parallel(
        name="P",
        sub_agents=[
            Sequential(name="A", sub_agents=[actor("X")]),
            Sequential(name="B", sub_agents=[actor("X")]),
        ],
    )
    refused(tree, "X", "A", "B")


def test_a_circle(actor):
    a, b = actor("A"), actor("B")
    a.sub_agents, b.sub_agents = (b,), (a,)
    assert "A -> B -> A" in " ".join([refused_text(a)])


def refused_text(agent):
    with pytest.raises(UsageError) as caught:
        Runner(agent)
    return str(caught.value)


def test_an_agent_that_is_its_own_sub_agent(actor):
    a = actor("A")
    a.sub_agents = (a,)
    assert "A -> A" in refused_text(a)


def test_a_tool_with_a_bad_tree_is_refused_where_it_is_made(actor):
    with pytest.raises(UsageError, match="two agents are named 'X'"):
        Sequential(name="S", sub_agents=[actor("X"), actor("X")]).as_tool()


@pytest.mark.parametrize("given", ["agent", 5, None, Agent, object()])
def test_what_is_no_agent_among_the_sub_agents(actor, given):
    with pytest.raises(UsageError, match=r"agent 'R': sub_agents must contain instances of Agent"):
        actor("R", sub_agents=[given])


def test_one_agent_in_place_of_a_list(actor):
    with pytest.raises(UsageError, match=r"agent 'R'.*sub_agents=\[A\]"):
        actor("R", sub_agents=actor("A"))


@pytest.mark.parametrize("name", ["", None, 5])
def test_an_agent_without_a_name(actor, name):
    with pytest.raises(UsageError, match="name must be a non-empty string"):
        actor(name)


@pytest.mark.parametrize("given", ["agent", None, Agent])
def test_a_runner_of_no_agent(given):
    with pytest.raises(UsageError, match="not an agent"):
        Runner(given)


def test_a_deterministic_transfer_of_no_agent_or_to_nobody(actor):
    with pytest.raises(UsageError, match="agent must be an Agent"):
        DeterministicTransfer("A", to=["B"])
    with pytest.raises(UsageError, match="'A'"):
        DeterministicTransfer(actor("A"), to=[])


def test_a_tool_that_bears_the_name_of_the_transfer_tool():
    def transfer_to_agent(where: str) -> str:
        return where

    agent = ChatModelAgent(name="A", model=ScriptedModel([]), tools=[transfer_to_agent])
    refused(ChatModelAgent(name="R", model=ScriptedModel([]), sub_agents=[agent]), "A", "R")


# --- trees that can be ---


def test_one_definition_in_several_runners(actor):
    shared = actor("X", "x")
    for parent in ("A", "B"):
        result = Runner(Sequential(name=parent, sub_agents=[shared])).query("q").result()
        assert result.events[0].run_path == (parent, "X")


def test_one_definition_in_two_parallels(actor):
    shared = actor("X", "x")
    tree = Sequential(
        name="S",
        sub_agents=[
            Parallel(name="P1", sub_agents=[shared]),
            Parallel(name="P2", sub_agents=[shared]),
        ],
    )
    assert [event.run_path for event in Runner(tree).query("q").result().events] == [
        ("S", "P1", "X"),
        ("S", "P1", "P2", "X"),
    ]


def test_an_agent_below_a_child_of_two_parallels(actor):
    shared = Sequential(name="T", sub_agents=[actor("X", "x")])
    tree = Sequential(
        name="S",
        sub_agents=[
            Parallel(name="P1", sub_agents=[shared]),
            Parallel(name="P2", sub_agents=[shared]),
        ],
    )
    assert [event.agent_name for event in Runner(tree).query("q").result().events] == ["X", "X"]


def test_an_agent_that_is_a_tool_and_stands_in_the_tree(actor):
    x = actor("X", "x")
    outer = ChatModelAgent(
        name="O", model=ScriptedModel([ToolCalls(X={"request": "r"}), "end"]), tools=[x.as_tool()]
    )
    assert (
        Runner(Sequential(name="S", sub_agents=[outer, x])).query("q").result().final_output == "x"
    )


def test_set_sub_agents_makes_a_copy(actor):
    a = actor("A", TransferToAgent("B"))
    b = actor("B", "b")
    grown = set_sub_agents(a, [b])
    assert a.sub_agents == ()
    assert grown.sub_agents == (b,)
    assert type(grown) is type(a)
    assert Runner(grown).query("q").result().final_output == "b"
    assert Runner(a).query("q").result().status is RunStatus.FAILED


def test_set_sub_agents_takes_what_was_there_away(actor):
    a = actor("A", TransferToAgent("B"), sub_agents=[actor("B", "b")])
    assert Runner(set_sub_agents(a, [])).query("q").result().status is RunStatus.FAILED
    assert Runner(a).query("q").result().final_output == "b"


def test_set_sub_agents_of_a_chat_model_agent_shows_the_new_tree():
    a = ChatModelAgent(name="A", model=ScriptedModel(["one", "two"]))
    b = ChatModelAgent(name="B", description="about B", model=ScriptedModel([]))
    Runner(a).query("q").result()
    Runner(set_sub_agents(a, [b])).query("q").result()
    first, second = a.model.requests
    assert first.tools == ()
    assert [spec.name for spec in second.tools] == ["transfer_to_agent"]


def test_set_sub_agents_of_no_agent():
    with pytest.raises(UsageError):
        set_sub_agents("A", [])


def test_a_deep_tree(actor):
    agent = actor("A99", "bottom")
    for depth in reversed(range(99)):
        agent = actor(f"A{depth}", TransferToAgent(f"A{depth + 1}"), sub_agents=[agent])
    result = Runner(agent).query("q").result()
    assert result.final_output == "bottom"
    assert len(result.events[-1].run_path) == 100


def test_an_agent_may_be_made_to_hand_over_twice(actor):
    root = actor(
        "R",
        [TransferToAgent("X")],
        ["end"],
        sub_agents=[
            DeterministicTransfer(DeterministicTransfer(actor("X", "x"), to=["R"]), to=["R"])
        ],
    )
    Runner(root)
