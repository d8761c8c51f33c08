"""Options of one run: for all agents, for those that are named, for tools, for models, and of one's
own making.
"""

from types import MappingProxyType

import pytest

from offbook.actors import Agent, ChatModelAgent, Sequential, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    ModelOptions,
    ModelSettings,
    Options,
    Runner,
    ScriptedModel,
    ToolCalls,
    ToolOptions,
    UsageError,
)


class Reader(Agent):
    """Says nothing, and notes the options that it is given."""

    def __init__(self, name):
        super().__init__(name=name)
        self.seen = None

    async def run(self, input, context):
        self.seen = dict(context.options)
        yield AgentEvent.say(self.name)


def read(options):
    """What each of two agents is given."""
    a, b = Reader("a"), Reader("b")
    Runner(Sequential(name="s", sub_agents=[a, b])).query("go", options=options).result(20)
    return a.seen, b.seen


class Speed(Options):
    """A user's own."""

    def __init__(self, speed, **more):
        super().__init__(speed=speed, **more)


@pytest.mark.parametrize(
    ("options", "a", "b"),
    [
        (None, {}, {}),
        ((), {}, {}),
        (Options(x=1), {"x": 1}, {"x": 1}),
        (Options(x=1, agents=("a",)), {"x": 1}, {}),
        (Options(x=1, agents=["a", "b", "other"]), {"x": 1}, {"x": 1}),
        (Options(x=1, agents=()), {}, {}),
        (
            [Options(x=1), Options(x=2, agents=("b",)), Options(y=3)],
            {"x": 1, "y": 3},
            {"x": 2, "y": 3},
        ),
        ([Options(x=2, agents=("b",)), Options(x=1)], {"x": 1}, {"x": 1}),
        ({"x": 1}, {"x": 1}, {"x": 1}),
        (MappingProxyType({"x": 1, "agents": ("b",)}), {}, {"x": 1}),
        ([{"x": 1}, Speed(5, agents=("a",))], {"x": 1, "speed": 5}, {"x": 1}),
        (Speed(5), {"speed": 5}, {"speed": 5}),
        ((one for one in [Options(x=1)]), {"x": 1}, {"x": 1}),
        ([ToolOptions(x=1), ModelOptions(temperature=1.0)], {}, {}),
    ],
    ids=[
        "none",
        "empty",
        "all",
        "named",
        "several",
        "nobody",
        "the last counts",
        "order, not narrowness",
        "dict",
        "mapping",
        "mixed",
        "own",
        "generator",
        "other kinds",
    ],
)
def test_agents_read_what_is_for_them(options, a, b):
    assert read(options) == (a, b)


def test_options_are_of_one_run_only():
    agent = Reader("a")
    runner = Runner(agent)
    runner.query("go", options=Options(x=1)).result(20)
    assert agent.seen == {"x": 1}
    runner.query("go").result(20)
    assert agent.seen == {}


