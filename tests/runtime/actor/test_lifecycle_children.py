"""The tree in the life of an actor: children stop before their parents, and who may spawn at what
time.
"""

import asyncio

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, Stop


class Node:
    """An actor with a tree below it, `{label: subtree}`, spawned in `on_start` or, if its class
    says so, in `__init__`.
    """

    early = False

    def __init__(self, log, label="root", below=()):
        super().__init__()
        self.log, self.label, self.below = log, label, below
        log.append(f"init {label}")
        if self.early:
            self.spawn_all()

    def spawn_all(self):
        for label in self.below:
            self.spawn(type(self), self.log, label, self.below[label], name=label)

    def on_start(self):
        self.log.append(f"start {self.label}")
        if not self.early:
            self.spawn_all()

    def on_receive(self, message):
        if message == "fail":
            raise RuntimeError(self.label)
        return message

    def on_stop(self):
        self.log.append(f"stop {self.label}")

    def on_failure(self, kind, error, traceback):
        self.log.append(f"failure {self.label}")


class EarlyNode(Node):
    early = True


TREE = {"a": {"a1": {}, "a2": {"a21": {}}}, "b": {}}


def of(kind, mixin=Node):
    return type(mixin.__name__, (mixin, kind), {})


async def settled(system, count):
    """Wait until that many actors handle messages; what they have in the mailbox is handled by
    then.
    """
    while True:
        nodes = [node for _, node in system.tree().walk() if node.ref is not None]
        for node in nodes:
            await node.ref.request("are you there?")
        if len(nodes) == count:
            return {node.name: node.ref for node in nodes}


def assert_children_before_parents(log, event="stop"):
    def check(label, below):
        for child, its in below.items():
            assert log.index(f"{event} {child}") < log.index(f"{event} {label}")
            check(child, its)

    check("root", TREE)


@pytest.mark.parametrize("mixin", [Node, EarlyNode])
def test_children_may_be_spawned_in_init_and_in_on_start(run, kind, mixin):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, mixin), log, below=TREE, name="root")
            refs = await settled(system, 6)
            assert refs["root"] == ref
            assert refs["a21"].path == "root/a/a2/a21"

    run(main())
    assert sorted(entry for entry in log if entry.startswith("start")) == [
        f"start {label}" for label in ("a", "a1", "a2", "a21", "b", "root")
    ]


@pytest.mark.parametrize("mixin", [Node, EarlyNode])
def test_children_stop_before_their_parents_when_the_root_is_stopped(run, kind, mixin):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, mixin), log, below=TREE, name="root")
            refs = await settled(system, 6)
            assert await ref.stop() is True
            assert not any(each.is_alive() for each in refs.values())
            assert_children_before_parents(log)
            assert system.stats().actors == 0

    run(main())


def test_children_stop_before_their_parents_when_the_system_is_left(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            system.spawn(of(kind), log, below=TREE, name="root")
            await settled(system, 6)

    run(main())
    assert_children_before_parents(log)


def test_children_stop_before_their_parents_also_when_nobody_has_a_hook(run):
    class Plain(Actor):
        def on_receive(self, message):
            return self.spawn(Plain) if message == "spawn" else message

    ends = []

    class Watcher(Actor):
        def on_receive(self, message):
            if isinstance(message, list):
                for ref in message:
                    self.watch(ref)
            else:
                ends.append(message.ref)

    async def main():
        async with ActorSystem() as system:
            top = system.spawn(Plain)
            middle = await top.request("spawn")
            bottom = await middle.request("spawn")
            watcher = system.spawn(Watcher)
            await watcher.request([top, middle, bottom])
            await top.stop()
            await watcher.stop(drain=True)
            assert ends == [bottom, middle, top]

    run(main())


def test_children_of_a_failed_actor_stop_before_its_on_failure(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind), log, below=TREE, name="root", supervision=Stop())
            await settled(system, 6)
            ref.tell("fail")
            await ref.wait_stopped()
            assert system.stats().actors == 0

    run(main())
    assert log[-1] == "failure root"
    assert "stop root" not in log
    assert {"stop a", "stop b", "stop a1", "stop a2", "stop a21"} < set(log)


def test_stopping_a_child_leaves_its_parent_and_siblings_alone(run, kind):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind), log, below=TREE, name="root")
            refs = await settled(system, 6)
            await refs["a"].stop()
            assert [entry for entry in log if entry.startswith("stop")][-1] == "stop a"
            assert set(await settled(system, 2)) == {"root", "b"}
            assert await ref.request("still here?") == "still here?"

    run(main())


def test_a_parent_forgets_children_that_have_ended(run, kind):
    class Parent(kind):
        def on_receive(self, message):
            if message == "spawn":
                return self.spawn(of(kind), [])
            return self.actor_children

    async def main():
        async with ActorSystem() as system:
            parent = system.spawn(Parent)
            one, other = await parent.request("spawn"), await parent.request("spawn")
            assert await parent.request("list") == (one, other)
            await one.stop()
            assert await parent.request("list") == (other,)

    run(main())


# --- too late for children ---


@pytest.mark.parametrize("hook", ["on_stop", "on_failure"])
def test_a_stopping_actor_is_refused_children(run, kind, hook):
    refusals = []

    def spawn_late(self, *args):
        with pytest.raises(ActorDeadError) as caught:
            self.spawn(Late, name="late")
        refusals.append(caught.value)

    class Late(kind):
        def on_start(self):
            refusals.append("started")

    late_parent = type(
        "LateParent", (kind,), {hook: spawn_late, "on_receive": lambda self, message: 1 / 0}
    )

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(late_parent, name="closing")
            if hook == "on_failure":
                ref.tell("fail")
                await ref.wait_stopped()
            else:
                await ref.stop()
            assert system.stats().actors == 0

    run(main())
    assert len(refusals) == 1, "the late child never started"
    assert "closing is stopping" in str(refusals[0])
    assert "Late" in str(refusals[0])


def test_a_handler_that_goes_on_while_its_actor_stops_is_refused_children(run, kind, gate):
    class Slow(kind):
        async def on_receive(self, message):
            await gate.wait()
            with pytest.raises(ActorDeadError, match="accepts no new child"):
                self.spawn(of(kind), [])
            return "refused"

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Slow)
            reply = ref.ask("go on", block=False)
            await gate.reached()
            stopped = ref.stop()
            await asyncio.sleep(0)  # the request to stop arrives
            gate.open()
            assert await reply == "refused"
            await stopped

    run(main())


def test_an_actor_that_has_ended_is_refused_children(run, kind):
    class Leaky(kind):
        def on_receive(self, message):
            return self

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Leaky, name="gone")
            instance = await ref.request("yourself")
            await ref.stop()
            with pytest.raises(ActorDeadError, match="gone"):
                instance.spawn(of(kind), [])
            assert system.stats().actors == 0
        with pytest.raises(ActorDeadError, match="gone"):
            instance.spawn(of(kind), [])

    run(main())


def test_the_children_of_an_init_that_raises_are_stopped(run, kind):
    log = []

    class Broken(kind):
        def __init__(self):
            super().__init__()
            self.spawn(of(kind), log, "orphan")
            raise RuntimeError("no")

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(RuntimeError, match="no"):
                system.spawn(Broken)
        assert log[0] == "init orphan"
        assert log[-1] == "stop orphan" or log == ["init orphan"]

    run(main())
