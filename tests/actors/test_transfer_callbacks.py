"""`on_set_sub_agents`, `on_set_as_sub_agent`, `on_disallow_transfer_to_parent`: what an agent of
one's own is told of those around it, and when.
"""

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
from offbook.runtime import AgentEvent, Runner, ScriptedModel, TransferToAgent, UsageError


class Told(Agent):
    """Writes down what it is told."""

    def __init__(self, name, log, **options):
        super().__init__(name=name, **options)
        self.log = log

    def on_set_sub_agents(self, sub_agents):
        self.log.append(
            f"{self.name} has {', '.join(agent.name for agent in sub_agents) or 'none'}"
        )

    def on_set_as_sub_agent(self, parent):
        self.log.append(f"{self.name} is under {parent.name}")

    def on_disallow_transfer_to_parent(self):
        self.log.append(f"{self.name} must not hand back")

    async def run(self, input, context):
        yield AgentEvent.say("done")


def test_set_sub_agents_tells_the_parent_first_and_then_each_of_its_sub_agents():
    log = []
    parent = set_sub_agents(
        Told("P", log), [Told("A", log), Told("B", log, disallow_transfer_to_parent=True)]
    )
    assert log == ["P has A, B", "A is under P", "B is under P", "B must not hand back"]
    Runner(parent)
    Runner(parent)
    assert len(log) == 4, "they know already"


def test_set_sub_agents_tells_the_copy_and_not_the_agent_that_it_is_made_of():
    class Remembering(Agent):
        known = ()

        def on_set_sub_agents(self, sub_agents):
            self.known = tuple(agent.name for agent in sub_agents)

    agent = Remembering(name="P")
    parents = []
    child = type(
        "Child", (Agent,), {"on_set_as_sub_agent": lambda self, parent: parents.append(parent)}
    )(name="C")
    copy = set_sub_agents(agent, [child])
    assert (agent.known, copy.known) == ((), ("C",))
    assert parents == [copy]


def test_a_runner_tells_those_that_were_put_together_when_they_were_made():
    log = []
    tree = Told(
        "P",
        log,
        sub_agents=[Told("A", log, sub_agents=[Told("B", log, disallow_transfer_to_parent=True)])],
    )
    assert log == [], "what a subclass sets up is not there yet"
    Runner(tree)
    assert log == ["P has A", "A is under P", "A has B", "B is under A", "B must not hand back"]


def test_an_agent_without_sub_agents_is_told_nothing():
    log = []
    Runner(Told("A", log)).query("q").result().raise_for_error()
    assert log == []


def test_an_agent_that_becomes_a_tool_tells_its_sub_agents():
    log = []
    Told("P", log, sub_agents=[Told("A", log)]).as_tool()
    assert log == ["P has A", "A is under P"]


@pytest.mark.parametrize("workflow", [Sequential, Loop, Parallel])
def test_steps_of_a_workflow_are_told_that_they_must_not_hand_back(workflow):
    log = []
    Runner(workflow(name="W", sub_agents=[Told("A", log)]))
    assert log == ["A is under W", "A must not hand back"]


def test_a_supervisor_and_its_team_are_told_of_one_another():
    log = []
    team = Supervisor(
        supervisor=Told("S", log),
        sub_agents=[Told("A", log), Told("B", log, disallow_transfer_to_parent=True)],
    )
    Runner(ChatModelAgent(name="R", model=ScriptedModel([]), sub_agents=[team]))
    assert log == [
        "S is under R",
        "S has A, B",
        "A is under S",
        "B is under S",
        "B must not hand back",
    ]


def test_the_agent_that_a_deterministic_transfer_wraps_is_told_once():
    log = []
    wrapped = Told("A", log, disallow_transfer_to_parent=True, sub_agents=[Told("C", log)])
    Runner(Told("R", log, sub_agents=[DeterministicTransfer(wrapped, to=["R"])]))
    assert log == ["R has A", "A is under R", "A must not hand back", "A has C", "C is under A"]


def test_with_options_of_an_agent_that_must_not_hand_back_is_told_so():
    """Seed `001`: SetSubAgents(Agent1, [AgentWithOptions(Agent2,
    WithDisallowTransferToParent())]).
    """
    log = []
    set_sub_agents(Told("1", log), [Told("2", log).with_options(disallow_transfer_to_parent=True)])
    assert log == ["1 has 2", "2 is under 1", "2 must not hand back"]


def test_an_agent_chooses_among_those_that_it_was_told_of():
    class Router(Agent):
        def on_set_sub_agents(self, sub_agents):
            self.known = {agent.description: agent.name for agent in sub_agents}

        async def run(self, input, context):
            yield AgentEvent.of(action=TransferToAgent(self.known[input.messages[-1].text]))

    router = set_sub_agents(
        Router(name="R"),
        [Told("A", [], description="weather"), Told("B", [], description="sports")],
    )
    assert Runner(router).query("sports").result().last_agent == "B"


@pytest.mark.parametrize(
    ("callback", "named"),
    [
        ("on_set_sub_agents", "'P'"),
        ("on_set_as_sub_agent", "'C'"),
        ("on_disallow_transfer_to_parent", "'C'"),
    ],
)
@pytest.mark.parametrize("error", [ValueError("no room"), UsageError("no room")])
def test_what_a_callback_raises_is_said_with_the_agents_name(callback, named, error):
    def refuse(self, *args):
        raise error

    cls = type("Refusing", (Agent,), {callback: refuse})
    child = cls(name="C", disallow_transfer_to_parent=True)
    for put_together in (
        lambda: set_sub_agents(cls(name="P"), [child]),
        lambda: Runner(cls(name="P", sub_agents=[child])),
    ):
        with pytest.raises(
            UsageError,
            match=f"agent {named}: {callback}\\(\\) raised {type(error).__name__}: no room",
        ) as caught:
            put_together()
        assert caught.value.agent == named.strip("'")
        assert caught.value.__cause__ is error


def test_a_callback_that_is_async_is_refused():
    async def told(self, sub_agents):
        pass

    with pytest.raises(UsageError, match=r"agent 'P': on_set_sub_agents\(\) must be `def`"):
        set_sub_agents(type("Own", (Agent,), {"on_set_sub_agents": told})(name="P"), [])
