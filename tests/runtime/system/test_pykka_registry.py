"""pykka's global registry: it knows our roots only, stays fast with very many of them, and
`stop_all()` stops everything. And pykka's private names.
"""

import inspect
import re
import threading
import time

import pykka
import pytest
from pykka import ActorRegistry
from pykka._introspection import get_attr_directly

from offbook.runtime import Actor, ActorSystem, ThreadActor
from offbook.runtime.system.registry import Refs

MANY = 100_000


class Base(Actor):
    def __init__(self):
        super().__init__()
        self.received = []

    def on_receive(self, message):
        self.received.append(message)


class A(Base):
    pass


class B(Base):
    pass


class ThreadB(B, ThreadActor):
    pass


class Idle(Actor):
    def on_receive(self, message):
        return message


class Parent(Actor):
    def __init__(self, ends):
        super().__init__()
        self.ends = ends

    def on_receive(self, message):
        return self.spawn(message, self.ends)

    def on_stop(self):
        self.ends.append(type(self).__name__)


class Child(Parent):
    pass


class Grandchild(Parent):
    pass


@pytest.fixture
def system():
    assert ActorRegistry.get_all() == []
    with ActorSystem.in_thread() as system:
        yield system
    assert ActorRegistry.get_all() == []


@pytest.fixture
def refs(system):
    return {"a": [A.start() for _ in range(3)], "b": [B.start(), ThreadB.start()]}


def test_actors_are_registered_from_their_start_to_their_stop(system):
    for kind in (A, ThreadB):
        ref = kind.start()
        assert ActorRegistry.get_all() == [ref]
        ref.stop()
        assert ActorRegistry.get_all() == []
    ref = system.spawn(A)
    assert ActorRegistry.get_all() == [ref]


def test_actors_are_found_by_class_superclass_name_and_urn(refs):
    assert ActorRegistry.get_by_class(A) == refs["a"]
    assert ActorRegistry.get_by_class(B) == refs["b"]
    assert ActorRegistry.get_by_class(Base) == refs["a"] + refs["b"] == ActorRegistry.get_all()
    assert ActorRegistry.get_by_class(pykka.ThreadingActor) == []
    assert ActorRegistry.get_by_class_name("A") == refs["a"]
    assert ActorRegistry.get_by_class_name("B") == refs["b"][:1]
    for ref in ActorRegistry.get_all():
        assert ActorRegistry.get_by_urn(ref.actor_urn) is ref
    assert ActorRegistry.get_by_urn("urn:foo:bar") is None


@pytest.mark.parametrize(("target", "who"), [(None, "ab"), (A, "a"), ("A", "a"), (B, "b")])
def test_a_broadcast_reaches_whom_it_is_for(refs, target, who):
    ActorRegistry.broadcast("news", target)
    for name, some in refs.items():
        for ref in some:
            assert ref.proxy().received.get() == (["news"] if name in who else [])


@pytest.mark.parametrize("stop", ["at once", "in a while"])
def test_a_broadcast_does_not_trip_over_an_actor_that_stops(system, stop):
    """In pykka an actor leaves the registry before it stops taking messages."""

    class Slow(Actor):
        def on_stop(self):
            stopping.set()
            gate.wait(10)

    class SlowThread(Slow, ThreadActor):
        pass

    stopping, gate = threading.Event(), threading.Event()
    first, ending, last = A.start(), SlowThread.start(), A.start()
    ended = ending.stop(block=False)
    if stop == "in a while":
        assert stopping.wait(5)
    try:
        ActorRegistry.broadcast("news")
    finally:
        gate.set()
        ended.get(timeout=5)
    assert [ref.proxy().received.get() for ref in (first, last)] == [["news"], ["news"]]


def test_actors_may_be_unregistered_and_registered_by_hand(system):
    ref = A.start()
    for _ in range(2):
        ActorRegistry.unregister(ref)
        assert ActorRegistry.get_all() == []
    ActorRegistry.register(ref)
    assert ActorRegistry.get_all() == [ref]
    ActorRegistry.unregister(ref)
    ref.stop()
    assert not ref.is_alive()


def test_children_are_not_in_the_registry_and_are_stopped_through_their_parents(system):
    ends = []
    root = Parent.start(ends)
    child = root.ask(Child)
    grandchild = child.ask(Grandchild)
    assert ActorRegistry.get_all() == [root]
    assert ActorRegistry.stop_all() == [True]
    assert ends == ["Grandchild", "Child", "Parent"]
    assert not any(ref.is_alive() for ref in (root, child, grandchild))
    assert system.stats().actors == 0


def test_stop_all_stops_the_last_one_first_and_pykkas_own_actors_too(system):
    class Theirs(pykka.ThreadingActor):
        def on_stop(self):
            ends.append("theirs")

    class Ours(Actor):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def on_stop(self):
            ends.append(self.name)

    ends = []
    Ours.start("first")
    Theirs.start()
    Ours.start("last")
    assert ActorRegistry.stop_all() == [True, True, True]
    assert ends == ["last", "theirs", "first"]


