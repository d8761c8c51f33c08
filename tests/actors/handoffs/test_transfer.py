"""Handing over: the tool, its words, who may go where, and agents that always hand over."""

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential, transfer_tool
from offbook.runtime import (
    Exit,
    MaxTransfersExceeded,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    TransferError,
    TransferToAgent,
)

DECISION_RULE = """

Decision rule:
- If you're best suited for the question according to your description: ANSWER
- If another agent is better according its description: CALL 'transfer_to_agent' function with their agent name

When transferring: OUTPUT ONLY THE FUNCTION CALL"""


def to(name):
    return ToolCalls(transfer_to_agent={"agent_name": name})


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel(script), **options
    )


# --- the tool ---


def test_a_router_hands_over_and_is_not_asked_again(lines):
    weather = chat("Weather", "25°C", instruction="Tell the weather.")
    router = chat("Router", to("Weather"), sub_agents=[weather])
    result = Runner(router).query("weather in Paris?").result()
    assert lines(result) == [
        'Router [Router] assistant "" tc(transfer_to_agent {"agent_name":"Weather"})',
        'Router [Router] tool(transfer_to_agent) "successfully transferred to agent '
        '[Weather]" {TransferToAgent Weather}',
        'Weather [Router,Weather] assistant "25°C"',
    ]
    assert result.status is RunStatus.COMPLETED
    assert (result.final_output, result.last_agent) == ("25°C", "Weather")
    assert len(router.model.requests) == 1


def test_the_transfer_tool_is_as_the_model_expects_it():
    router = chat("Router", "no", sub_agents=[chat("Weather")])
    Runner(router).query("q").result()
    (spec,) = router.model.requests[0].tools
    assert (spec.name, spec.description) == (
        "transfer_to_agent",
        "Transfer the question to another agent.",
    )
    named = {
        "type": "string",
        "description": "the name of the agent to transfer to",
        "enum": ["Weather"],
    }
    assert spec.parameters["properties"] == {"agent_name": named}
    assert spec.parameters["required"] == ["agent_name"]
    assert transfer_tool.name == "transfer_to_agent"


def test_there_is_one_transfer_tool_for_any_number_of_targets():
    router = chat("Router", "no", sub_agents=[chat(name) for name in "ABCDE"])
    Runner(router).query("q").result()
    assert [spec.name for spec in router.model.requests[0].tools] == ["transfer_to_agent"]


def test_the_instruction_names_sub_agents_in_order_then_the_parent(asked):
    middle = chat("M", "hello", instruction="You are M.", sub_agents=[chat("Z"), chat("B")])
    root = chat("R", to("M"), sub_agents=[middle])
    Runner(root).query("q").result()
    targets = "".join(
        f"\n- Agent name: {name}\n  Agent description: about {name}" for name in ("Z", "B", "R")
    )
    assert middle.model.requests[0].messages[0] == Message.system(
        f"You are M.\n\nAvailable other agents: {targets}{DECISION_RULE}"
    )


def test_without_an_instruction_of_its_own_the_system_message_is_the_transfer_text():
    root = chat("R", "hello", sub_agents=[chat("A")])
    Runner(root).query("q").result()
    expected = (
        f"Available other agents: \n- Agent name: A\n  Agent description: about A{DECISION_RULE}"
    )
    assert root.model.requests[0].messages[0] == Message.system(expected)


def test_an_instruction_function_is_followed_by_the_transfer_text_too():
    root = chat(
        "R", "hello", instruction=lambda _context: "From a function.", sub_agents=[chat("A")]
    )
    Runner(root).query("q").result()
    assert (
        root.model.requests[0]
        .messages[0]
        .text.startswith("From a function.\n\nAvailable other agents: \n- Agent name: A\n")
    )


def test_braces_in_a_description_are_no_placeholders():
    other = ChatModelAgent(name="A", description="knows {secret} and {0}", model=ScriptedModel([]))
    root = chat("R", "hello", instruction="For {user}.", sub_agents=[other])
    Runner(root).query("q", session_values={"user": "Ann", "secret": "x"}).result()
    text = root.model.requests[0].messages[0].text
    assert text.startswith("For Ann.\n\n")
    assert "Agent description: knows {secret} and {0}" in text


def test_an_agent_with_nobody_to_hand_over_to_has_neither_tool_nor_text():
    alone = chat("A", "hello", instruction="Be brief.")
    Runner(alone).query("q").result()
    request = alone.model.requests[0]
    assert request.tools == ()
    assert request.messages[0] == Message.system("Be brief.")


def test_a_definition_shows_what_its_place_in_each_tree_allows():
    shared = chat("W", "one", "two")
    Runner(chat("R", to("W"), sub_agents=[shared])).query("q").result()
    Runner(shared).query("q").result()
    first, second = shared.model.requests
    assert [spec.name for spec in first.tools] == ["transfer_to_agent"]
    assert second.tools == ()


