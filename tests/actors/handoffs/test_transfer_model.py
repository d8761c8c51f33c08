"""Any tree of agents that hand over to one another plays as the rules of transfer say, told a
second time as a plain loop.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.actors import Sequential, Supervisor
from offbook.runtime import (
    BreakLoop,
    Exit,
    MaxTransfersExceeded,
    Runner,
    RunStatus,
    TransferError,
    TransferToAgent,
)

MOST = 6
NAMES = "ABCDEFGH"


@dataclass
class Part:
    """One agent: what it does each time that it plays.

    A number is the place in the list of all agents to whom it hands over.
    """

    visits: list[list]
    closed: bool  # disallow_transfer_to_parent
    children: list = field(default_factory=list)
    name: str = ""
    parent: object = None


STEPS = (
    st.sampled_from(["say", "say", "exit", "error", "break"])
    | st.integers(0, 7)
    | st.integers(0, 7)
)
VISITS = st.lists(st.lists(STEPS, min_size=1, max_size=3), min_size=1, max_size=3)
TREES = st.recursive(
    st.builds(Part, VISITS, st.booleans()),
    lambda inner: st.builds(Part, VISITS, st.booleans(), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=5,
)


def walk(part):
    yield part
    for child in part.children:
        child.parent = part
        yield from walk(child)


def named(tree):
    """Name all of them; what they hand over to are names from here on."""
    parts = list(walk(tree))[: len(NAMES)]
    for part, name in zip(parts, NAMES, strict=False):
        part.name = name
    for part in parts:
        part.children = [child for child in part.children if child.name]
    for part in parts:
        part.visits = [
            [parts[step % len(parts)].name if isinstance(step, int) else step for step in plan]
            for plan in part.visits
        ]
    return parts


def made(step):
    plain = {"say": "said", "exit": Exit(), "error": ValueError("broken"), "break": BreakLoop()}
    return plain[step] if step in plain else TransferToAgent(step)


def build(part, actor, given):
    agent = actor(
        part.name,
        *([made(step) for step in plan] for plan in part.visits),
        sub_agents=[build(child, actor, given) for child in part.children],
        disallow_transfer_to_parent=part.closed,
    )
    given[part.name] = agent
    return agent


def expected(parts):
    """The events as lines, how it ends, and what each is given each time."""
    at, path, lines, said, inputs, times, transfers = (
        parts[0],
        (parts[0].name,),
        [],
        [],
        [],
        dict.fromkeys(NAMES, 0),
        0,
    )
    while True:
        where = f"{at.name} [{','.join(path)}]"
        inputs.append(
            (
                at.name,
                [
                    "q",
                    *(
                        "said" if who == at.name else f"For context: [{who}] said: said."
                        for who in said
                    ),
                ],
            )
        )
        plan = at.visits[min(times[at.name], len(at.visits) - 1)]
        times[at.name] += 1
        target = None
        for step in plan:
            if step == "say":
                said.append(at.name)
                lines.append(f'{where} assistant "said"')
            elif step == "break":
                lines.append(f"{where} {{BreakLoop by {at.name}, not done, iteration None}}")
            elif step == "exit":
                return [*lines, f"{where} {{Exit}}"], None, inputs
            elif step == "error":
                return [*lines, f"{where} error ValueError: broken"], ValueError, inputs
            else:
                target = step
                lines.append(f"{where} {{TransferToAgent {step}}}")
        if target is None:
            return lines, None, inputs
        reachable = [
            *at.children,
            *([at.parent] if at.parent is not None and not at.closed else []),
        ]
        found = next((part for part in reachable if part.name == target), None)
        if found is None:
            known = ", ".join(part.name for part in reachable) or "none"
            error = (
                f"transfer failed: agent '{target}' not found when transferring from "
                f"'{at.name}'. Agents that exist: {known}."
            )
            return [*lines, f"{where} error TransferError: {error}"], TransferError, inputs
        transfers += 1
        if transfers > MOST:
            return lines, MaxTransfersExceeded, inputs
        at, path = found, (*path, target)


def check(result, wanted, lines, agents):
    found, error, inputs = wanted
    shown = lines(result)
    if error is MaxTransfersExceeded:
        assert "MaxTransfersExceeded" in shown.pop()
    assert shown == found
    assert result.status is (RunStatus.COMPLETED if error is None else RunStatus.FAILED)
    assert error is None or isinstance(result.error, error)
    for name, agent in agents.items():
        assert [[message.text for message in given] for given in agent.inputs] == [
            texts for who, texts in inputs if who == name
        ]


@settings(
    max_examples=90, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES)
def test_every_tree_of_agents_hands_over_as_the_rules_say(actor, lines, tree):
    parts, agents = named(tree), {}
    result = Runner(build(tree, actor, agents), max_transfers=MOST).query("q").result(10)
    check(result, expected(parts), lines, agents)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES)
def test_in_a_sequence_they_do_the_same_and_what_follows_plays_if_they_came_to_an_end(
    actor, lines, tree
):
    parts, agents = named(tree), {}
    wanted, error, inputs = expected(parts)
    after = actor("Z", "after")
    result = (
        Runner(
            Sequential(name="S", sub_agents=[build(tree, actor, agents), after]), max_transfers=MOST
        )
        .query("q")
        .result(10)
    )
    ended = error is None and not any("{Exit}" in line for line in wanted)
    deeper = [line.replace(" [", " [S,", 1) for line in wanted] + (
        [f'Z [S,{parts[0].name},Z] assistant "after"'] if ended else []
    )
    check(result, (deeper, error, inputs), lines, agents)
    assert bool(after.inputs) is ended


TEAM = st.lists(st.sampled_from(["A", "B", "C", "end"]), max_size=6)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    TEAM,
    st.sampled_from(["abort", "report"]),
    st.lists(st.sampled_from(["say", "error", "exit"]), max_size=2),
)
def test_every_round_of_a_supervisor_s_team_is_as_the_rules_say(
    actor, lines, orders, on_error, behaviour
):
    leader = actor(
        "S",
        *([TransferToAgent(order)] if order != "end" else ["end"] for order in [*orders, "end"]),
    )
    members = [actor(name, *(made(step) for step in behaviour)) for name in "ABC"]
    result = (
        Runner(Supervisor(supervisor=leader, sub_agents=members, on_error=on_error))
        .query("q")
        .result(10)
    )
    path, wanted, over = ("S",), [], None
    for order in [*orders, "end"]:
        here = f"[{','.join(path)}]"
        if order == "end":
            wanted.append(f'S {here} assistant "end"')
            break
        path = (*path, order)
        there = f"[{','.join(path)}]"
        wanted.append(f"S {here} {{TransferToAgent {order}}}")
        told = False
        for step in behaviour:
            if step == "say":
                wanted.append(f'{order} {there} assistant "said"')
            elif step == "exit":
                wanted.append(f"{order} {there} {{Exit}}")
                over = RunStatus.COMPLETED
                break
            else:
                wanted.append(f"{order} {there} error ValueError: broken")
                told = True
                over = RunStatus.FAILED if on_error == "abort" else None
                break
        if over is not None:
            break
        if told:
            wanted.append(f"{order} {there} told")
        wanted.append(f'{order} {there} assistant "" tc(transfer_to_agent {{"agent_name":"S"}})')
        wanted.append(
            f'{order} {there} tool(transfer_to_agent) "successfully transferred to agent '
            '[S]" {TransferToAgent S}'
        )
        path = (*path, "S")
    shown = [
        line.split(" assistant ")[0] + " told" if "have failed" in line else line
        for line in lines(result)
    ]
    assert shown == wanted
    assert result.status is (over or RunStatus.COMPLETED)
