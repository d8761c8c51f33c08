"""Bad input: messages to nobody, and calls that would wait forever.

Each gets an error that says what was wrong, where, and what to do.
"""

import asyncio

import pykka
import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, ThreadActor, UsageError


def test_a_blocking_call_on_the_loop_s_thread_says_what_to_await(run, echo, says):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(echo, name="it")
            for call, instead in (
                (lambda: ref.ask("m"), "await ref.request(message)"),
                (lambda: ref.ask("m", timeout=5), "await ref.request(message)"),
                (lambda: ref.stop(block=True), "await ref.stop()"),
                (lambda: ref.ask("m", block=False).get(), "await"),
                (lambda: ref.proxy().method().get(timeout=5), "await"),
                (lambda: ref.actor_stopped.wait(5), "await"),
            ):
                with pytest.raises(UsageError) as caught:
                    call()
                says(caught, "event loop's own thread", instead)
            assert ref.is_alive()
            assert await ref.request("m") == "m"

    run(main())


def test_a_blocking_ask_in_a_handler_on_the_loop_is_the_handlers_error(run, echo, says):
    class Blocking(Actor):
        def __init__(self, other):
            super().__init__()
            self.other = other

        def on_receive(self, message):
            return self.other.ask(message)

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Blocking, system.spawn(echo, name="it"))
            with pytest.raises(UsageError) as caught:
                await ref.request("m")
            says(caught, "it", "await ref.request(message)")

    run(main())


def test_an_actor_that_waits_for_itself_is_told_so(run, kind, says):
    class Narcissus(kind):
        async def on_receive(self, message):
            return await self.actor_ref.request(message) if message == "ask yourself" else message

    class Blocking(ThreadActor):
        def on_receive(self, message):
            return self.actor_ref.ask(message)

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError) as caught:
                await system.spawn(Narcissus, name="it").request("ask yourself")
            says(caught, "it", "wait forever", "tell")
            with pytest.raises(UsageError) as caught:
                await system.spawn(Blocking, name="it as well").request("ask yourself")
            says(caught, "it", "wait forever")

    run(main())


async def request(ref):
    await ref.request("m")


async def ask(ref):
    await ref.ask("m", block=False)


async def ask_in_a_thread(ref):
    await asyncio.to_thread(ref.ask, "m")


async def tell(ref):
    ref.tell("m")


async def send(ref):
    await ref.send("m")


@pytest.mark.parametrize(
    "how", [request, ask, ask_in_a_thread, tell, send], ids=lambda how: how.__name__
)
def test_a_message_to_an_actor_that_has_ended_says_whose_end_it_was(run, echo, says, how):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(echo, name="it")
            await ref.stop()
            with pytest.raises(ActorDeadError) as caught:
                await how(ref)
            says(caught, "it", "has stopped", "Spawn a new one", "watch()")
            assert isinstance(caught.value, pykka.ActorDeadError)
            assert (caught.value.actor, caught.value.message) == ("it", "m")
            assert await ref.stop() is False

    run(main())


def test_a_message_that_nobody_has_taught_the_actor_is_a_warning(run, kind, warnings):
    class Untaught(kind):
        pass

    async def main():
        async with ActorSystem() as system:
            assert await system.spawn(Untaught, name="it").request({"unknown": 1}) is None

    run(main())
    (text,) = warnings()
    for part in ("it", "{'unknown': 1}", "on_receive()"):
        assert part in text