def test_stop_all_on_the_loop_returns_futures(run):
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(A) for _ in range(3)]
            futures = ActorRegistry.stop_all(block=False)
            assert [await future for future in futures] == [True, True, True]
            assert not any(ref.is_alive() for ref in refs)

    run(main())


@pytest.mark.slow
def test_the_registry_is_exact_however_many_roots_come_and_go(run):
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(Idle) for _ in range(MANY)]
            for ref in refs[::2]:
                ref.stop()
            assert len(ActorRegistry.get_all()) == MANY / 2
            assert not any(ref in ActorRegistry._actor_refs for ref in refs[::2])
            assert all(ref in ActorRegistry._actor_refs for ref in refs[1::2])
        assert ActorRegistry.get_all() == []

    run(main())


def test_the_registry_removes_one_of_very_many_without_looking_at_the_others():
    """Compared with few, in time: a list takes thousands of times as long."""

    class Ref:
        pass

    def seconds_to_remove(count):
        refs = [Ref() for _ in range(count)]
        registry = Refs(refs)
        last = refs[-100:]
        started = time.perf_counter()
        for ref in last:
            registry.remove(ref)
        return time.perf_counter() - started

    assert min(seconds_to_remove(MANY) for _ in range(5)) < 50 * min(
        seconds_to_remove(200) for _ in range(5)
    )


def test_the_registry_can_do_what_pykka_does_with_its_list():
    refs = [object(), object(), object()]
    registry = Refs(refs)
    registry.append(extra := object())
    registry.remove(refs[1])
    assert (registry[:], list(registry), len(registry), refs[1] in registry) == (
        [refs[0], refs[2], extra],
        [refs[0], refs[2], extra],
        3,
        False,
    )
    with pytest.raises(ValueError, match="not in the registry"):
        registry.remove(refs[1])


def test_a_long_registry_serves_pykkas_functions_as_a_short_one_does(system):
    class Counter(Actor):
        def on_receive(self, message):
            heard.append(message)

    heard = []
    refs = [Counter.start() for _ in range(1000)]
    for ref in refs[::10]:
        ref.stop()
    ActorRegistry.broadcast("news")
    everybody = ActorRegistry.get_all()
    assert not any(ref in everybody for ref in refs[::10])
    ActorRegistry.broadcast("more")
    for ref in everybody:
        ref.ask("the last of it")  # a stop would overtake what is queued
    assert [heard.count(what) for what in ("news", "more", "the last of it")] == [900, 900, 900]
    ActorRegistry.stop_all()
    assert ActorRegistry.get_all() == []


@pytest.mark.parametrize(
    "name",
    [
        "ActorRegistry._actor_refs",
        "ActorRegistry._actor_refs_lock",
        "messages._ActorStop",
        "Future._get_hook",
        "Future._get_hook_result",
        "_introspection.get_attr_directly",
    ],
)
def test_pykka_has_the_private_names_that_we_use(name):
    if name.startswith("Future."):
        assert hasattr(pykka.Future(), name.removeprefix("Future."))
    else:
        assert get_attr_directly(pykka, name.split(".")) is not None


def test_pykka_calls_the_private_names_that_we_provide():
    """If pykka stops doing so, we are not asked any more: then proxies and `start` break
    silently.
    """
    source = {
        name: inspect.getsource(getattr(pykka, name))
        for name in ("Actor", "ActorRef", "ActorProxy")
    }
    assert "_actor_weakref()" in source["ActorProxy"]
    assert "_create_future()" in source["ActorRef"]
    for name in ("_create_actor_inbox", "_create_future", "_start_actor_loop"):
        assert name in pykka.Actor.__abstractmethods__
    assert isinstance(ActorRegistry._actor_refs, Refs)
    used = set(re.findall(r"_actor_refs\b(?:\.(\w+)|(\[:\]))", inspect.getsource(ActorRegistry)))
    assert used <= {("append", ""), ("remove", ""), ("", "[:]")}, (
        "pykka does something new with its list"
    )
    with ActorRegistry._actor_refs_lock, ActorRegistry._actor_refs_lock:
        pass  # it is reentrant: a ref's own methods may be called under it


def test_no_other_private_name_of_pykka_is_used():
    """Those that are, are listed above.

    Looks at all that the modules of the runtime import from pykka, and at the attributes that they
    take from it.
    """
    import ast
    from pathlib import Path

    import offbook.runtime

    used = set()
    for path in Path(offbook.runtime.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {"pykka": "pykka"}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pykka":
                names |= {
                    alias.asname or alias.name: f"{node.module}.{alias.name}"
                    for alias in node.names
                }
        used |= {name for name in names.values() if "._" in name}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.startswith("__")
            ):
                owner = ast.unparse(node.value)
                if owner.split(".")[0] in names:
                    used.add(
                        ".".join([names[owner.split(".")[0]], *owner.split(".")[1:], node.attr])
                    )
    assert used == {
        "pykka.ActorRegistry._actor_refs",
        "pykka.ActorRegistry._actor_refs_lock",
        "pykka.messages._ActorStop",
        "pykka._introspection.get_attr_directly",
    }
