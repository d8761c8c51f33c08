"""Which of those that wait go on, with what; and what a run is given anew when it goes on."""

import pytest

from offbook.actors import Agent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import AgentEvent, Options, ResumeError, Runner, ToolCalls, ToolOptions
from tests.doubles.waiting import Asker, Naive, Stage, chat, ids


def both(**options):
    """Two that wait at the same time."""
    return Parallel(name="P", sub_agents=[Asker("A", **options), Asker("B", **options)])


# --- who goes on ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_without_targets_all_go_on_with_the_same_data(lines, durability):
    stage = Stage(both(), durability=durability)
    assert lines(stage.start()) == ["P [P] {Interrupted 2}"]
    result = stage.go_on(data=7)
    assert sorted(lines(result)) == [
        'A [P,A] assistant "A heard 7"',
        'B [P,B] assistant "B heard 7"',
    ]
    assert result.status == "completed"


def test_each_target_gets_its_own_data():
    stage = Stage(both())
    found = ids(stage.start())
    result = stage.go_on({found["A"]: "a", found["B"]: "b"})
    assert sorted(event.message.text for event in result.events) == ["A heard a", "B heard b"]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("make", [Asker, lambda name: Naive(name=name)], ids=["asker", "naive"])
def test_a_leaf_that_is_not_a_target_waits_again_at_its_address_with_a_new_id(
    lines, make, durability
):
    stage = Stage(Parallel(name="P", sub_agents=[make("A"), make("B")]), durability=durability)
    before = {context.address[-1].name: context for context in stage.start().interrupts}
    result = stage.go_on({before["B"].id: "b"})
    assert lines(result) == ['B [P,B] assistant "B heard b"', "P [P] {Interrupted 1}"]
    (again,) = result.interrupts
    assert again.id != before["A"].id
    assert (again.address, again.info, again.is_root_cause) == (before["A"].address, "A?", True)
    assert [step.name for step in again.parent.address] == ["P"]
    result = stage.go_on({again.id: "a"})
    assert lines(result) == ['A [P,A] assistant "A heard a"']
    assert result.status == "completed"


def test_a_leaf_that_waits_again_keeps_what_it_has_heard():
    a, b = Asker("A", "1?", "2?"), Asker("B", "1?", "2?")
    stage = Stage(Parallel(name="P", sub_agents=[a, b]))
    found = ids(stage.start())
    found = ids(stage.go_on({found["A"]: "a1", found["B"]: "b1"}))
    found = ids(stage.go_on({found["A"]: "a2"}))
    assert set(found) == {"B"}
    assert stage.go_on({found["B"]: "b2"}).final_output == "B heard b1,b2"


def test_one_that_asks_again_and_one_that_waits_on_are_one_event(lines):
    stage = Stage(Parallel(name="P", sub_agents=[Asker("A", "1?", "2?"), Asker("B")]))
    found = ids(stage.start())
    result = stage.go_on({found["A"]: "a1"})
    assert lines(result) == ["P [P] {Interrupted 2}"]
    assert {context.address[-1].name: context.info for context in result.interrupts} == {
        "A": "2?",
        "B": "B?",
    }


def test_the_only_one_that_waits_may_be_named():
    stage = Stage(Asker("A"))
    found = ids(stage.start())
    assert stage.go_on({found["A"]: None}).final_output == "A heard None"


@pytest.mark.parametrize("wrong", ["nobody", "A", ""])
def test_a_target_that_nobody_waits_as_is_refused_and_nothing_runs(wrong):
    agent = Asker("A")
    stage = Stage(agent)
    found = ids(stage.start())
    with pytest.raises(ResumeError, match="interrupt"):
        stage.go_on({wrong: "x"})
    with pytest.raises(ResumeError, match="interrupt"):
        stage.go_on({found["A"]: "x", wrong: "x"})
    assert len(agent.inputs) == 1
    assert stage.go_on({found["A"]: "x"}).final_output == "A heard x"


def test_a_target_of_another_run_is_refused():
    stage, other = Stage(both()), Stage(both())
    stage.start()
    with pytest.raises(ResumeError):
        stage.go_on({ids(other.start())["A"]: "x"})
    assert stage.go_on(data="x").status == "completed"


def test_an_id_of_an_earlier_interrupt_is_refused():
    stage = Stage(both())
    first = ids(stage.start())
    second = ids(stage.go_on({first["A"]: "a"}))
    for gone in ("A", "B"):
        with pytest.raises(ResumeError):
            stage.go_on({first[gone]: "x"})
    assert stage.go_on({second["B"]: "b"}).status == "completed"


# --- session values ---


class Values(Agent):
    """Puts values in the session, waits, and says what is there then."""

    async def run(self, input, context):
        if context.resume is None:
            context.session["mine"] = {"n": [1]}
            yield context.interrupt("?")
        else:
            yield AgentEvent.say(
                " ".join(f"{key}={value}" for key, value in sorted(context.session.items()))
            )


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_session_values_come_from_the_checkpoint_and_new_ones_go_over_them(durability):
    stage = Stage(Values(name="A"), durability=durability)
    first = stage.start(session_values={"kept": 1, "changed": 1})
    assert first.session_values == {"kept": 1, "changed": 1, "mine": {"n": [1]}}
    result = stage.go_on(session_values={"changed": 2, "new": 2})
    assert result.final_output == "changed=2 kept=1 mine={'n': [1]} new=2"
    assert result.session_values == {"kept": 1, "changed": 2, "mine": {"n": [1]}, "new": 2}


