"""The tree of a system, as it is drawn and as it is stopped: ordinary, very deep, and very wide."""

import asyncio
import gc
import itertools

import pytest

from offbook.runtime import Actor, ActorSystem, ThreadActor

DEEP = 10_000
WIDE = 50_000


class Node(Actor):
    """Spawns a child for each name that it is sent."""

    def on_receive(self, names):
        return [self.spawn(type(self), name=name) for name in names]


class ThreadNode(ThreadActor):
    def on_receive(self, names):
        return [self.spawn(Node, name=name) for name in names]


class Gate(Actor):
    def __init__(self):
        super().__init__()
        self.opened = asyncio.Event()

    async def on_receive(self, message):
        await self.opened.wait()


class Counted(Actor):
    """Counts the living. Spawns as many children as it is told to."""

    def __init__(self, alive):
        super().__init__()
        self.alive = alive
        alive.append(None)

    def on_receive(self, count):
        for _ in range(count):
            self.spawn(Counted, self.alive)

    def on_stop(self):
        self.alive.pop()


class Link(Actor):
    """Spawns a child that does the same, until the number that is sent has come down to nothing."""

    def __init__(self, ends, bottom):
        super().__init__()
        self.ends = ends
        self.bottom = bottom

    def on_receive(self, below):
        self.level = below
        if below:
            self.spawn(Link, self.ends, self.bottom).tell(below - 1)
        else:
            self.bottom.set_result(None)

    def on_stop(self):
        self.ends.append(self.level)


async def deep(system, depth):
    ends, bottom = [], asyncio.get_running_loop().create_future()
    ref = system.spawn(Link, ends, bottom)
    ref.tell(depth - 1)
    await bottom
    return ref, ends