# --- who may go where ---


@pytest.mark.parametrize("unknown", ["X", "", "weather", "Router"])
def test_the_model_is_told_of_a_target_that_does_not_exist_and_is_asked_again(lines, unknown):
    router = chat(
        "Router", to(unknown), to("Weather"), sub_agents=[chat("Weather", "25°C"), chat("Sports")]
    )
    result = Runner(router).query("q").result()
    why = (
        f"transfer failed: agent '{unknown}' not found when transferring from 'Router'. Agents "
        "that exist: Weather, Sports."
    )
    assert lines(result) == [
        f'Router [Router] assistant "" tc(transfer_to_agent {{"agent_name":"{unknown}"}})',
        f'Router [Router] tool(transfer_to_agent) "{why}"',
        'Router [Router] assistant "" tc(transfer_to_agent {"agent_name":"Weather"})',
        'Router [Router] tool(transfer_to_agent) "successfully transferred to agent '
        '[Weather]" {TransferToAgent Weather}',
        'Weather [Router,Weather] assistant "25°C"',
    ]
    assert router.model.requests[1].messages[-1].text == why
    assert result.status is RunStatus.COMPLETED


@pytest.mark.parametrize("unknown", ["X", "Router"])
def test_where_errors_of_tools_are_raised_an_unknown_target_is_an_error_event(lines, unknown):
    router = chat(
        "Router", to(unknown), "never", sub_agents=[chat("Weather")], on_tool_error="raise"
    )
    result = Runner(router).query("q").result()
    assert lines(result) == [
        f'Router [Router] assistant "" tc(transfer_to_agent {{"agent_name":"{unknown}"}})',
        f"Router [Router] error TransferError: transfer failed: agent '{unknown}' not found "
        "when transferring from 'Router'. Agents that exist: Weather.",
    ]
    assert result.status is RunStatus.FAILED
    assert (result.events[-1].agent_name, result.events[-1].run_path) == ("Router", ("Router",))
    assert (result.error.agent, result.error.run) == ("Router", result.events[0].run_id)
    with pytest.raises(TransferError):
        result.raise_for_error()


def test_of_a_known_and_an_unknown_target_in_one_reply_the_known_one_is_followed(lines):
    both = ToolCalls(
        ("transfer_to_agent", {"agent_name": "X"}), ("transfer_to_agent", {"agent_name": "Weather"})
    )
    router = chat("Router", both, "never", sub_agents=[chat("Weather", "25°C")])
    result = Runner(router).query("q").result()
    assert lines(result)[1:] == [
        "Router [Router] tool(transfer_to_agent) \"transfer failed: agent 'X' not found when "
        "transferring from 'Router'. Agents that exist: Weather.\"",
        'Router [Router] tool(transfer_to_agent) "successfully transferred to agent '
        '[Weather]" {TransferToAgent Weather}',
        'Weather [Router,Weather] assistant "25°C"',
    ]


def test_siblings_are_not_reachable(lines, actor):
    a = actor("A", TransferToAgent("B"))
    root = actor("R", TransferToAgent("A"), sub_agents=[a, actor("B", "never")])
    failed = (
        "transfer failed: agent 'B' not found when transferring from 'A'. Agents that exist: R."
    )
    assert lines(Runner(root).query("q").result())[-1] == f"A [R,A] error TransferError: {failed}"


def test_a_grandparent_is_not_reachable(lines, actor):
    c = actor("C", TransferToAgent("A"))
    b = actor("B", TransferToAgent("C"), sub_agents=[c])
    a = actor("A", TransferToAgent("B"), sub_agents=[b])
    assert (
        "agent 'A' not found when transferring from 'C'."
        in lines(Runner(a).query("q").result())[-1]
    )


def test_a_grandchild_is_not_reachable(lines, actor):
    b = actor("B", sub_agents=[actor("C", "never")])
    assert (
        "agent 'C' not found when transferring from 'A'."
        in lines(Runner(actor("A", TransferToAgent("C"), sub_agents=[b])).query("q").result())[-1]
    )


def test_agents_hand_over_down_and_up_again_at_depth_three(lines):
    d = chat("D", to("C"))
    c = chat("C", to("D"), to("B"), sub_agents=[d])
    b = chat("B", to("C"), to("A"), sub_agents=[c])
    a = chat("A", to("B"), "done", sub_agents=[b])
    result = Runner(a).query("q").result()
    events = [line for line in lines(result) if "TransferToAgent" in line or '"done"' in line]
    tool = "tool(transfer_to_agent) "
    assert events == [
        f'A [A] {tool}"successfully transferred to agent [B]" {{TransferToAgent B}}',
        f'B [A,B] {tool}"successfully transferred to agent [C]" {{TransferToAgent C}}',
        f'C [A,B,C] {tool}"successfully transferred to agent [D]" {{TransferToAgent D}}',
        f'D [A,B,C,D] {tool}"successfully transferred to agent [C]" {{TransferToAgent C}}',
        f'C [A,B,C,D,C] {tool}"successfully transferred to agent [B]" {{TransferToAgent B}}',
        f'B [A,B,C,D,C,B] {tool}"successfully transferred to agent [A]" {{TransferToAgent A}}',
        'A [A,B,C,D,C,B,A] assistant "done"',
    ]
    assert result.status is RunStatus.COMPLETED


