"""Bad input: each mistake gets an error that says what was wrong, where, and what to do; and leaves
nothing behind. Messages: test_bad_messages.py.
"""

import asyncio
import functools
import math

import pykka
import pytest

from offbook.runtime import Actor, ActorSystem, MailboxSettings, SystemDraining, UsageError

# --- classes ---


def forget_everything(self):
    pass


def forget_and_spawn(self):
    self.spawn(Actor)


def forget_and_use_the_ref(self):
    self.ref = self.actor_ref


def forget_and_read_the_system(self):
    self.system = self.actor_system


@pytest.mark.parametrize(
    "init",
    [forget_everything, forget_and_spawn, forget_and_use_the_ref, forget_and_read_the_system],
    ids=lambda init: init.__name__,
)
def test_an_init_that_forgets_super_is_told_so(run, kind, init, says):
    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError) as caught:
                system.spawn(type("Forgetful", (kind,), {"__init__": init}), name="it")
            says(caught, "Forgetful.__init__()", "super().__init__()", "first line")
            assert caught.value.actor == "it"
            assert system.stats().actors == 0

    run(main())


def test_an_init_that_forgets_super_does_not_claim_the_place_of_an_actor_that_it_spawns(
    run, kind, echo, says
):
    class Forgetful(kind):
        def __init__(self, system, refs):
            refs.append(system.spawn(echo))

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError) as caught:
                system.spawn(Forgetful, system, refs := [])
            says(caught, "Forgetful.__init__()")
            assert await refs[0].request("m") == "m"
            assert system.stats().actors == 1

    run(main())


def test_an_actor_that_is_called_instead_of_spawned_says_how_to_spawn_it(run, echo, says):
    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError) as caught:
                echo()
            says(caught, "Echo is an actor", "system.spawn(Echo", "self.spawn(Echo", "Echo.start(")
            assert system.stats().actors == 0

    run(main())


def test_an_actor_that_is_called_within_the_init_of_another_does_not_take_its_place(
    run, kind, echo
):
    class Caller(kind):
        def __init__(self):
            with pytest.raises(UsageError, match="Echo is an actor"):
                echo()
            super().__init__()

        def on_receive(self, message):
            return type(self)

    async def main():
        async with ActorSystem() as system:
            assert await system.spawn(Caller).request("who are you?") is Caller

    run(main())


class NoActor:
    def on_receive(self, message):
        return message


class HasTraits:
    """As the classes of a well-known library have them."""

    __actor_traits__ = {}  # noqa: RUF012 -- as it is there


WRONG = {
    "None": None,
    "a number": 1,
    "the name of a class": "Echo",
    "a plain class": NoActor,
    "an instance of one": NoActor(),
    "a class with traits": HasTraits,
    "pykka's own": pykka.ThreadingActor,
    "a partial": functools.partial(Actor),
    "a function": lambda: None,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("who", ["system", "actor"])
def test_what_is_no_actor_class_is_not_spawned(run, kind, wrong, who, says):
    class Parent(kind):
        def on_receive(self, message):
            return self.spawn(wrong)

    async def main():
        async with ActorSystem() as system:
            parent = system.spawn(Parent)
            with pytest.raises(UsageError) as caught:
                system.spawn(wrong) if who == "system" else await parent.request("spawn")
            says(caught, repr(wrong), "Actor", "ThreadActor", "subclass")
            assert system.stats().actors == 1

    run(main())


def test_a_ref_or_an_instance_is_not_spawned_either(run, kind, says):
    class Leaky(kind):
        def on_receive(self, message):
            return self

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Leaky)
            for wrong in (ref, await ref.request("yourself")):
                with pytest.raises(UsageError) as caught:
                    system.spawn(wrong)
                says(caught, repr(wrong), "subclass")
            assert system.stats().actors == 1

    run(main())


def test_wrong_arguments_are_pythons_own_error_and_leave_nothing(run, kind):
    class Strict(kind):
        def __init__(self, needed):
            super().__init__()

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(TypeError, match="needed"):
                system.spawn(Strict)
            with pytest.raises(TypeError, match="supervison"):
                system.spawn(Strict, 1, supervison=None)
            assert system.stats().actors == 0

    run(main())


# --- systems ---


def test_a_system_that_was_not_entered_spawns_nothing(echo, says):
    with pytest.raises(UsageError) as caught:
        ActorSystem("mine").spawn(echo)
    says(
        caught,
        "Echo",
        "'mine'",
        "has not been entered",
        "async with ActorSystem()",
        "ActorSystem.in_thread()",
    )