@pytest.fixture
def without_collector():
    """The collector's own pauses, which grow with whatever the other tests have left, are not what
    is measured here.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_the_tree_has_all_actors_with_their_states_and_depths(run):
    async def main():
        async with ActorSystem("forest") as system:
            a, b = system.spawn(Node, name="a"), system.spawn(ThreadNode, name="b")
            (a1, a2) = await a.request(["a1", "a2"])
            (a11,) = await a1.request(["a11"])
            await b.request(["b1"])
            gate = system.spawn(Gate, name="gate")
            for number in range(3):
                gate.tell(number)
            while system.stats().by_state.get("running") != 1:
                await asyncio.sleep(0)
            tree = system.tree()
            assert [
                (level, node.name, node.path, node.class_name, node.state, node.depth)
                for level, node in tree.walk()
            ] == [
                (0, "forest", "", "ActorSystem", "running", 0),
                (1, "a", "a", "Node", "open", 0),
                (2, "a1", "a/a1", "Node", "open", 0),
                (3, "a11", "a/a1/a11", "Node", "open", 0),
                (2, "a2", "a/a2", "Node", "open", 0),
                (1, "b", "b", "ThreadNode", "open", 0),
                (2, "b1", "b/b1", "Node", "open", 0),
                (1, "gate", "gate", "Gate", "running", 2),
            ]
            assert tree.ref is None
            assert [node.ref for _level, node in tree.walk()][1:5] == [a, a1, a11, a2]
            assert str(tree).splitlines() == [
                "forest (ActorSystem, running)",
                "  a (Node, open)",
                "    a1 (Node, open)",
                "      a11 (Node, open)",
                "    a2 (Node, open)",
                "  b (ThreadNode, open)",
                "    b1 (Node, open)",
                "  gate (Gate, running, 2 waiting)",
            ]
            gate._cell.actor.opened.set()
            await a1.stop()
            assert [node.name for node in system.tree().children[0].children] == ["a2"]
        assert system.tree().children == ()
        assert tree.children[0].name == "a"  # a tree is a picture: it does not change

    run(main())


def test_actors_without_names_have_different_ones(run):
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(Node) for _ in range(100)]
            assert len({ref.path for ref in refs}) == 100
            assert all(ref.name.startswith("Node-") for ref in refs)

    run(main())


def test_a_ref_in_the_tree_is_as_good_as_any(run):
    async def main():
        async with ActorSystem() as system:
            system.spawn(Node, name="a")
            (node,) = system.tree().children
            await node.ref.request(["b"])
            assert [child.path for child in system.tree().children[0].children] == ["a/b"]

    run(main())


@pytest.mark.parametrize(
    "look", [repr, lambda tree: tree == tree.children[0], hash], ids=["repr", "eq", "hash"]
)
def test_a_node_of_a_very_deep_tree_can_be_looked_at_like_any_value(run, look):
    async def main():
        async with ActorSystem() as system:
            await deep(system, DEEP // 5)  # deeper than Python can recurse
            look(system.tree())

    run(main())


def test_a_very_deep_tree_is_drawn_without_recursion(run):
    async def main():
        async with ActorSystem() as system:
            await deep(system, DEEP)
            tree = system.tree()
            assert sum(1 for _ in tree.walk()) == DEEP + 1
            assert max(level for level, _node in tree.walk()) == DEEP
            assert str(tree).count("\n") == DEEP
            assert system.stats().actors == DEEP

    run(main())


def test_a_tree_takes_room_in_proportion_to_its_actors(run):
    """Not to the lengths of all the paths, which grow with the square of the depth."""

    async def main():
        sizes = []
        for depth in (DEEP // 10, DEEP):
            async with ActorSystem() as system:
                await deep(system, depth)
                strings = {
                    id(value): value
                    for _level, node in system.tree().walk()
                    for value in slots_of(node)
                    if isinstance(value, str)
                }
                sizes.append(sum(map(len, strings.values())))
        assert sizes[1] < sizes[0] * 10 * 2

    run(main())


def slots_of(node):
    return [getattr(node, name) for name in type(node).__slots__]


@pytest.mark.slow
def test_g05_a_very_deep_tree_is_stopped_from_the_bottom_without_recursion(run):
    async def main():
        async with ActorSystem() as system:
            ref, ends = await deep(system, DEEP)
            assert await ref.stop()
            assert ends == list(range(DEEP))
            assert system.stats().actors == 0
            _ref, ends_of_another = await deep(system, DEEP)
        assert ends_of_another == list(range(DEEP))
        gc.collect()

    run(main())


def test_a_failure_far_down_goes_up_a_very_deep_tree_without_recursion(run):
    from offbook.runtime import Escalate

    class Weak(Link):
        def on_receive(self, below):
            if below:
                self.spawn(Weak, self.ends, self.bottom, supervision=Escalate()).tell(below - 1)
            else:
                raise ZeroDivisionError

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Weak, [], None)
            ref.tell(DEEP // 10)
            await ref.wait_stopped()
            assert system.stats().actors == 0

    run(main())


async def turns_while(awaitable, alive):
    """Await it, and return how many actors ended in each turn of the loop meanwhile."""
    counts, over = [len(alive)], asyncio.ensure_future(awaitable)
    while not over.done():
        await asyncio.sleep(0)
        counts.append(len(alive))
    await over
    return [before - after for before, after in itertools.pairwise(counts)]


@pytest.mark.usefixtures("without_collector")
def test_stopping_very_many_children_does_not_hold_the_loop(run):
    async def main():
        alive = []
        async with ActorSystem() as system:
            ref = system.spawn(Counted, alive)
            await ref.request(WIDE)
            assert len(alive) == WIDE + 1
            ended = await turns_while(ref.stop(), alive)
            assert sum(ended) == WIDE + 1
            assert max(ended) < WIDE / 10, (
                f"most actors that ended in one turn of the loop: {max(ended)}"
            )

    run(main())


@pytest.mark.usefixtures("without_collector")
def test_leaving_with_very_many_roots_does_not_hold_the_loop(run):
    async def main():
        alive = []
        async with ActorSystem() as system:
            for _ in range(WIDE):
                system.spawn(Counted, alive)
            ended = await turns_while(system.stop(), alive)
            assert sum(ended) == WIDE
            assert max(ended) < WIDE / 10, (
                f"most actors that ended in one turn of the loop: {max(ended)}"
            )

    run(main())


@pytest.mark.slow
def test_a_very_wide_tree_is_drawn(run):
    async def main():
        async with ActorSystem() as system:
            await system.spawn(Counted, []).request(WIDE)
            assert str(system.tree()).count("\n") == WIDE + 1

    run(main())
