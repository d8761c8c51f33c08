"""Under which name a run that waits is kept, how its earlier saves are reached, and what becomes of
one that goes on from such a one.
"""

import pytest

from offbook.actors import Agent, Parallel, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    CheckpointNotFound,
    MemoryStore,
    ResumeError,
    Runner,
    ToolCalls,
    UsageError,
)
from tests.doubles.waiting import Asker, Stage, chat, ids, told


class Story(Agent):
    """Asks three times, and puts what it has heard in the session each time."""

    async def run(self, input, context):
        if context.resume is not None:
            context.session["heard"] = [*context.session.get("heard", []), context.resume.data]
            yield AgentEvent.say(f"heard {context.resume.data}")
        if len(context.session.get("heard", [])) < 3:
            yield context.interrupt(f"{len(context.session.get('heard', [])) + 1}?")


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    return Stage(Story(name="A"), durability=request.param)


def heard(result):
    return result.session_values.get("heard", [])


# --- names ---


def test_without_a_name_the_name_is_the_run_s_id():
    runner = Runner(Asker("A"), store=MemoryStore())
    run = runner.query("q")
    assert run.checkpoint_id == run.id
    run.result(20)
    assert runner.resume(run.id, data="x").result(20).final_output == "A heard x"


@pytest.mark.parametrize(
    "name", ["1", "order 7", "user@example.com", "zoë/7?#%", "a" * 200, "under:score_-.~"]
)
def test_the_name_may_be_any_text(name):
    runner = Runner(Asker("A", "1?", "2?"), store=MemoryStore())
    run = runner.query("q", checkpoint_id=name)
    assert run.checkpoint_id == name
    assert run.id != name
    run.result(20)
    resumed = runner.resume(name, data="x")
    assert resumed.checkpoint_id == name
    assert resumed.result(20).status == "interrupted"
    assert resumed.id == run.id
    assert runner.resume(name, data="y").result(20).final_output == "A heard x,y"


def test_a_name_that_looks_like_a_save_is_refused_or_means_what_it_says():
    runner = Runner(Asker("A"), store=MemoryStore())
    try:
        runner.query("q", checkpoint_id="order@2").result(20)
    except UsageError as error:
        assert "order@2" in str(error)
    else:
        assert runner.resume("order@2", data="x").result(20).final_output == "A heard x"


def test_runs_of_different_names_do_not_meet():
    agent = Asker("A")
    runner = Runner(agent, store=MemoryStore())
    for name in ("one", "two"):
        runner.query(name, checkpoint_id=name).result(20)
    assert runner.resume("two", data=2).result(20).final_output == "A heard 2"
    assert agent.inputs[-1].messages[0].text == "two"
    assert runner.resume("one", data=1).result(20).final_output == "A heard 1"
    assert agent.inputs[-1].messages[0].text == "one"


def test_a_name_that_is_used_again_is_that_of_the_newest_run():
    agent = Asker("A")
    runner = Runner(agent, store=MemoryStore())
    for text in ("first", "second"):
        runner.query(text, checkpoint_id="1").result(20)
    assert runner.resume("1", data="x").result(20).final_output == "A heard x"
    assert agent.inputs[-1].messages[0].text == "second"


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_name_that_is_used_again_while_its_run_waits_is_warned_of(caplog, durability):
    runner = Runner(Asker("A"), store=MemoryStore(), durability=durability)
    first = runner.query("first", checkpoint_id="1")
    first.result(20)
    assert caplog.messages == []
    runner.query("second", checkpoint_id="1").result(20)
    [warning] = caplog.messages
    assert f"run {first.id}, which waits to be resumed" in warning
    assert "resume('1@1')" in warning
    assert runner.resume("1@1", data="x").result(20).final_output == "A heard x"


def test_a_name_is_not_warned_of_when_its_run_was_answered(caplog):
    runner = Runner(Asker("A"), store=MemoryStore())
    for data in "xyz":
        runner.query("q", checkpoint_id="1").result(20)
        runner.resume("1", data=data).result(20)
    assert caplog.messages == []


def test_a_name_may_be_used_again_when_its_run_has_ended():
    runner = Runner(Asker("A"), store=MemoryStore())
    for data in "xy":
        assert runner.query("q", checkpoint_id="1").result(20).status == "interrupted"
        assert runner.resume("1", data=data).result(20).final_output == f"A heard {data}"


def test_a_run_that_never_waited_is_not_there(actor_that_speaks):
    runner = Runner(actor_that_speaks, store=MemoryStore())
    assert runner.query("q", checkpoint_id="1").result(20).status == "completed"
    with pytest.raises((CheckpointNotFound, ResumeError)):
        runner.resume("1").result(20)


@pytest.fixture
def actor_that_speaks():
    class Speaks(Agent):
        async def run(self, input, context):
            yield AgentEvent.say("hello")

    return Speaks(name="A")


def test_with_durability_none_nothing_is_kept():
    runner = Runner(Asker("A"), store=MemoryStore(), durability="none")
    run = runner.query("q", checkpoint_id="1")
    assert run.result(20).status == "interrupted"
    with pytest.raises(CheckpointNotFound):
        runner.resume("1").result(20)


# --- a run that was resumed is resumed again ---


def test_a_resumed_run_goes_on_from_its_last_save_each_time(stage):
    assert heard(stage.start()) == []
    assert [heard(stage.go_on(data=data)) for data in "abc"] == [["a"], ["a", "b"], ["a", "b", "c"]]
    with pytest.raises(ResumeError, match="already answered"):
        stage.go_on(data="d")


