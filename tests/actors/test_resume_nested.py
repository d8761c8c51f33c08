"""Interrupts through several workflows: a chain of parents for each, one event for all, and
everything else played once.
"""

import pytest

from offbook.actors import Loop, Parallel, Sequential, ToolContext, tool
from offbook.runtime import AddressStep, ResumeError, ToolCalls
from tests.doubles.waiting import Asker, Naive, Stage, chain, chat, ids

SEQUENTIAL, LOOP, PARALLEL = (
    f"{kind} workflow interrupted" for kind in ("Sequential", "Loop", "Parallel")
)


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    """How to put an agent on a stage, with either durability."""
    return lambda agent, **options: Stage(agent, durability=request.param, **options)


@tool
async def ask(context: ToolContext) -> str:
    return f"heard {context.interrupt('tool?')}"


class Cast:
    """Parallel in Sequential in Parallel:  Out(In(before, Mid(x, done, y), after), z)."""

    def __init__(self, actor):
        self.before, self.done, self.after = (
            actor("before", "b"),
            actor("done", "d"),
            actor("after", "a"),
        )
        self.x, self.y, self.z = (
            Asker("x"),
            chat("y", ToolCalls(ask={}), "y ends", tools=[ask]),
            Naive(name="z"),
        )
        mid = Parallel(name="Mid", sub_agents=[self.x, self.done, self.y])
        self.tree = Parallel(
            name="Out",
            sub_agents=[Sequential(name="In", sub_agents=[self.before, mid, self.after]), self.z],
        )


@pytest.fixture
def cast(actor):
    return Cast(actor)


def test_one_event_of_the_outermost_parallel_holds_all_roots_with_their_parents(lines, cast, stage):
    result = stage(cast.tree).start()
    assert lines(result)[-1] == "Out [Out] {Interrupted 3}"
    assert sum("Interrupted" in line for line in lines(result)) == 1
    parents = [
        f"agent:Out/agent:In/agent:Mid '{PARALLEL}'",
        f"agent:Out/agent:In '{SEQUENTIAL}'",
        f"agent:Out '{PARALLEL}'",
    ]
    chains = [chain(context) for context in result.interrupts]
    assert chains[0] == ["agent:Out/agent:In/agent:Mid/agent:x 'x?' root", *parents]
    assert chains[1] == [
        "agent:Out/agent:In/agent:Mid/agent:y/tool:ask 'tool?' root",
        "agent:Out/agent:In/agent:Mid/agent:y None",
        *parents,
    ]
    assert chains[2] == ["agent:Out/agent:z 'z?' root", parents[-1]]
    assert {step.call_id is None for step in result.interrupts[1].address[:-1]} == {True}


def test_those_that_stand_under_the_same_parent_say_so_by_its_id(cast, stage):
    x, y, z = stage(cast.tree).start().interrupts
    assert x.parent.id == y.parent.parent.id
    assert x.parent.parent.parent.id == z.parent.id
    assert len({x.id, y.id, z.id, x.parent.id, x.parent.parent.id, z.parent.id}) == 6


def test_an_id_of_what_encloses_an_interrupt_is_no_target(cast, stage):
    play = stage(cast.tree)
    x = play.start().interrupts[0]
    with pytest.raises(ResumeError):
        play.go_on({x.parent.id: 1})


def test_all_go_on_at_once(lines, cast, stage):
    play = stage(cast.tree)
    play.start()
    result = play.go_on(data=1)
    assert sorted(lines(result)) == [
        'after [Out,In,before,Mid,after] assistant "a"',
        'x [Out,In,before,Mid,x] assistant "x heard 1"',
        'y [Out,In,before,Mid,y] assistant "y ends"',
        'y [Out,In,before,Mid,y] tool(ask) "heard 1"',
        'z [Out,z] assistant "z heard 1"',
    ]
    assert result.status == "completed"
    assert len(cast.before.inputs) == len(cast.done.inputs) == 1