def test_an_agent_cannot_change_what_another_reads():
    class Changer(Reader):
        async def run(self, input, context):
            try:
                context.options["x"] = 2
            except TypeError:
                pass
            yield AgentEvent.say("changed")

    b = Reader("b")
    Runner(Sequential(name="s", sub_agents=[Changer("a"), b])).query(
        "go", options=Options(x=1)
    ).result(20)
    assert b.seen == {"x": 1}


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        (None, {}, {}),
        (ToolOptions(key=1), {"key": 1}, {"key": 1}),
        (ToolOptions(key=1, tools=("first",)), {"key": 1}, {}),
        (ToolOptions(key=1, tools="second"), {}, {"key": 1}),
        (ToolOptions(key=1, agents=("a",)), {"key": 1}, {"key": 1}),
        (ToolOptions(key=1, agents=("b",)), {}, {}),
        (ToolOptions(key=1, agents=("a",), tools=("second",)), {}, {"key": 1}),
        ([ToolOptions(key=1), ToolOptions(key=2, tools=("first",))], {"key": 2}, {"key": 1}),
        ([Options(key=1), ModelOptions(temperature=1.0), {"key": 2}], {}, {}),
    ],
)
def test_tools_read_what_is_for_them(options, first, second):
    seen = {}

    def read_options(context: ToolContext) -> str:
        seen[context.tool_name] = dict(context.options)
        return "x"

    tools = [tool(name=name)(read_options) for name in ("first", "second")]
    model = ScriptedModel([ToolCalls(("first", {}), ("second", {})), "done"])
    Runner(ChatModelAgent(name="a", model=model, tools=tools)).query("go", options=options).result(
        20
    )
    assert seen == {"first": first, "second": second}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (None, ModelSettings(temperature=0.5, extra={"a": 1})),
        (ModelOptions(temperature=0.0), ModelSettings(temperature=0.0, extra={"a": 1})),
        (
            ModelOptions(max_tokens=5, agents=("a",)),
            ModelSettings(temperature=0.5, max_tokens=5, extra={"a": 1}),
        ),
        (ModelOptions(max_tokens=5, agents=("b",)), ModelSettings(temperature=0.5, extra={"a": 1})),
        (
            [ModelOptions(seed=1, top_p=0.1), ModelOptions(seed=2)],
            ModelSettings(temperature=0.5, seed=2, top_p=0.1, extra={"a": 1}),
        ),
        (ModelOptions(extra={"b": 2}), ModelSettings(temperature=0.5, extra={"a": 1, "b": 2})),
        (
            [Options(temperature=1.0), ToolOptions(temperature=1.0)],
            ModelSettings(temperature=0.5, extra={"a": 1}),
        ),
    ],
)
def test_model_options_stand_in_place_of_what_the_agent_says(options, settings):
    model = ScriptedModel([ToolCalls(nothing={}), "done"])
    agent = ChatModelAgent(
        name="a", model=model, model_settings=ModelSettings(temperature=0.5, extra={"a": 1})
    )
    Runner(agent).query("go", options=options).result(20)
    assert [request.settings for request in model.requests] == [settings, settings]
    assert agent.model_settings == ModelSettings(temperature=0.5, extra={"a": 1})


def test_the_choice_of_a_tool_may_be_an_option():
    model = ScriptedModel(["done"])
    Runner(ChatModelAgent(name="a", model=model)).query(
        "go", options=ModelOptions(tool_choice="required")
    ).result(20)
    assert model.requests[0].tool_choice == "required"


def test_model_options_reach_the_agents_that_are_handed_over_to():
    first, second = (
        ScriptedModel([ToolCalls(transfer_to_agent={"agent_name": "b"})]),
        ScriptedModel(["done"]),
    )
    agent = ChatModelAgent(
        name="a", model=first, sub_agents=[ChatModelAgent(name="b", model=second)]
    )
    Runner(agent).query(
        "go", options=[ModelOptions(seed=1), ModelOptions(seed=2, agents=("b",))]
    ).result(20)
    assert (first.requests[0].settings.seed, second.requests[0].settings.seed) == (1, 2)


@pytest.mark.parametrize(
    "wrong",
    [5, "text", [5], [None], Options, object()],
    ids=["number", "text", "numbers", "None", "class", "object"],
)
def test_what_is_no_options_is_refused_before_anything_runs(wrong):
    agent = Reader("a")
    with pytest.raises(UsageError, match="options"):
        Runner(agent).query("go", options=wrong)
    assert agent.seen is None


def test_a_mapping_with_names_that_are_no_text_is_refused():
    with pytest.raises(UsageError, match="options"):
        Runner(Reader("a")).query("go", options={1: 2})


def test_one_name_in_place_of_several_is_refused():
    for kind in (Options, ToolOptions, ModelOptions):
        with pytest.raises(UsageError, match=r"agents=\('weather',\)"):
            kind(agents="weather")


def test_settings_that_no_model_knows_are_refused_with_those_that_they_do():
    with pytest.raises(UsageError, match=r"temperature.*extra"):
        ModelOptions(temprature=1.0)


def test_they_show_what_they_hold():
    assert repr(Options(x=1, agents=("b", "a"))) == "Options(agents=['a', 'b'], x=1)"
    assert "temperature=1.0" in repr(ModelOptions(temperature=1.0))