def test_a_parent_that_may_not_be_gone_back_to_is_neither_listed_nor_reachable(lines):
    child = chat(
        "Child", to("Root"), "stays", disallow_transfer_to_parent=True, tools=[transfer_tool]
    )
    root = chat("Root", to("Child"), sub_agents=[child])
    result = Runner(root).query("q").result()
    request = child.model.requests[0]
    assert all("Available other agents" not in message.text for message in request.messages)
    why = (
        "transfer failed: agent 'Root' not found when transferring from 'Child'. Agents that "
        "exist: none."
    )
    assert lines(result)[-2:] == [
        f'Child [Root,Child] tool(transfer_to_agent) "{why}"',
        'Child [Root,Child] assistant "stays"',
    ]


def test_a_parent_that_may_not_be_gone_back_to_is_left_out_beside_sub_agents():
    child = chat(
        "Child", "hello", disallow_transfer_to_parent=True, sub_agents=[chat("Grandchild")]
    )
    Runner(chat("Root", to("Child"), sub_agents=[child])).query("q").result()
    text = child.model.requests[0].messages[0].text
    assert "- Agent name: Grandchild" in text
    assert "- Agent name: Root" not in text


@pytest.mark.parametrize("workflow", [Sequential, Loop, Parallel])
def test_children_of_a_workflow_have_nobody_to_hand_over_to(workflow):
    a, b = chat("A", "a"), chat("B", "b")
    options = {"max_iterations": 1} if workflow is Loop else {}
    Runner(workflow(name="W", sub_agents=[a, b], **options)).query("q").result()
    assert a.model.requests[0].tools == b.model.requests[0].tools == ()


@pytest.mark.parametrize("target", ["W", "B", "R"])
@pytest.mark.parametrize("workflow", [Sequential, Loop, Parallel])
def test_a_child_of_a_workflow_cannot_hand_over_to_the_workflow_or_a_sibling(
    lines, actor, workflow, target
):
    w = workflow(name="W", sub_agents=[actor("A", TransferToAgent(target)), actor("B", "b")])
    result = Runner(actor("R", TransferToAgent("W"), sub_agents=[w])).query("q").result()
    assert (
        f"A [R,W,A] error TransferError: transfer failed: agent '{target}' not found when "
        "transferring from 'A'. Agents that exist: none." in lines(result)
    )
    assert result.status is RunStatus.FAILED


def test_a_child_of_a_workflow_has_sub_agents_of_its_own_and_the_workflow_goes_on_after_them(lines):
    inner = chat("A1", to("A"))
    a = chat("A", to("A1"), "a is back", sub_agents=[inner])
    result = Runner(Sequential(name="S", sub_agents=[a, chat("B", "b")])).query("q").result()
    assert [line for line in lines(result) if 'assistant "' in line and "tc(" not in line] == [
        'A [S,A,A1,A] assistant "a is back"',
        'B [S,A,B] assistant "b"',
    ]
    assert "- Agent name: A1" in a.model.requests[0].messages[0].text
    assert "- Agent name: S" not in a.model.requests[0].messages[0].text


def test_a_router_hands_over_to_a_workflow_and_control_does_not_come_back(lines, actor):
    w = Sequential(name="W", description="works", sub_agents=[actor("A", "a"), actor("B", "b")])
    router = chat("R", to("W"), sub_agents=[w])
    assert lines(Runner(router).query("q").result())[2:] == [
        'A [R,W,A] assistant "a"',
        'B [R,W,A,B] assistant "b"',
    ]
    assert len(router.model.requests) == 1


def test_a_sub_agent_is_found_before_the_parent(actor):
    # Names are unique, so this can only be seen in the order of the list.
    b = chat("B", "hello", sub_agents=[chat("C")])
    Runner(chat("A", to("B"), sub_agents=[b])).query("q").result()
    text = b.model.requests[0].messages[0].text
    assert text.index("Agent name: C") < text.index("Agent name: A")


# --- custom agents ---


def test_a_custom_agent_hands_over_with_a_bare_action(lines, actor):
    root = actor("R", TransferToAgent("A"), sub_agents=[actor("A", "hello")])
    assert lines(Runner(root).query("q").result()) == [
        "R [R] {TransferToAgent A}",
        'A [R,A] assistant "hello"',
    ]


