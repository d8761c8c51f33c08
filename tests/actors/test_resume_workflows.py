"""Workflows whose children wait: who shows it, what encloses whom, and what is played when they go
on.
"""

import asyncio
from concurrent.futures import Future

import pytest

from offbook.actors import Agent, Loop, Parallel, Sequential
from offbook.runtime import AgentEvent, BreakLoop, Exit, Runner, RunStatus
from tests.doubles.waiting import Asker, Stage, chain, ids

SEQUENTIAL, LOOP, PARALLEL = (
    f"{kind} workflow interrupted" for kind in ("Sequential", "Loop", "Parallel")
)


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    """How to put an agent on a stage, with either durability."""
    return lambda agent, **options: Stage(agent, durability=request.param, **options)


class Breaker(Agent):
    """Asks, and then says and does what it is told."""

    async def run(self, input, context):
        if context.resume is None:
            yield context.interrupt(f"{self.name}?")
            return
        yield AgentEvent.say(f"{self.name} heard {context.resume.data}")
        if context.resume.data == "break":
            yield AgentEvent.of(action=BreakLoop())
        elif context.resume.data == "exit":
            yield AgentEvent.of(action=Exit())
        elif context.resume.data == "fail":
            raise ValueError("told to")


# --- Sequential ---


def test_a_child_of_a_sequential_waits_and_the_others_come_after_it(lines, actor, stage):
    before, after = actor("B", "b"), actor("C", "c")
    play = stage(Sequential(name="S", sub_agents=[before, Asker("A"), after]))
    result = play.start()
    assert lines(result) == ['B [S,B] assistant "b"', "A [S,B,A] {Interrupted 1}"]
    assert [chain(context) for context in result.interrupts] == [
        ["agent:S/agent:A 'A?' root", f"agent:S '{SEQUENTIAL}'"]
    ]
    assert lines(play.go_on(data="x")) == [
        'A [S,B,A] assistant "A heard x"',
        'C [S,B,A,C] assistant "c"',
    ]
    assert len(before.inputs) == 1
    texts = [message.text for message in after.inputs[0]]
    assert texts == ["q", "For context: [B] said: b.", "For context: [A] said: A heard x."]


def test_each_child_of_a_sequential_may_wait_in_its_turn(lines, stage):
    play = stage(Sequential(name="S", sub_agents=[Asker("A", "1?", "2?"), Asker("B")]))
    found = [lines(play.start()), *(lines(play.go_on(data=data)) for data in "123")]
    assert found == [
        ["A [S,A] {Interrupted 1}"],
        ["A [S,A] {Interrupted 1}"],
        ['A [S,A] assistant "A heard 1,2"', "B [S,A,B] {Interrupted 1}"],
        ['B [S,A,B] assistant "B heard 3"'],
    ]


@pytest.mark.parametrize(("data", "status"), [("exit", "completed"), ("fail", "failed")])
def test_what_ends_a_sequential_ends_it_after_an_interrupt_too(lines, actor, stage, data, status):
    play = stage(
        Sequential(
            name="O",
            sub_agents=[
                Sequential(name="S", sub_agents=[Breaker(name="A"), never := actor("B", "never")]),
                never2 := actor("C"),
            ],
        )
    )
    play.start()
    result = play.go_on(data=data)
    assert lines(result)[0] == f'A [O,S,A] assistant "A heard {data}"'
    assert result.status == status
    assert never.inputs == never2.inputs == []


# --- Loop ---


def test_a_child_of_a_loop_waits_and_the_rounds_go_on_from_there(lines, actor, stage):
    first = actor("B", "b")
    play = stage(Loop(name="L", sub_agents=[first, Asker("A")], max_iterations=2))
    result = play.start()
    assert lines(result) == ['B [L,B] assistant "b"', "A [L,B,A] {Interrupted 1}"]
    assert [chain(context) for context in result.interrupts] == [
        ["agent:L/agent:A 'A?' root", f"agent:L '{LOOP}'"]
    ]
    result = play.go_on(data="x")
    assert lines(result) == [
        'A [L,B,A] assistant "A heard x"',
        'B [L,B,A,B] assistant "b"',
        "A [L,B,A,B,A] {Interrupted 1}",
    ]
    result = play.go_on(data="y")
    assert lines(result) == ['A [L,B,A,B,A] assistant "A heard y"']
    assert result.status == "completed"
    assert len(first.inputs) == 2


def test_a_break_after_an_interrupt_is_of_the_round_that_it_is_in(lines, actor, stage):
    play = stage(
        Sequential(
            name="S",
            sub_agents=[
                Loop(name="L", sub_agents=[Breaker(name="A"), actor("B", "b")]),
                actor("C", "c"),
            ],
        )
    )
    play.start()
    play.go_on(data="on")
    play.go_on(data="on")
    path = "S,L,A,B,A,B,A"
    assert lines(play.go_on(data="break")) == [
        f'A [{path}] assistant "A heard break"',
        f"A [{path}] {{BreakLoop by A, done, iteration 2}}",
        'C [S,L,C] assistant "c"',
    ]


# --- Parallel ---