def test_each_goes_on_in_its_own_time(lines, cast, stage):
    play = stage(cast.tree)
    found = {context.address[-1].name: context.id for context in play.start().interrupts}
    result = play.go_on({found["ask"]: "Y"})
    assert lines(result) == [
        'y [Out,In,before,Mid,y] tool(ask) "heard Y"',
        'y [Out,In,before,Mid,y] assistant "y ends"',
        "Out [Out] {Interrupted 2}",
    ]
    assert [context.address[-1] for context in result.interrupts] == [
        AddressStep("agent", "x"),
        AddressStep("agent", "z"),
    ]
    result = play.go_on({ids(result)["x"]: "X"})
    assert lines(result) == [
        'x [Out,In,before,Mid,x] assistant "x heard X"',
        'after [Out,In,before,Mid,after] assistant "a"',
        "Out [Out] {Interrupted 1}",
    ]
    assert [message.text for message in cast.after.inputs[0]][1:] == [
        "For context: [before] said: b.",
        "For context: [x] said: x heard X.",
        "For context: [done] said: d.",
        "For context: [y] called tool: `ask` with arguments: {}.",
        "For context: [y] `ask` tool returned result: heard Y.",
        "For context: [y] said: y ends.",
    ]
    result = play.go_on(data="Z")
    assert lines(result) == ['z [Out,z] assistant "z heard Z"']
    assert result.status == "completed"
    assert len(cast.before.inputs) == len(cast.done.inputs) == len(cast.after.inputs) == 1


def test_a_parallel_that_is_done_is_done_while_another_waits(lines, actor, stage):
    one, two = actor("one", "1"), Asker("two")
    tree = Parallel(
        name="Out",
        sub_agents=[
            Parallel(name="P", sub_agents=[one]),
            Parallel(name="Q", sub_agents=[two, Asker("three")]),
        ],
    )
    play = stage(tree)
    result = play.start()
    assert lines(result) == ['one [Out,P,one] assistant "1"', "Out [Out] {Interrupted 2}"]
    result = play.go_on({ids(result)["two"]: 2})
    assert lines(result) == ['two [Out,Q,two] assistant "two heard 2"', "Out [Out] {Interrupted 1}"]
    assert play.go_on(data=3).status == "completed"
    assert len(one.inputs) == 1


def test_a_loop_in_a_parallel_goes_round_while_its_sibling_waits(lines, stage):
    tree = Parallel(
        name="P", sub_agents=[Loop(name="L", sub_agents=[Asker("A")], max_iterations=2), Asker("B")]
    )
    play = stage(tree)
    found = ids(play.start())
    result = play.go_on({found["A"]: 1})
    assert lines(result) == ['A [P,L,A] assistant "A heard 1"', "P [P] {Interrupted 2}"]
    assert chain(result.interrupts[0]) == [
        "agent:P/agent:L/agent:A 'A?' root",
        f"agent:P/agent:L '{LOOP}'",
        f"agent:P '{PARALLEL}'",
    ]
    result = play.go_on({ids(result)["A"]: 2})
    assert lines(result) == ['A [P,L,A,A] assistant "A heard 2"', "P [P] {Interrupted 1}"]
    assert lines(play.go_on(data=3)) == ['B [P,B] assistant "B heard 3"']


def test_a_parallel_in_a_loop_plays_anew_in_each_round(lines, actor, stage):
    done = actor("done", "d")
    play = stage(
        Loop(
            name="L",
            sub_agents=[Parallel(name="P", sub_agents=[Asker("A"), done])],
            max_iterations=2,
        )
    )
    assert lines(play.start()) == ['done [L,P,done] assistant "d"', "P [L,P] {Interrupted 1}"]
    result = play.go_on(data=1)
    assert lines(result) == [
        'A [L,P,A] assistant "A heard 1"',
        'done [L,P,P,done] assistant "d"',
        "P [L,P,P] {Interrupted 1}",
    ]
    assert lines(play.go_on(data=2)) == ['A [L,P,P,A] assistant "A heard 2"']
    assert len(done.inputs) == 2


def test_deep_nesting_gives_one_parent_for_each_level(stage):
    tree = Asker("leaf")
    kinds = [(Sequential, SEQUENTIAL), (Loop, LOOP), (Parallel, PARALLEL)] * 3
    for number, (kind, _) in enumerate(kinds):
        tree = kind(
            name=f"W{number}", sub_agents=[tree], **({"max_iterations": 1} if kind is Loop else {})
        )
    play = stage(tree)
    (context,) = play.start().interrupts
    infos = []
    while context.parent is not None:
        assert context.parent.address == context.address[:-1]
        context = context.parent
        infos.append(context.info)
    assert infos == [info for _, info in kinds]
    assert play.go_on(data="x").final_output == "leaf heard x"