def test_what_a_run_changes_after_it_went_on_does_not_touch_the_save():
    class Changes(Agent):
        async def run(self, input, context):
            if context.resume is None:
                context.session["list"] = [1]
                yield context.interrupt("?")
            else:
                context.session["list"].append(context.resume.data)
                yield AgentEvent.say(str(context.session["list"]))

    stage = Stage(Changes(name="A"))
    stage.start()
    assert stage.go_on(data=2).final_output == "[1, 2]"
    assert stage.go_on(id=f"{stage.id}@1", data=3).final_output == "[1, 3]"


# --- options ---


class Reads(Agent):
    """Notes its options each time that it plays."""

    def __init__(self, name):
        super().__init__(name=name)
        self.seen = []

    async def run(self, input, context):
        self.seen.append(dict(context.options))
        if context.resume is None:
            yield context.interrupt("?")


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_options_come_from_the_checkpoint_and_those_given_anew_go_over_them(durability):
    a = Reads("A")
    stage = Stage(a, durability=durability)
    stage.start(options=[Options(x=1, y=[1, {"z": None}]), Options(x=5, agents=("B",))])
    stage.go_on(options=Options(y=2, new=3))
    assert a.seen == [{"x": 1, "y": [1, {"z": None}]}, {"x": 1, "y": 2, "new": 3}]


def test_options_for_an_agent_that_plays_only_after_the_interrupt_reach_it():
    a, b = Reads("A"), Reads("B")
    stage = Stage(Sequential(name="S", sub_agents=[a, b]))
    stage.start(options=Options(x=1, agents=("B",)))
    stage.go_on()
    assert (a.seen, b.seen) == ([{}, {}], [{"x": 1}])


def test_options_that_are_no_plain_data_have_to_be_given_again():
    a = Reads("A")
    stage = Stage(a)
    assert stage.start(options=Options(x=1, call=print)).status == "interrupted"
    stage.go_on()
    assert a.seen == [{"x": 1, "call": print}, {"x": 1}]
    stage.go_on(id=f"{stage.id}@1", options=Options(call=len))
    assert a.seen[-1] == {"x": 1, "call": len}


# --- tool options ---


@tool
async def ask(context: ToolContext, question: str = "?") -> str:
    """Asks, unless its options hold the answer."""
    answer = context.options.get("answer")
    if answer is None:
        data = context.interrupt(question)
        return f"data {data}, options {dict(context.options)}"
    return f"answer {answer}, resume {context.is_resume}, target {context.is_resume_target}"


def results(result):
    return [
        event.message.text
        for event in result.events
        if event.message is not None and event.message.role == "tool"
    ]


def test_tool_options_reach_the_tool_instead_of_data():
    stage = Stage(chat("A", ToolCalls(ask={}), "end", tools=[ask]))
    stage.start()
    result = stage.go_on(tool_options=ToolOptions(answer="blue"))
    assert results(result) == ["answer blue, resume True, target True"]
    assert result.final_output == "end"


def test_tool_options_reach_the_tool_beside_data():
    stage = Stage(chat("A", ToolCalls(ask={}), "end", tools=[ask]))
    stage.start()
    assert results(stage.go_on(data="red", tool_options=ToolOptions(tone="kind"))) == [
        "data red, options {'tone': 'kind'}"
    ]


def test_tool_options_reach_the_tools_beside_targets():
    stage = Stage(
        chat(
            "A",
            ToolCalls(("ask", {"question": "1"}), ("ask", {"question": "2"})),
            "end",
            tools=[ask],
        )
    )
    first, second = stage.start().interrupts
    result = stage.go_on({first.id: "one"}, tool_options=ToolOptions(tone="kind"))
    assert results(result) == ["data one, options {'tone': 'kind'}"]
    assert [context.info for context in result.interrupts] == [second.info]


def test_tool_options_may_be_for_some_tools_or_agents_only():
    for narrow in (
        ToolOptions(tools=("other",), answer="x"),
        ToolOptions(agents=("B",), answer="x"),
    ):
        stage = Stage(chat("A", ToolCalls(ask={}), "end", tools=[ask]))
        stage.start()
        assert results(stage.go_on(data="d", tool_options=narrow)) == ["data d, options {}"]


def test_tool_options_of_the_first_time_are_still_there():
    stage = Stage(chat("A", ToolCalls(ask={}), "end", tools=[ask]))
    stage.start(options=ToolOptions(tone="kind", size=1))
    assert results(stage.go_on(data="d", tool_options=ToolOptions(size=2))) == [
        "data d, options {'tone': 'kind', 'size': 2}"
    ]


def test_tool_options_are_those_of_calls_that_come_later_too():
    stage = Stage(chat("A", ToolCalls(ask={}), ToolCalls(ask={}), "end", tools=[ask]))
    stage.start()
    assert results(stage.go_on(tool_options={"answer": "blue"})) == [
        "answer blue, resume True, target True",
        "answer blue, resume False, target False",
    ]


def test_the_limits_of_a_resumed_run_are_those_of_its_runner():
    """Nothing of the runner that was interrupted is needed but the store."""
    stage = Stage(both())
    stage.start()
    other = Runner(both(), store=stage.store)
    assert other.resume(stage.id, data=1).result(20).status == "completed"
