"""`Runner.session(start=)`: with whom a turn begins, wherever the last one was handed over to."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Sequential, ToolContext, handoff, set_sub_agents, tool
from offbook.runtime import MemoryStore, Message, Runner, ScriptedModel, ToolCalls, UsageError
from offbook.runtime.codec.packing import pack, unpack
from offbook.runtime.sessions.session_log import SessionLog

GO = ToolCalls(transfer_to_agent={"agent_name": "Billing"})
BACK = ToolCalls(transfer_to_agent={"agent_name": "Desk"})


def desk(lines, billing_lines, **options):
    billing = ChatModelAgent(
        name="Billing", description="bills", model=ScriptedModel(billing_lines), **options
    )
    return ChatModelAgent(name="Desk", model=ScriptedModel(lines), sub_agents=[billing])


async def say(runner, *texts, start="last", session="s"):
    """The agents that speak in each turn, and what is said last."""
    told = []
    for text in texts:
        result = await runner.session(session, start=start).query(text)
        told.append((result.events[0].run_path, result.last_agent, result.text))
    return told


def test_a_turn_begins_with_whom_the_last_one_ended(run):
    runner = Runner(desk([GO], ["Your bill?", "Paid."]), store=MemoryStore())
    assert run(say(runner, "a bill", "number 7")) == [
        (("Desk",), "Billing", "Your bill?"),
        (("Billing",), "Billing", "Paid."),
    ]


def test_by_default_a_turn_begins_with_the_root(run):
    runner = Runner(desk([GO, "What else?"], ["Your bill?"]), store=MemoryStore())
    assert run(say(runner, "a bill", "number 7", start="root")) == [
        (("Desk",), "Billing", "Your bill?"),
        (("Desk",), "Desk", "What else?"),
    ]


def test_with_whom_a_turn_ended_is_kept_whatever_the_session_was_opened_with(run):
    store = MemoryStore()
    runner = Runner(desk([GO], ["Your bill?", "Paid."]), store=store)

    async def main():
        await say(runner, "a bill", start="root")
        return await say(runner, "number 7")

    assert run(main()) == [(("Billing",), "Billing", "Paid.")]


def test_it_may_hand_back(run):
    runner = Runner(desk([GO, "What else?", "Bye."], ["Your bill?", BACK]), store=MemoryStore())
    told = run(say(runner, "a bill", "something else", "no"))
    assert told[1:] == [(("Billing",), "Desk", "What else?"), (("Desk",), "Desk", "Bye.")]


def test_it_is_given_all_that_was_said_before(run):
    agent = desk([GO], ["Your bill?", "Paid."])
    run(say(Runner(agent, store=MemoryStore()), "a bill", "number 7"))
    (billing,) = agent.sub_agents
    asked = [
        message.text for message in billing.model.requests[1].messages if message.role != "system"
    ]
    assert asked[0] == "a bill"
    assert asked[-2:] == ["Your bill?", "number 7"]


def test_an_agent_that_a_handoff_has_reached_outside_of_the_tree_is_found(run):
    far = ChatModelAgent(name="Far", model=ScriptedModel(["Here is Far.", "Still Far."]))
    near = ChatModelAgent(
        name="Near", model=ScriptedModel([ToolCalls("transfer_to_far")]), handoffs=[handoff(far)]
    )
    root = ChatModelAgent(
        name="Root", model=ScriptedModel([ToolCalls("transfer_to_near")]), handoffs=[near]
    )
    assert run(say(Runner(root, store=MemoryStore()), "go", "on"))[1] == (
        ("Far",),
        "Far",
        "Still Far.",
    )


def test_a_part_of_a_workflow_is_not_begun_with(run):
    parts = [
        ChatModelAgent(name=name, model=ScriptedModel([f"{name} 1", f"{name} 2"]))
        for name in ("One", "Two")
    ]
    told = run(
        say(Runner(Sequential(name="Both", sub_agents=parts), store=MemoryStore()), "go", "again")
    )
    assert told == [(("Both", "One"), "Two", "Two 1"), (("Both", "One"), "Two", "Two 2")]


def test_an_agent_that_is_gone_is_not_begun_with_and_the_log_says_so(run, caplog):
    store = MemoryStore()
    agent = desk([GO, "I am alone."], ["Your bill?"])

    async def main():
        await say(Runner(agent, store=store), "a bill")
        assert not caplog.records
        return await say(Runner(set_sub_agents(agent, []), store=store), "number 7")

    assert run(main()) == [(("Desk",), "Desk", "I am alone.")]
    (record,) = caplog.records
    for part in ("'s'", "'Billing'", "starts with 'Desk'"):
        assert part in record.getMessage()


def test_a_session_that_is_cleared_begins_with_the_root(run):
    runner = Runner(desk([GO, "Who are you?"], ["Your bill?"]), store=MemoryStore())

    async def main():
        await say(runner, "a bill")
        await runner.session("s").clear()
        return await say(runner, "number 7")

    assert run(main()) == [(("Desk",), "Desk", "Who are you?")]


@tool
def confirm(context: ToolContext) -> str:
    """Confirm."""
    return f"confirmed {context.interrupt('sure?')}"


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_turn_that_was_interrupted_goes_on_where_it_was_and_the_next_one_there_too(
    run, durability
):
    agent = desk([GO], ["Your bill?", ToolCalls(confirm={}), "Paid.", "Bye."], tools=[confirm])
    runner = Runner(agent, store=MemoryStore(), durability=durability)

    async def main():
        session = runner.session("s", start="last")
        await session.query("a bill")
        waiting = await (second := session.query("pay it"))
        assert waiting.status == "interrupted"
        result = await runner.resume(second.checkpoint_id, data="yes")
        assert (result.text, result.last_agent) == ("Paid.", "Billing")
        return await session.query("thanks")

    result = run(main())
    assert (result.events[0].run_path, result.text) == (("Billing",), "Bye.")


def test_a_run_that_is_lost_before_anybody_plays_begins_with_the_same_one_when_it_is_continued(run):
    """The mark that it has begun says with whom."""
    from offbook.runtime.agent.run_context import RunContext
    from offbook.runtime.agent.run_state import RunState
    from offbook.runtime.agent.session_values import SessionValues
    from offbook.runtime.agent.tree import build_tree
    from offbook.runtime.data.agent_input import AgentInput
    from offbook.runtime.durability.compatibility import check_format
    from offbook.runtime.durability.image import draw, rebuild

    tree = build_tree(desk([], []))

    def state():
        return RunState(
            RunContext("r", None, SessionValues(None), (), None), AgentInput((Message.user("x"),))
        )

    lost, found = state(), state()
    lost.begins_with = "Billing"
    image = unpack(pack(draw(lost, tree)))
    check_format(image)
    rebuild(image, found, tree)
    assert found.begins_with == "Billing"


def test_a_session_from_before_there_was_a_last_agent_is_read():
    record = {
        "session": 1,
        "run": "r",
        "from": 0,
        "messages": [Message.user("hi")],
        "values": {},
        "gone": [],
    }
    assert SessionLog("s", [pack(record)]).last_agent is None
    assert (
        SessionLog(
            "s", [pack({**record, "agent": "Billing"}), pack({**record, "run": "q"})]
        ).last_agent
        == "Billing"
    )


def test_another_word_is_refused():
    with pytest.raises(UsageError, match="'root' or 'last'"):
        Runner(desk([], []), store=MemoryStore()).session("s", start="first")


def test_two_turns_at_once_each_begin_with_whom_the_one_before_ended(run):
    runner = Runner(desk([GO, "Bye."], ["Your bill?", BACK]), store=MemoryStore())

    async def main():
        results = await asyncio.gather(
            *(runner.session("s", start="last").query(text) for text in "ab")
        )
        return [result.last_agent for result in results]

    assert run(main()) == ["Billing", "Desk"]