def test_another_runner_and_another_definition_of_the_same_shape_go_on(stage):
    stage.start()
    for data in "abc":
        run = Runner(Story(name="A"), store=stage.store).resume(stage.id, data=data)
        result = run.result(20)
        stage.id = run.checkpoint_id
    assert heard(result) == ["a", "b", "c"]


# --- earlier saves ---


def test_each_save_keeps_the_earlier_ones(stage):
    stage.start()
    for data in "abc":
        stage.go_on(data=data)
    for number, before in ((1, []), (2, ["a"]), (3, ["a", "b"])):
        result = stage.go_on(id=f"{stage.id}@{number}", data="z")
        assert heard(result) == [*before, "z"]


def test_the_last_save_may_be_named_by_its_number(stage):
    stage.start()
    stage.go_on(data="a")
    run = stage.runner.resume(f"{stage.id}@2", data="b")
    assert heard(run.result(20)) == ["a", "b"]
    assert run.checkpoint_id == stage.id, "it was not answered before: it is no branch"
    stage.id = run.checkpoint_id
    assert heard(stage.go_on(data="c")) == ["a", "b", "c"]


def test_by_its_number_too_an_interrupt_is_answered_once_as_what_it_is(stage):
    """Who answers the last save by its number has answered it."""
    stage.start()
    stage.go_on(id=f"{stage.id}@1", data="a")
    with pytest.raises(ResumeError):
        stage.go_on({"nobody": 1})
    assert heard(stage.go_on(data="b")) == ["a", "b"]


@pytest.mark.parametrize("wrong", ["@0", "@2", "@99", "@-1", "@x", "@", "@1.0", "@1@1"])
def test_a_save_that_is_not_there_is_not_found(stage, wrong):
    stage.start()
    with pytest.raises(CheckpointNotFound):
        stage.go_on(id=stage.id + wrong)
    assert heard(stage.go_on(data="a")) == ["a"]


# --- branches ---


def test_a_branch_has_an_id_and_a_history_of_its_own(stage):
    first = stage.start()
    second = stage.go_on(data="a")
    branch = stage.runner.resume(f"{stage.id}@1", data="b")
    result = branch.result(20)
    assert (result.status, heard(result)) == ("interrupted", ["b"])
    assert branch.id != first.events[0].run_id
    assert branch.checkpoint_id not in {stage.id, None}
    assert {event.run_id for event in result.events} == {branch.id}
    # The trunk is where it was.
    assert heard(stage.go_on({second.interrupts[0].id: "a2"})) == ["a", "a2"]
    # The branch goes on by itself, and may be branched in its turn.
    name = str(branch.checkpoint_id)
    assert heard(stage.go_on(id=name, data="b2")) == ["b", "b2"]
    assert heard(stage.go_on(id=name, data="b3")) == ["b", "b2", "b3"]
    with pytest.raises(ResumeError, match="already answered"):
        stage.go_on(id=name, data="b4")
    assert heard(stage.go_on(data="a3")) == ["a", "a2", "a3"]


def test_the_saves_of_a_branch_have_numbers_of_their_own(stage):
    stage.start()
    stage.go_on(data="a")
    branch = stage.runner.resume(f"{stage.id}@1", data="b")
    branch.result(20)
    stage.go_on(id=branch.checkpoint_id, data="b2")
    again = stage.runner.resume(f"{branch.checkpoint_id}@1", data="c2")
    assert heard(again.result(20)) == ["b", "c2"]
    assert again.checkpoint_id not in {branch.checkpoint_id, stage.id}


def test_one_save_may_have_any_number_of_branches(stage):
    stage.start()
    stage.go_on(data="a")
    runs = [stage.runner.resume(f"{stage.id}@1", data=number) for number in range(5)]
    assert [heard(run.result(20)) for run in runs] == [[number] for number in range(5)]
    assert len({run.checkpoint_id for run in runs} | {stage.id}) == 6
    for number, run in enumerate(runs):
        assert heard(stage.go_on(id=run.checkpoint_id, data="x")) == [number, "x"]


def test_a_branch_of_a_run_that_has_ended_can_be_made_as_well(stage):
    stage.start()
    for data in "abc":
        stage.go_on(data=data)
    result = stage.go_on(id=f"{stage.id}@3", data="z")
    assert (result.status, heard(result)) == ("completed", ["a", "b", "z"])


def test_a_branch_has_targets_like_any_other():
    stage = Stage(Parallel(name="P", sub_agents=[Asker("A"), Asker("B")]))
    first = ids(stage.start())
    stage.go_on(data="trunk")
    branch = stage.runner.resume(f"{stage.id}@1", {first["A"]: "branch"})
    result = branch.result(20)
    assert [event.message.text for event in result.events if event.message] == ["A heard branch"]
    (left,) = result.interrupts
    assert stage.go_on({left.id: "b"}, id=branch.checkpoint_id).final_output == "B heard b"


def test_an_approved_tool_of_a_branch_is_called_for_the_branch():
    paid = []

    @tool(needs_approval=True)
    async def pay(context: ToolContext, amount: int) -> str:
        paid.append((context.idempotency_key, amount))
        return "paid"

    agent = chat("a", ToolCalls(pay={"amount": 5}), "end", "end of the branch", tools=[pay])
    stage = Stage(agent)
    stage.start()
    stage.go_on(data=True)
    assert stage.go_on(id=f"{stage.id}@1", data=True).final_output == "end of the branch"
    assert len(paid) == 2
    assert len(set(paid)) == 2, "it was meant to happen again: the key is another one"
    assert told(agent.model) == [("pay", "paid")]
