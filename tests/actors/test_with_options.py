"""`agent.with_options(...)`: a copy of an agent in which options are fixed."""

import pytest

from offbook.actors import (
    Agent,
    ChatModelAgent,
    DeterministicTransfer,
    Sequential,
    Supervisor,
    ToolContext,
    tool,
)
from offbook.runtime import (
    AgentEvent,
    AgentHooks,
    MemoryStore,
    ModelOptions,
    Options,
    Restart,
    Runner,
    ScriptedModel,
    ToolCalls,
    ToolOptions,
    UsageError,
)


class Reader(Agent):
    """Notes the options that it is given; its own attributes are in a copy, too."""

    def __init__(self, name, seen):
        super().__init__(name=name)
        self.seen = seen

    async def run(self, input, context):
        self.seen.append(dict(context.options))
        yield AgentEvent.say(f"{len(input.messages)}")


class Noting(AgentHooks):
    def __init__(self):
        self.seen = []

    def on_start(self, context, agent):
        self.seen.append(agent.name)

    def on_model_start(self, context, agent, request):
        self.seen.append("model")


def test_a_copy_has_the_options_and_the_agent_stays_as_it_was(actor):
    agent, hooks, restart = actor("A", history="lane"), AgentHooks(), Restart(max_restarts=1)
    copy = agent.with_options(
        history="input_only", hooks=hooks, on_failure=restart, disallow_transfer_to_parent=True
    )
    assert (type(copy), copy.name, copy.description) == (type(agent), "A", "plays A")
    assert (copy.history, copy.hooks, copy.on_failure, copy.disallow_transfer_to_parent) == (
        "input_only",
        hooks,
        restart,
        True,
    )
    assert (agent.history, agent.hooks, agent.on_failure, agent.disallow_transfer_to_parent) == (
        "lane",
        None,
        None,
        False,
    )


def test_an_option_that_is_not_named_stays(actor):
    copy = (
        actor("A", history="isolated")
        .with_options(disallow_transfer_to_parent=True)
        .with_options(hooks=AgentHooks())
    )
    assert (copy.history, copy.disallow_transfer_to_parent) == ("isolated", True)
    assert copy.with_options(history=None).history is None


def test_a_copy_that_must_not_hand_back_is_not_told_of_its_parent():
    model = ScriptedModel(["done"])
    child = ChatModelAgent(name="Child", model=model).with_options(disallow_transfer_to_parent=True)
    to_child = ToolCalls(transfer_to_agent={"agent_name": "Child"})
    Runner(
        ChatModelAgent(name="Parent", model=ScriptedModel([to_child]), sub_agents=[child])
    ).query("q").result().raise_for_error()
    assert model.requests[0].tools == ()


def test_a_copy_rewrites_history_in_its_own_way():
    seen = []
    copy = Reader("B", seen).with_options(history=lambda entries: [entries[0].message])
    result = Runner(Sequential(name="S", sub_agents=[Reader("A", seen), copy])).query("q").result()
    assert result.final_message.text == "1"


def test_options_of_the_copys_runs_are_fixed_and_those_of_a_run_go_before_them():
    seen = []
    copy = (
        Reader("A", seen)
        .with_options(options=Options(x=1, y=1))
        .with_options(options={"y": 2, "z": 2})
    )
    runner = Runner(Sequential(name="S", sub_agents=[copy, Reader("B", seen)]))
    runner.query("q", options=Options(z=3)).result().raise_for_error()
    assert seen == [{"x": 1, "y": 2, "z": 3}, {"z": 3}]


def test_options_of_models_and_tools_are_fixed():
    seen = []

    @tool
    def look(context: ToolContext) -> str:
        seen.append(dict(context.options))
        return "x"

    model = ScriptedModel([ToolCalls(look={}), "done"] * 2)
    agent = ChatModelAgent(name="A", model=model, tools=[look])
    copy = agent.with_options(
        options=[ModelOptions(temperature=0.5, max_tokens=9), ToolOptions(deep=True)]
    )
    Runner(copy).query("q", options=ModelOptions(max_tokens=5)).result().raise_for_error()
    Runner(agent).query("q").result().raise_for_error()
    assert [
        (request.settings.temperature, request.settings.max_tokens) for request in model.requests
    ] == [(0.5, 5)] * 2 + [(None, None)] * 2
    assert seen == [{"deep": True}, {}]


def test_generate_of_a_copy_is_with_its_options(run):
    model = ScriptedModel(["one", "two", "three"])
    agent = ChatModelAgent(name="A", model=model)

    async def main():
        await agent.generate("q")  # which makes the agent a Runner
        await agent.with_options(options=ModelOptions(temperature=0.5)).generate("q")
        await agent.generate("q")

    run(main())
    assert [request.settings.temperature for request in model.requests] == [None, 0.5, None]


def test_a_supervisor_keeps_what_was_fixed_for_the_agent_that_it_plays_as():
    hooks, model = Noting(), ScriptedModel(["done"])
    boss = ChatModelAgent(name="Boss", model=model).with_options(
        options=ModelOptions(temperature=0.5)
    )
    team = Supervisor(supervisor=boss, sub_agents=[Reader("A", [])]).with_options(hooks=hooks)
    Runner(team).query("q").result().raise_for_error()
    assert model.requests[0].settings.temperature == 0.5
    assert hooks.seen == ["Boss", "model"]


def test_a_deterministic_transfer_has_them_for_what_plays():
    seen, hooks = [], Noting()
    back = DeterministicTransfer(Reader("A", seen), to=["B"]).with_options(
        options={"x": 1}, hooks=hooks, disallow_transfer_to_parent=True
    )
    assert back.disallow_transfer_to_parent
    root = ChatModelAgent(
        name="R",
        model=ScriptedModel([ToolCalls(transfer_to_agent={"agent_name": "A"})]),
        sub_agents=[back],
    )
    Runner(root).query("q").result()
    assert (seen, hooks.seen) == ([{"x": 1}], ["A"])


def test_fixed_options_count_when_a_run_is_resumed():
    seen = []

    @tool(needs_approval=True)
    def look(context: ToolContext) -> str:
        seen.append(dict(context.options))
        return "x"

    agent = ChatModelAgent(
        name="A", model=ScriptedModel([ToolCalls(look={}), "done"]), tools=[look]
    ).with_options(options=ToolOptions(deep=True))
    runner = Runner(agent, store=MemoryStore())
    asked = runner.query("q", checkpoint_id="c").result()
    assert asked.interrupts
    assert runner.approve(asked.interrupts[0]).result().final_message.text == "done"
    assert seen == [{"deep": True}]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"name": "B"},
            r"with_options\(name=...\) is not an option of an agent. The options are: options, "
            r"disallow_transfer_to_parent, history, hooks, on_failure",
        ),
        ({"history": "all"}, "history must be 'lane'"),
        ({"hooks": 1}, "hooks must be an instance of a subclass of offbook.runtime.AgentHooks"),
        ({"on_failure": "restart"}, "on_failure must be a Restart"),
        ({"options": [1]}, "dictionaries, got 1"),
    ],
)
def test_what_is_wrong_is_said_with_the_agents_name(actor, changes, says):
    with pytest.raises(UsageError, match=says):
        actor("A").with_options(**changes)
