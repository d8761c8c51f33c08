"""What encloses an interrupt: every agent, workflow and call on the way to it, whatever the way
is.
"""

import pytest

from offbook.actors import (
    Agent,
    DeterministicTransfer,
    Sequential,
    Supervisor,
    ToolContext,
    handoff,
    tool,
)
from offbook.runtime import (
    AddressStep,
    AgentEvent,
    Interrupted,
    MemoryStore,
    Runner,
    ToolCall,
    ToolCalls,
    TransferToAgent,
)
from tests.doubles.waiting import Asker, Stage, chain, chat, to

SEQUENTIAL = "'Sequential workflow interrupted'"


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    """How to put an agent on a stage, with either durability."""
    return lambda agent, **options: Stage(agent, durability=request.param, **options)


@tool
async def ask(context: ToolContext) -> str:
    return f"heard {context.interrupt('tool?')}"


def the_chain(play):
    (context,) = play.start().interrupts
    seen = set()
    at = context
    while at is not None:
        assert at.id not in seen
        seen.add(at.id)
        assert at.is_root_cause is (at is context)
        if at.parent is not None:
            assert at.parent.address == at.address[:-1]
        at = at.parent
    return chain(context)


# --- the chain ---


def test_the_call_of_an_agent_tool_is_a_link(stage):
    outer = chat(
        "outer",
        ToolCalls(ToolCall("c1", "inner", '{"request":"do it"}')),
        "end",
        tools=[Asker("inner").as_tool()],
    )
    play = stage(outer)
    (context,) = play.start().interrupts
    assert chain(context) == [
        "agent:outer/tool:inner/agent:inner 'inner?' root",
        "agent:outer/tool:inner None",
        "agent:outer None",
    ]
    assert context.parent.address[-1] == AddressStep("tool", "inner", "c1")
    assert play.go_on(data="x").final_output == "end"


def test_a_workflow_in_an_agent_tool_in_a_workflow(stage):
    inner = Sequential(
        name="seq", sub_agents=[chat("leaf", ToolCalls(ask={}), "leaf ends", tools=[ask])]
    )
    outer = Sequential(
        name="Out",
        sub_agents=[chat("outer", ToolCalls(seq={"request": "r"}), "end", tools=[inner.as_tool()])],
    )
    assert the_chain(stage(outer)) == [
        "agent:Out/agent:outer/tool:seq/agent:seq/agent:leaf/tool:ask 'tool?' root",
        "agent:Out/agent:outer/tool:seq/agent:seq/agent:leaf None",
        f"agent:Out/agent:outer/tool:seq/agent:seq {SEQUENTIAL}",
        "agent:Out/agent:outer/tool:seq None",
        "agent:Out/agent:outer None",
        f"agent:Out {SEQUENTIAL}",
    ]


def test_a_handoff_that_comes_back_is_a_link(stage):
    boss = chat(
        "Boss",
        ToolCalls(transfer_to_helper={}),
        "end",
        handoffs=[handoff(Asker("Helper"), mode="call")],
    )
    assert the_chain(stage(boss)) == [
        "agent:Boss/tool:transfer_to_helper/agent:Helper 'Helper?' root",
        "agent:Boss/tool:transfer_to_helper None",
        "agent:Boss None",
    ]


def test_a_workflow_in_a_deterministic_transfer(stage):
    wrapped = DeterministicTransfer(Sequential(name="W", sub_agents=[Asker("leaf")]), to=["R"])
    root = chat("R", to("W"), "end", sub_agents=[wrapped])
    assert the_chain(stage(root)) == [
        "agent:R/agent:W/agent:leaf 'leaf?' root",
        f"agent:R/agent:W {SEQUENTIAL}",
        "agent:R None",
    ]


def test_an_agent_in_a_deterministic_transfer_is_one_link_with_it(stage):
    assert the_chain(
        stage(
            Sequential(
                name="S",
                sub_agents=[
                    chat(
                        "R",
                        to("X"),
                        "end",
                        sub_agents=[DeterministicTransfer(Asker("X"), to=["R"])],
                    )
                ],
            )
        )
    ) == [
        "agent:S/agent:R/agent:X 'X?' root",
        "agent:S/agent:R None",
        f"agent:S {SEQUENTIAL}",
    ]


def test_a_workflow_in_a_supervisor_s_team(stage):
    a, b = (
        Sequential(name="A", sub_agents=[chat("a1", "a")]),
        Sequential(name="B", sub_agents=[Asker("leaf")]),
    )
    team = Supervisor(supervisor=chat("S", to("A"), to("B"), "end"), sub_agents=[a, b])
    play = stage(team)
    assert the_chain(play) == [
        "agent:S/agent:A/agent:S/agent:B/agent:leaf 'leaf?' root",
        f"agent:S/agent:A/agent:S/agent:B {SEQUENTIAL}",
        "agent:S/agent:A/agent:S None",
        "agent:S/agent:A None",
        "agent:S None",
    ]
    assert play.go_on(data="x").final_output == "end"


def test_an_agent_that_was_reached_by_a_transfer_inside_of_one_that_hands_back(stage):
    inner = chat("X", to("Y"), sub_agents=[Asker("Y")])
    root = chat("R", to("X"), "end", sub_agents=[DeterministicTransfer(inner, to=["R"])])
    assert the_chain(stage(root)) == [
        "agent:R/agent:X/agent:Y 'Y?' root",
        "agent:R/agent:X None",
        "agent:R None",
    ]


