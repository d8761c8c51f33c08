"""Any tree of workflows plays as the rules of `Sequential`, `Loop` and `Parallel` say, told a
second time as a plain function.
"""

import asyncio
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.actors import Loop, Parallel, Sequential
from offbook.runtime import BreakLoop, Exit, Runner, RunStatus

STEPS = st.sampled_from(["say", "say", "say", "break", "exit", "error"])


@dataclass
class Leaf:
    plan: list[str]
    name: str = ""


@dataclass
class Flow:
    kind: str
    children: list = field(default_factory=list)
    times: int = 1
    name: str = ""


TREES = st.recursive(
    st.builds(Leaf, st.lists(STEPS, max_size=3)),
    lambda inner: st.builds(
        Flow,
        st.sampled_from(["seq", "seq", "loop", "loop", "par"]),
        st.lists(inner, max_size=3),
        st.integers(1, 3),
    ),
    max_leaves=8,
)


def named(tree, count):
    """Give each a name of its own."""
    tree.name = f"{'A' if isinstance(tree, Leaf) else 'W'}{next(count)}"
    for child in getattr(tree, "children", ()):
        named(child, count)
    return tree


class Model:
    """What is expected: the events as lines, and what each leaf is given."""

    def __init__(self):
        self.lines = []
        self.inputs = []

    def play(self, tree, base, loop, before, said):
        """`before` and `said` are what its lane shows: of others, and its own.

        Returns how it ended, and whether it has broken a loop.
        """
        path = (*base, tree.name)
        if isinstance(tree, Leaf):
            return self.leaf(tree, path, loop, before, said)
        if tree.kind == "seq":
            return self.row(tree, path, loop, before, said)[:2]
        if tree.kind == "par":
            return self.parallel(tree, path, loop, before, said)
        for iteration in range(tree.times):
            kind, broke, path = self.row(tree, path, iteration, before, said)
            if kind != "finished":
                return kind, False
            if broke:
                break
        return "finished", False

    def row(self, tree, path, loop, before, said):
        for child in tree.children:
            kind, broke = self.play(child, path, loop, before, said)
            if kind != "finished" or broke:
                return kind, broke, path
            path = (*path, child.name)
        return "finished", False, path

    def parallel(self, tree, path, loop, before, said):
        seen, ends, lanes = [*before, *said], [], []
        for child in tree.children:
            lanes.append([])
            ends.append(self.play(child, path, loop, seen, lanes[-1]))
        for lane in lanes:
            said += lane
        for kind in ("failed", "exited"):
            if any(end == kind for end, _ in ends):
                return kind, False
        return "finished", any(broke for _, broke in ends)

    def leaf(self, tree, path, loop, before, said):
        where = f"{tree.name} [{','.join(path)}]"
        self.inputs.append(
            (
                tree.name,
                [
                    "q",
                    *(
                        text if who == tree.name else f"For context: [{who}] said: {text}."
                        for who, text in (*before, *said)
                    ),
                ],
            )
        )
        broke = False
        for place, step in enumerate(tree.plan):
            if step == "say":
                said.append((tree.name, str(place)))
                self.lines.append(f'{where} assistant "{place}"')
            elif step == "break":
                done = loop is not None
                broke = broke or done
                self.lines.append(
                    f"{where} {{BreakLoop by {tree.name}, {'done' if done else 'not done'}, "
                    f"iteration {loop}}}"
                )
            elif step == "exit":
                self.lines.append(f"{where} {{Exit}}")
                return "exited", False
            else:
                self.lines.append(f"{where} error ValueError: broken")
                return "failed", False
        return "finished", broke


def build(tree, actor, leaves):
    if isinstance(tree, Leaf):
        made = {"break": BreakLoop(), "exit": Exit(), "error": ValueError("broken")}
        leaves.append(
            actor(tree.name, *(made.get(step, str(place)) for place, step in enumerate(tree.plan)))
        )
        return leaves[-1]
    children = [build(child, actor, leaves) for child in tree.children]
    if tree.kind == "seq":
        return Sequential(name=tree.name, sub_agents=children)
    if tree.kind == "loop":
        return Loop(name=tree.name, sub_agents=children, max_iterations=tree.times)
    return Parallel(name=tree.name, sub_agents=children, max_concurrency=1)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES)
def test_every_tree_of_workflows_plays_as_the_rules_say(actor, lines, tree):
    named(tree, iter(range(100)))
    model, leaves = Model(), []
    kind, _ = model.play(tree, (), None, [], [])
    result = Runner(build(tree, actor, leaves)).query("q").result(10)
    assert lines(result) == model.lines
    assert result.status is (RunStatus.FAILED if kind == "failed" else RunStatus.COMPLETED)
    for leaf in leaves:
        assert [[message.text for message in given] for given in leaf.inputs] == [
            texts for name, texts in model.inputs if name == leaf.name
        ]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES, st.integers(0, 3))
def test_a_tree_in_a_deeper_place_plays_the_same(actor, lines, tree, depth):
    named(tree, iter(range(100)))
    bare = build(tree, actor, [])
    deep = bare
    for level in range(depth):
        deep = Sequential(name=f"S{level}", sub_agents=[deep])
    shallow, found = (Runner(one).query("q").result(10) for one in (bare, deep))
    assert [event.run_path[depth:] for event in found.events] == [
        event.run_path for event in shallow.events
    ]
    assert found.status is shallow.status


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES)
def test_with_room_for_one_event_a_consumer_sees_the_same(run, actor, lines, tree):
    named(tree, iter(range(100)))
    model = Model()
    model.play(tree, (), None, [], [])

    async def main():
        return [event async for event in Runner(build(tree, actor, []), event_buffer=1).query("q")]

    assert lines(run(main())) == model.lines


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES, st.integers(0, 4), st.sampled_from([1, 2, 1024]))
def test_a_consumer_that_goes_away_after_any_event_leaves_nothing_behind(
    run, actor, lines, tree, seen, room
):
    named(tree, iter(range(100)))
    model = Model()
    model.play(tree, (), None, [], [])

    async def main():
        one, found = Runner(build(tree, actor, []), event_buffer=room).query("q"), []
        events = aiter(one)
        async for event in events:
            found.append(event)
            if len(found) > seen:
                break
        await one.aclose()
        return found

    assert lines(run(main())) == model.lines[: seen + 1]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TREES, st.integers(0, 30))
def test_a_run_that_is_cancelled_at_any_time_has_shown_a_beginning_of_it_and_ends(
    run, actor, lines, tree, turns
):
    named(tree, iter(range(100)))
    model = Model()
    model.play(tree, (), None, [], [])

    async def main():
        one = Runner(build(tree, actor, [])).query("q")
        for _ in range(turns):
            await asyncio.sleep(0)
        one.cancel()
        return await one

    result = run(main())
    shown = lines(result)
    if result.status is RunStatus.CANCELLED:
        assert "RunCancelled" in shown.pop()
        assert model.lines[: len(shown)] == shown
    else:
        assert shown == model.lines