def test_a_custom_agent_is_taken_to_its_end_before_the_target_begins(lines, actor):
    root = actor("R", TransferToAgent("A"), "and one more", sub_agents=[actor("A", "hello")])
    assert lines(Runner(root).query("q").result()) == [
        "R [R] {TransferToAgent A}",
        'R [R] assistant "and one more"',
        'A [R,A] assistant "hello"',
    ]


@pytest.mark.parametrize(
    ("end", "status"), [(Exit(), RunStatus.COMPLETED), (ValueError("broken"), RunStatus.FAILED)]
)
def test_an_exit_or_error_after_the_action_is_stronger(actor, end, status):
    target = actor("A", "never")
    result = Runner(actor("R", TransferToAgent("A"), end, sub_agents=[target])).query("q").result()
    assert result.status is status
    assert target.inputs == []


# --- how many ---


def ping_pong(actor):
    b = actor("B", TransferToAgent("A"))
    return actor("A", TransferToAgent("B"), sub_agents=[b])


@pytest.mark.parametrize("most", [0, 1, 2, 7])
def test_more_transfers_than_allowed_are_an_error(actor, most):
    result = Runner(ping_pong(actor), max_transfers=most).query("q").result()
    transfers = [event for event in result.events if event.action is not None]
    assert len(transfers) == most + 1
    assert isinstance(result.error, MaxTransfersExceeded)
    assert result.events[-1].error is result.error
    assert str(most) in str(result.error)
    assert result.status is RunStatus.FAILED


def test_as_many_transfers_as_allowed_are_none(actor):
    b = actor("B", TransferToAgent("A"))
    a = actor("A", [TransferToAgent("B")], ["done"], sub_agents=[b])
    assert Runner(a, max_transfers=2).query("q").result().final_output == "done"


def test_without_a_number_a_hundred_transfers_are_allowed(actor):
    result = Runner(ping_pong(actor)).query("q").result()
    assert len([event for event in result.events if event.action is not None]) == 101


def test_transfers_are_counted_over_the_whole_run(actor):
    def child(name):
        return actor(name, TransferToAgent(f"{name}1"), sub_agents=[actor(f"{name}1", "hi")])

    result = (
        Runner(
            Sequential(name="S", sub_agents=[child("A"), child("B"), child("C")]), max_transfers=2
        )
        .query("q")
        .result()
    )
    assert isinstance(result.error, MaxTransfersExceeded)
    assert [event.agent_name for event in result.events if event.message is not None] == [
        "A1",
        "B1",
    ]


# --- beside other calls ---


@pytest.mark.parametrize("exit_first", [True, False])
def test_an_exit_beside_a_transfer_ends_the_run_with_its_result(actor, exit_first):
    calls = [("exit", {"final_result": "R"}), ("transfer_to_agent", {"agent_name": "B"})]
    agent = chat(
        "A",
        ToolCalls(*(calls if exit_first else calls[::-1])),
        exit_tool=True,
        sub_agents=[target := actor("B", "never")],
    )
    result = Runner(agent).query("q").result()
    assert result.final_output == "R"
    assert result.events[-1].action == Exit()
    assert target.inputs == []


def test_of_two_transfers_in_one_reply_the_first_is_followed(actor):
    calls = ToolCalls(*(("transfer_to_agent", {"agent_name": name}) for name in "BC"))
    agent = chat("A", calls, sub_agents=[actor("B", "b"), never := actor("C", "never")])
    result = Runner(agent).query("q").result()
    assert [event.action for event in result.events if event.action is not None] == [
        TransferToAgent("B")
    ]
    assert result.final_output == "b"
    assert never.inputs == []


@pytest.mark.parametrize("arguments", ["{broken", "{}", '{"name":"B"}', "[]", '{"agent_name":5}'])
def test_a_transfer_call_that_is_not_valid_is_told_to_the_model(actor, arguments):
    agent = chat(
        "A",
        ToolCalls(("transfer_to_agent", arguments)),
        "answered myself",
        sub_agents=[actor("B", "never")],
    )
    result = Runner(agent).query("q").result()
    assert result.final_output == "answered myself"
    assert all(event.action is None for event in result.events)


def test_a_transfer_waits_for_the_other_tools_of_its_reply(lines, actor):
    def look() -> str:
        return "seen"

    calls = ToolCalls(("transfer_to_agent", {"agent_name": "B"}), ("look", {}))
    result = (
        Runner(chat("A", calls, tools=[look], sub_agents=[actor("B", "b")])).query("q").result()
    )
    assert lines(result)[1:] == [
        'A [A] tool(look) "seen"',
        'A [A] tool(transfer_to_agent) "successfully transferred to agent [B]" {TransferToAgent B}',
        'B [A,B] assistant "b"',
    ]