@pytest.mark.parametrize("way", ["transfer", "handoff"])
def test_an_agent_that_was_handed_over_to(stage, way):
    last = chat("C", ToolCalls(ask={}), "end", tools=[ask])
    if way == "transfer":
        root = chat("A", to("B"), sub_agents=[chat("B", to("C"), sub_agents=[last])])
    else:
        root = chat(
            "A",
            ToolCalls(transfer_to_b={}),
            handoffs=[chat("B", ToolCalls(transfer_to_c={}), handoffs=[last])],
        )
    play = stage(Sequential(name="S", sub_agents=[root]))
    assert the_chain(play) == [
        "agent:S/agent:A/agent:B/agent:C/tool:ask 'tool?' root",
        "agent:S/agent:A/agent:B/agent:C None",
        "agent:S/agent:A/agent:B None",
        "agent:S/agent:A None",
        f"agent:S {SEQUENTIAL}",
    ]
    assert play.go_on(data="x").final_output == "end"


class Circles(Agent):
    """Hands over so many times, and then asks."""

    async def run(self, input, context):
        session = context.session
        session["left"] = session.get("left", 90) - 1
        if session["left"] > 0:
            yield AgentEvent.of(action=TransferToAgent("B" if self.name == "A" else "A"))
        elif context.resume is None:
            yield context.interrupt("at last?")
        else:
            yield AgentEvent.say("done")


def test_a_very_long_line_of_transfers_has_a_chain_of_the_last_ones(stage):
    play = stage(Circles(name="A", sub_agents=[Circles(name="B")]))
    (context,) = play.start().interrupts
    assert len(context.address) == 90
    assert len(chain(context)) == 33
    assert play.go_on().final_output == "done"


# --- what an agent learns, and the consumer ---


def test_an_agent_that_goes_on_is_told_what_it_asked(stage):
    asker = Asker("A", {"question": "which one?"})
    play = stage(asker)
    play.start()
    play.go_on(data="x")
    assert [resume and resume.info for resume in asker.resumes] == [
        None,
        {"question": "which one?"},
    ]


def test_what_was_interrupted_below_an_agent_is_not_its_own_question(stage, actor):
    seen = []

    async def look(context):
        seen.append(context.resume and context.resume.info)
        return await context.cast(child)

    child = Asker("child")
    play = stage(actor("P", look))
    play.start()
    play.go_on(data="x")
    assert seen == [None, None]


def test_an_interrupted_event_says_by_which_checkpoint_the_run_goes_on(stage):
    play = stage(Asker("A", "1?", "2?"))
    result = play.start(checkpoint_id="order-7")
    assert result.events[-1].action == Interrupted(result.interrupts, "order-7")
    result = play.go_on(data="x")
    assert result.events[-1].action.checkpoint_id == "order-7"
    assert play.go_on(data="y").final_output == "A heard x,y"


def test_a_branch_says_its_own_checkpoint(stage):
    play = stage(Asker("A", "1?", "2?", "3?"))
    play.start(checkpoint_id="c")
    play.go_on(data="x")
    play.go_on(data="y")
    run = play.runner.resume("c@1", data="z")
    assert run.result(20).events[-1].action.checkpoint_id == run.checkpoint_id != "c"


def test_without_a_checkpoint_id_of_the_caller_s_it_is_the_run_s(stage):
    play = stage(Asker("A"))
    assert play.start().events[-1].action.checkpoint_id == play.id


@pytest.mark.parametrize(
    "options", [{}, {"store": MemoryStore(), "durability": "none"}], ids=["no store", "not kept"]
)
def test_without_a_checkpoint_there_is_none_to_say(options):
    assert (
        Runner(Asker("A"), **options).query("q").result(20).events[-1].action.checkpoint_id is None
    )


def test_a_checkpoint_that_could_not_be_saved_is_not_said():
    class Full(MemoryStore):
        async def commit(self, *args, **options):
            raise OSError("the disk is full")

        async def set(self, *args, **options):
            raise OSError("the disk is full")

    result = Runner(Asker("A"), store=Full()).query("q").result(20)
    assert result.error is not None
    assert result.events[-1].action.checkpoint_id is None


# --- streaming ---


@pytest.mark.parametrize(
    ("first", "asked", "then"),
    [(False, True, True), (True, False, False), (True, None, True), (False, None, False)],
)
def test_a_run_that_goes_on_streams_if_that_is_asked_for(stage, first, asked, then):
    inner = chat("inner", ToolCalls(ask={}), "the inner one ends", tools=[ask])
    outer = chat(
        "outer",
        ToolCalls(inner={"request": "r"}),
        "the outer one ends",
        tools=[inner.as_tool(emit_events=True)],
    )
    play = stage(Sequential(name="S", sub_agents=[outer]))
    play.start(streaming=first)
    shown = []
    run = play.runner.resume(play.id, data="x", streaming=asked)
    names = {event.agent_name for event in run if shown.append(event) or event.delta is not None}
    assert names == ({"inner", "outer"} if then else set())
    assert shown[-1].message.text == "the outer one ends"


def test_an_agent_that_goes_on_is_told_whether_to_stream(stage):
    asker = Asker("A")
    play = stage(asker)
    play.start()
    play.go_on(data="x", streaming=True)
    assert asker.resumes[-1].streaming is True
    assert asker.inputs[-1].streaming is True
