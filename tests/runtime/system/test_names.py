"""Names that actors are given: unique among living roots, and the way to find one."""

import pytest

from offbook.runtime import Actor, ActorSystem, UsageError


class Parent(Actor):
    def on_receive(self, name):
        return self.spawn(Parent, name=name)


def test_an_actor_is_found_by_its_name(run, kind):
    class Named(kind):
        pass

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Named, name="a/b c")
            assert system.actor_of("a/b c") == ref
            assert system.actor_of("a") is None

    run(main())


def test_a_child_is_found_by_its_path(run):
    async def main():
        async with ActorSystem() as system:
            child = await system.spawn(Parent, name="a").request("b")
            below = await child.request("c")
            assert [
                system.actor_of(path) for path in ("a/b", "a/b/c", "a/c", "b", "a/b/c/d", "", "a/")
            ] == [child, below, None, None, None, None, None]
            await child.stop()
            assert system.actor_of("a/b") is None

    run(main())


def test_an_actor_finds_another_one(run):
    class Finds(Actor):
        def on_receive(self, name):
            return self.actor_system.actor_of(name)

    async def main():
        async with ActorSystem() as system:
            finds = system.spawn(Finds, name="it")
            assert await finds.request("it") == finds

    run(main())


def test_a_name_is_taken_as_long_as_its_actor_lives(run, kind):
    class Named(kind):
        pass

    async def main():
        async with ActorSystem() as system:
            first = system.spawn(Named, name="it")
            with pytest.raises(
                UsageError,
                match=r"name='it'\): a Named already has that name.*actor_of\('it'\)",
            ):
                system.spawn(Named, name="it")
            assert system.stats().actors == 1
            stopping = first.stop(block=False)
            second = system.spawn(Named, name="it")  # the first one takes nothing any more
            await stopping
            assert system.actor_of("it") == second
            await second.stop()
            assert system.actor_of("it") is None
            assert system.names._cells == {}

    run(main())


def test_children_may_have_one_name(run):
    async def main():
        async with ActorSystem() as system:
            parent = system.spawn(Parent)
            assert (await parent.request("x")) != (await parent.request("x"))

    run(main())


def test_two_systems_have_their_own_names(run):
    async def main():
        async with ActorSystem() as one:
            with ActorSystem.in_thread() as two:
                assert one.spawn(Parent, name="it") != two.spawn(Parent, name="it")

    run(main())
