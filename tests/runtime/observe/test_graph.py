"""Pictures of agents: as text, as a flowchart, as a drawing."""

import xml.etree.ElementTree as ET

import pytest

from offbook.actors import (
    ChatModelAgent,
    DeterministicTransfer,
    InputGuardrail,
    Loop,
    Parallel,
    PlanExecute,
    Sequential,
    Supervisor,
    handoff,
    make_executor,
    make_planner,
    make_replanner,
    tool,
)
from offbook.runtime import Graph, Runner, ScriptedModel, UsageError, graph


def chat(name, **options):
    return ChatModelAgent(name=name, model=ScriptedModel([]), **options)


@tool(needs_approval=True)
def refund(order: str) -> str:
    """Give the money back."""
    return order


def lookup(order: str) -> str:
    """Look it up."""
    return order


def no_cards(context, agent, text):
    raise AssertionError


def lines(picture):
    """The lines between agents, by name: (from, to, kind)."""
    names = {shape.id: shape.name for shape in picture.shapes}
    return {(names[edge.source], names[edge.target], edge.kind) for edge in picture.edges}


def team():
    billing = chat(
        "Billing",
        description="knows what was charged",
        tools=[refund, lookup],
        input_guardrails=[InputGuardrail(no_cards)],
    )
    translator = chat("Translator")
    sales = chat("Sales", handoffs=[billing], tools=[translator.as_tool()])
    return chat("Router", sub_agents=[chat("Technical", disallow_transfer_to_parent=True), sales])


def test_the_text_tells_tools_guardrails_and_ways():
    assert graph(team()).text().split("\n") == [
        "Router (ChatModelAgent)",
        "├─ Technical (ChatModelAgent)",
        "└─ Sales (ChatModelAgent)",
        "   ├─ tool Translator",
        "   ├─ may hand over to Router",
        "   ├─ handoff to Billing",
        "   └─ calls Translator",
        "Translator (ChatModelAgent)",
        "Billing (ChatModelAgent): knows what was charged",
        "├─ tool refund (needs approval)",
        "├─ tool lookup",
        "└─ guardrail no_cards",
    ]


def test_the_lines_are_those_by_which_control_may_go():
    assert lines(graph(team())) == {
        ("Router", "Technical", "transfer"),
        ("Router", "Sales", "both"),
        ("Sales", "Billing", "handoff"),
        ("Sales", "Translator", "tool"),
    }


def test_a_runner_is_its_agent():
    agent = team()
    assert graph(Runner(agent)) == graph(agent)


def test_steps_of_workflows_stand_in_their_frames():
    report = Sequential(
        name="Report",
        sub_agents=[
            Parallel(name="Collect", sub_agents=[chat("News"), chat("Prices")]),
            Loop(name="Improve", sub_agents=[chat("Writer"), chat("Critic")]),
        ],
    )
    picture = graph(report)
    names = {shape.id: shape.name for shape in picture.shapes}
    assert {(shape.name, names.get(shape.inside)) for shape in picture.shapes} == {
        ("Report", None),
        ("Collect", "Report"),
        ("News", "Collect"),
        ("Prices", "Collect"),
        ("Improve", "Report"),
        ("Writer", "Improve"),
        ("Critic", "Improve"),
    }
    assert lines(picture) == {
        ("Collect", "Improve", "step"),
        ("Writer", "Critic", "step"),
        ("Critic", "Writer", "loop"),
    }


def test_members_of_a_supervisor_always_hand_back():
    picture = graph(
        Supervisor(
            supervisor=chat("Boss", tools=[lookup]),
            sub_agents=[chat("A"), chat("B", tools=[refund])],
        )
    )
    assert lines(picture) == {
        ("Boss", "A", "transfer"),
        ("Boss", "B", "transfer"),
        ("A", "Boss", "back"),
        ("B", "Boss", "back"),
    }
    assert {shape.name: [row.name for row in shape.tools] for shape in picture.shapes} == {
        "Boss": ["lookup"],
        "A": [],
        "B": ["refund"],
    }


def test_handoffs_in_a_circle_are_drawn_once():
    first, second = chat("First", handoffs=(there := [])), chat("Second", handoffs=(back := []))
    there.append(handoff(second, tool_name="go"))
    back.append(first)
    picture = graph(first)
    assert [shape.name for shape in picture.shapes] == ["First", "Second"]
    assert lines(picture) == {("First", "Second", "handoff"), ("Second", "First", "handoff")}
    assert {edge.label for edge in picture.edges} == {"go", "transfer_to_first"}


def test_an_agent_behind_a_deterministic_transfer_shows_its_tools():
    root = chat("Root", sub_agents=[DeterministicTransfer(chat("A", tools=[lookup]), to=["Root"])])
    assert "then hands off to Root" in graph(root).text()
    assert "tool lookup" in graph(root).text()


def test_plan_and_execute_is_a_sequence_with_a_loop():
    model = ScriptedModel([])
    plan = PlanExecute(
        planner=make_planner(model),
        executor=make_executor(model),
        replanner=make_replanner(model),
        max_iterations=4,
    )
    picture = graph(plan)
    assert ("planner", "execute_replan", "step") in lines(picture)
    assert ("replanner", "executor", "loop") in lines(picture)
    assert "at most 4 times" in picture.mermaid()


HOSTILE = 'x"]; <script>alert(1)</script> & #`'


def test_names_cannot_break_out_of_a_flowchart():
    text = graph(chat(HOSTILE, description=HOSTILE)).mermaid()
    assert text == (
        'flowchart TD\n    a0["<b>x#quot;]; &lt;script&gt;alert(1)&lt;/script&gt; &amp; '
        '#35;#96;</b>"]'
    ).replace("&", "&")


def test_names_cannot_break_out_of_a_drawing():
    picture = graph(
        Sequential(name="S", sub_agents=[chat(HOSTILE, description=HOSTILE), chat("B")])
    ).svg()
    root = ET.fromstring(picture)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith('x"]; <script>') for text in texts)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def boxes(svg):
    root = ET.fromstring(svg)
    found = root.iter("{http://www.w3.org/2000/svg}rect")
    size = float(root.get("width")), float(root.get("height"))
    return size, [
        tuple(float(rect.get(name)) for name in ("x", "y", "width", "height")) for rect in found
    ]


@pytest.mark.parametrize(
    "agent",
    [
        team(),
        Parallel(
            name="P", sub_agents=[chat(f"agent {number}", tools=[lookup]) for number in range(30)]
        ),
    ],
    ids=["team", "many"],
)
def test_boxes_lie_in_the_drawing_and_none_on_another(agent):
    (width, height), found = boxes(graph(agent).svg())
    frames = 1 if len(found) == 31 else 0
    for x, y, w, h in found:
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
    for index, (x, y, w, h) in enumerate(found[frames:]):
        for x2, y2, w2, h2 in found[frames:][index + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_a_notebook_shows_the_drawing():
    picture = graph(chat("A"))
    assert isinstance(picture, Graph)
    assert picture._repr_svg_() == picture.svg()
    assert str(picture) == picture.text() == "A (ChatModelAgent)"


def test_what_is_no_agent_is_refused():
    with pytest.raises(UsageError, match="not an agent"):
        graph("router")
