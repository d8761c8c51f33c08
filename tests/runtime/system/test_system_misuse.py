"""What a system refuses: a second one on its loop, spawning where nothing can live, classes and
options that make no sense.
"""

import asyncio

import pykka
import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, UsageError
from tests.doubles.actors import Echo


def test_a_second_system_on_the_same_loop_is_refused(run):
    async def main():
        async with ActorSystem("first") as first:
            with pytest.raises(UsageError, match="first"):
                async with ActorSystem("second"):
                    raise AssertionError("entered")
            with pytest.raises(UsageError, match="already"):
                await first.start()
            assert await first.spawn(Echo).request("still there") == "still there"
        async with ActorSystem("third") as third:
            assert await third.spawn(Echo).request("!") == "!"

    run(main())


def test_a_system_is_left_only_on_its_own_loop(run):
    with ActorSystem.in_thread() as system:

        async def elsewhere():
            with pytest.raises(UsageError, match="another event loop"):
                await system.stop()

        run(elsewhere())
        assert system.spawn(Echo).ask("!") == "!"


def test_spawning_where_nothing_can_live_says_why(run):
    refused = []

    class Late(Actor):
        def on_stop(self):
            for spawn in (self.actor_system.spawn, self.spawn):
                try:
                    spawn(Echo)
                except (UsageError, ActorDeadError) as error:
                    refused.append(type(error))

    async def main():
        system = ActorSystem()
        with pytest.raises(UsageError, match="has not been entered"):
            system.spawn(Echo)
        async with system:
            system.spawn(Late)
            for nonsense in (object, object(), "Echo", None, pykka.ThreadingActor):
                with pytest.raises(
                    UsageError, match="the first argument must be an actor class, got"
                ):
                    system.spawn(nonsense)
        with pytest.raises(UsageError, match="stopped"):
            system.spawn(Echo)
        assert refused == [UsageError, ActorDeadError]

    run(main())


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(UsageError, match=r"worker_threads must be 1 or more.*got 0"):
        ActorSystem(worker_threads=0)
    with pytest.raises(UsageError, match=r"capacity must be 1 or more.*got 0"):
        ActorSystem(mailbox_capacity=0)


def test_an_actor_that_cannot_be_made_is_not_there(run):
    class Broken(Actor):
        def __init__(self):
            super().__init__()
            raise ZeroDivisionError

    class Forgetful(Actor):
        def __init__(self):
            pass

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(ZeroDivisionError):
                system.spawn(Broken)
            with pytest.raises(UsageError, match=r"super\(\).__init__\(\)"):
                system.spawn(Forgetful)
            with pytest.raises(UsageError, match="Spawn it"):
                Echo()
            await asyncio.sleep(0)
            assert system.stats().actors == 0
            assert await system.spawn(Echo).request("unharmed") == "unharmed"

    run(main())