def test_a_system_that_was_left_spawns_nothing(run, echo, says):
    async def main():
        async with ActorSystem("mine") as system:
            pass
        with pytest.raises(UsageError) as caught:
            system.spawn(echo)
        says(caught, "Echo", "'mine'", "stopped", "new system")

    run(main())


def test_a_system_that_is_being_left_spawns_nothing(run, kind, echo, says):
    refusals = []

    class Late(kind):
        def on_stop(self):
            with pytest.raises(UsageError) as caught:
                self.actor_system.spawn(echo)
            refusals.append(caught)

    async def main():
        async with ActorSystem("mine") as system:
            await system.spawn(Late).request("wake up")

    run(main())
    says(refusals[0], "Echo", "'mine'", "stopping")


def test_a_system_that_drains_spawns_no_roots_but_children(run, kind, echo, says):
    class Parent(kind):
        def on_receive(self, message):
            return self.spawn(echo)

    async def main():
        async with ActorSystem("mine") as system:
            parent = system.spawn(Parent)
            await parent.request("wake up")
            assert (await system.drain(5)).drained
            with pytest.raises(SystemDraining) as caught:
                system.spawn(echo)
            says(caught, "Echo", "'mine'", "about to stop")
            assert await (await parent.request("spawn")).request("m") == "m"

    run(main())


def test_a_second_system_cannot_be_entered_inside_the_first(run, echo, says):
    async def main():
        async with ActorSystem("first") as system:
            second = ActorSystem("second")
            with pytest.raises(UsageError) as caught:
                async with second:
                    pass
            says(caught, "second system", "'first'", "Spawn in that one")
            assert await system.spawn(echo).request("the first goes on") == "the first goes on"
        async with second:
            assert (
                await second.spawn(echo).request("and the second can be entered now")
                == "and the second can be entered now"
            )

    run(main())


def test_a_system_cannot_be_entered_twice_at_once(run, echo, says):
    async def main():
        async with ActorSystem("mine") as system:
            with pytest.raises(UsageError) as caught:
                await system.start()
            says(caught, "'mine'", "already", "another")
            assert await system.spawn(echo).request("it goes on") == "it goes on"

    run(main())


def test_a_system_cannot_be_left_on_another_loop(run, says):
    async def main():
        async with ActorSystem("mine") as system:

            def leave_elsewhere():
                with pytest.raises(UsageError) as caught:
                    asyncio.run(system.stop())
                says(caught, "'mine'", "another event loop", "on that loop")

            await asyncio.to_thread(leave_elsewhere)
            assert system.is_running

    run(main())


def test_what_does_not_run_cannot_be_drained(run, says):
    async def main():
        with pytest.raises(UsageError) as caught:
            await ActorSystem("mine").drain(1)
        says(caught, "'mine'", "not running")

    run(main())


# --- settings ---


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (
            lambda: ActorSystem(worker_threads=0),
            ("ActorSystem", "worker_threads must be 1 or more", "got 0"),
        ),
        (lambda: ActorSystem(mailbox_capacity=0), ("capacity must be 1 or more", "got 0")),
        (
            lambda: ActorSystem(slow_handler=-1),
            ("ActorSystem", "slow_handler must be", "got -1", "seconds"),
        ),
        (
            lambda: ActorSystem(slow_handler=math.nan),
            ("ActorSystem", "slow_handler must be", "got nan", "seconds"),
        ),
        (
            lambda: ActorSystem(stop_timeout=-1),
            ("ActorSystem", "stop_timeout must be", "got -1", "seconds"),
        ),
        (
            lambda: ActorSystem(stop_timeout=math.nan),
            ("ActorSystem", "stop_timeout must be", "got nan", "seconds"),
        ),
        (lambda: MailboxSettings(0), ("MailboxSettings", "capacity must be 1 or more", "got 0")),
        (lambda: MailboxSettings(-5), ("MailboxSettings", "capacity must be 1 or more", "got -5")),
        (
            lambda: MailboxSettings(1, "wait"),
            (
                "MailboxSettings",
                "overflow must be 'reject', 'drop_oldest' or 'block'",
                "got 'wait'",
            ),
        ),
    ],
    ids=lambda case: "" if callable(case) else " ".join(case),
)
def test_settings_that_make_no_sense_are_refused_at_once(make, parts, says):
    with pytest.raises(UsageError) as caught:
        make()
    says(caught, *parts)


@pytest.mark.parametrize("options", [{"mailbox": 5}, {"mailbox": "reject"}, {"name": 5}], ids=str)
def test_options_of_the_wrong_type_are_refused_at_the_spawn(run, echo, options, says):
    ((option, value),) = options.items()

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError) as caught:
                system.spawn(echo, **options)
            says(caught, f"{option} must be", f"got {value!r}", "Echo")
            assert system.stats().actors == 0

    run(main())
