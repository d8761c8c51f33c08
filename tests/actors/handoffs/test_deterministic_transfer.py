"""Agents that hand over whenever they have come to their end."""

import pytest

from offbook.actors import ChatModelAgent, DeterministicTransfer
from offbook.runtime import (
    AgentEvent,
    Exit,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
)


def to(name):
    return ToolCalls(transfer_to_agent={"agent_name": name})


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel(script), **options
    )


def pair(agent, path, target):
    return [
        f'{agent} [{path}] assistant "" tc(transfer_to_agent {{"agent_name":"{target}"}})',
        f'{agent} [{path}] tool(transfer_to_agent) "successfully transferred to agent '
        f'[{target}]" {{TransferToAgent {target}}}',
    ]


def test_a_deterministic_transfer_hands_over_when_its_agent_has_ended(lines, actor):
    x = DeterministicTransfer(actor("X", "x"), to=["R"])
    root = actor("R", ["go", TransferToAgent("X")], ["end"], sub_agents=[x])
    assert lines(Runner(root).query("q").result())[2:] == [
        'X [R,X] assistant "x"',
        *pair("X", "R,X", "R"),
        'R [R,X,R] assistant "end"',
    ]


def test_the_call_and_the_result_of_a_deterministic_transfer_belong_together(actor):
    root = actor(
        "R",
        [TransferToAgent("X")],
        ["end"],
        sub_agents=[DeterministicTransfer(actor("X", "x"), to=["R"])],
    )
    call, answer = [
        event.message
        for event in Runner(root).query("q").result().events
        if event.agent_name == "X"
    ][1:]
    assert call.tool_calls[0].id == answer.tool_call_id != ""


def test_of_several_targets_all_are_announced_and_the_last_is_followed(lines, actor):
    x = DeterministicTransfer(actor("X", "x"), to=["nobody", "R"])
    root = actor("R", [TransferToAgent("X")], ["end"], sub_agents=[x])
    assert lines(Runner(root).query("q").result())[1:] == [
        'X [R,X] assistant "x"',
        *pair("X", "R,X", "nobody"),
        *pair("X", "R,X", "R"),
        'R [R,X,R] assistant "end"',
    ]


def test_the_agent_of_a_deterministic_transfer_gets_no_transfer_tool():
    x = chat("X", "x", instruction="Do it.")
    Runner(chat("R", to("X"), "end", sub_agents=[DeterministicTransfer(x, to=["R"])])).query(
        "q"
    ).result()
    request = x.model.requests[0]
    assert request.tools == ()
    assert request.messages[0] == Message.system("Do it.")


@pytest.mark.parametrize(
    "end", [Exit(), ValueError("broken"), AgentEvent(error=ValueError("broken"))]
)
def test_after_an_exit_or_an_error_there_is_no_deterministic_transfer(lines, actor, end):
    x = DeterministicTransfer(actor("X", "x", end), to=["R"])
    root = actor("R", [TransferToAgent("X")], ["never"], sub_agents=[x])
    found = lines(Runner(root).query("q").result())
    assert found[:2] == ["R [R] {TransferToAgent X}", 'X [R,X] assistant "x"']
    assert len(found) == 3
    assert "Exit" in found[2] or "ValueError: broken" in found[2]


def test_after_an_interrupt_there_is_no_deterministic_transfer(actor):
    async def ask(context):
        return context.interrupt("which one?")

    x = DeterministicTransfer(actor("X", ask), to=["R"])
    result = (
        Runner(actor("R", [TransferToAgent("X")], ["never"], sub_agents=[x])).query("q").result()
    )
    assert result.status is RunStatus.INTERRUPTED
    assert len(result.events) == 2


def test_a_deterministic_transfer_to_somebody_unknown_is_an_error(lines, actor):
    result = Runner(DeterministicTransfer(actor("X", "x"), to=["T"])).query("q").result()
    assert lines(result) == [
        'X [X] assistant "x"',
        "X [X] error TransferError: transfer failed: agent 'T' not found when transferring "
        "from 'X'. Agents that exist: none.",
    ]


def test_an_agent_that_hands_over_by_itself_first_still_comes_back_deterministically(lines, actor):
    inner = actor("X", TransferToAgent("X1"), sub_agents=[actor("X1", "x1")])
    root = actor(
        "R", [TransferToAgent("X")], ["end"], sub_agents=[DeterministicTransfer(inner, to=["R"])]
    )
    found = lines(Runner(root).query("q").result())
    assert 'X1 [R,X,X1] assistant "x1"' in found
    assert found[-1] == 'R [R,X,R] assistant "end"'