def test_the_others_finish_and_then_the_parallel_says_who_waits(lines, actor, stage):
    b = actor("B", "b")
    play = stage(Parallel(name="P", sub_agents=[Asker("A"), b, Asker("C")]))
    result = play.start()
    assert lines(result) == ['B [P,B] assistant "b"', "P [P] {Interrupted 2}"]
    parent = f"agent:P '{PARALLEL}'"
    assert [chain(context) for context in result.interrupts] == [
        ["agent:P/agent:A 'A?' root", parent],
        ["agent:P/agent:C 'C?' root", parent],
    ]
    result = play.go_on({ids(result)["A"]: 1, ids(result)["C"]: 3})
    assert sorted(lines(result)) == [
        'A [P,A] assistant "A heard 1"',
        'C [P,C] assistant "C heard 3"',
    ]
    assert len(b.inputs) == 1


def test_if_only_one_waits_it_is_the_parallel_s_event_as_well(lines, actor, stage):
    play = stage(Parallel(name="P", sub_agents=[actor("B", "b"), Asker("A")]))
    result = play.start()
    assert lines(result) == ['B [P,B] assistant "b"', "P [P] {Interrupted 1}"]
    assert lines(play.go_on(data=1)) == ['A [P,A] assistant "A heard 1"']


def test_no_interrupt_is_shown_while_a_sibling_is_at_work(run, lines, actor):
    gate = Future()

    async def wait(context):
        await asyncio.wrap_future(gate)

    async def main():
        shown = []
        async for event in Runner(
            Parallel(name="P", sub_agents=[Asker("A"), actor("B", "b1", wait, "b2")])
        ).query("q"):
            shown.append(event)
            if len(shown) == 1:
                gate.set_result(None)
        return shown

    assert lines(run(main())) == [
        'B [P,B] assistant "b1"',
        'B [P,B] assistant "b2"',
        "P [P] {Interrupted 1}",
    ]


def test_lanes_are_joined_in_the_order_of_the_children_after_an_interrupt_too(actor, stage):
    after = actor("Z", "z")
    children = [Asker("A"), actor("B", "b"), Asker("C")]
    play = stage(
        Sequential(
            name="S", sub_agents=[actor("Y", "y"), Parallel(name="P", sub_agents=children), after]
        )
    )
    found = ids(play.start())
    found = ids(play.go_on({found["C"]: "c"}))
    play.go_on({found["A"]: "a"})
    said = [message.text.removeprefix("For context: ") for message in after.inputs[0]]
    assert said == [
        "q",
        "[Y] said: y.",
        "[A] said: A heard a.",
        "[B] said: b.",
        "[C] said: C heard c.",
    ]
    assert children[0].inputs[1] == children[0].inputs[0], (
        "no child sees what its siblings say, later either"
    )
    assert [message.text for message in children[2].inputs[1].messages] == [
        "q",
        "For context: [Y] said: y.",
    ]


def test_a_child_that_has_failed_stays_failed(lines, actor, stage):
    failing, after = actor("B", ValueError("broken")), actor("C", "never")
    play = stage(
        Sequential(
            name="S", sub_agents=[Parallel(name="P", sub_agents=[Asker("A"), failing]), after]
        )
    )
    result = play.start()
    assert lines(result)[-1] == "P [S,P] {Interrupted 1}"
    assert result.status is RunStatus.INTERRUPTED
    result = play.go_on(data="x")
    assert lines(result)[0] == 'A [S,P,A] assistant "A heard x"'
    assert result.status is RunStatus.FAILED
    assert "broken" in str(result.error)
    assert (len(failing.inputs), after.inputs) == (1, [])


def test_a_child_that_has_exited_has_exited(lines, actor, stage):
    after = actor("C", "never")
    play = stage(
        Sequential(
            name="S",
            sub_agents=[Parallel(name="P", sub_agents=[Asker("A"), actor("B", Exit())]), after],
        )
    )
    assert lines(play.start())[-1] == "P [S,P] {Interrupted 1}"
    result = play.go_on(data="x")
    assert lines(result) == ['A [S,P,A] assistant "A heard x"']
    assert (result.status, after.inputs) == (RunStatus.COMPLETED, [])


def test_with_cancel_a_failure_leaves_nobody_to_wait_for(actor, stage):
    play = stage(
        Parallel(
            name="P", sub_agents=[Asker("A"), actor("B", ValueError("broken"))], on_error="cancel"
        )
    )
    assert play.start().status is RunStatus.FAILED


@pytest.mark.parametrize("most", [1, 2])
def test_with_few_at_once_those_that_wait_do_not_keep_the_others_from_playing(
    lines, actor, stage, most
):
    play = stage(
        Parallel(
            name="P", sub_agents=[Asker("A"), Asker("B"), actor("C", "c")], max_concurrency=most
        )
    )
    result = play.start()
    assert lines(result) == ['C [P,C] assistant "c"', "P [P] {Interrupted 2}"]
    assert play.go_on(data=1).status == "completed"


def test_children_are_known_by_position(lines, stage):
    """The same definition in two places of the tree."""
    one = Asker("A")
    inner = [Parallel(name=name, sub_agents=[one]) for name in ("P1", "P2")]
    play = stage(Sequential(name="S", sub_agents=inner))
    assert lines(play.start()) == ["P1 [S,P1] {Interrupted 1}"]
    assert lines(play.go_on(data=1)) == [
        'A [S,P1,A] assistant "A heard 1"',
        "P2 [S,P1,P2] {Interrupted 1}",
    ]
    assert lines(play.go_on(data=2)) == ['A [S,P1,P2,A] assistant "A heard 2"']
