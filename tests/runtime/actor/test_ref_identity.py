"""The ref as a value and as pykka's: equality, names, proxies, `get_all`."""

import asyncio
import copy
import pickle
import threading
import uuid
from collections.abc import Callable

import pykka
import pytest

from offbook.runtime import Actor, ActorRef, ActorSystem, Backoff, Restart, UsageError


def counter(kind: type[Actor]) -> type[Actor]:
    class Counter(kind):
        step = 1

        def __init__(self) -> None:
            super().__init__()
            self.total = 0
            self.inner = pykka.traversable(Inner())

        def on_receive(self, message: object) -> object:
            if message == "whoami":
                return self.actor_ref
            if message == "crash":
                raise KeyboardInterrupt
            return message

        def add(self, number: int = 1) -> int:
            self.total += number * self.step
            return self.total

        async def add_later(self, number: int) -> int:
            await asyncio.sleep(0)
            return self.add(number)

        def fail(self) -> None:
            msg = "as it should"
            raise ValueError(msg)

    return Counter


class Inner:
    def __init__(self) -> None:
        self.value = "inner"

    def shout(self) -> str:
        return self.value.upper()


# --- equality ---


def test_refs_of_one_actor_are_equal_and_of_two_are_not(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            ref, other = system.spawn(counter(kind)), system.spawn(counter(kind))
            own = await ref.request("whoami")
            assert own == ref
            assert hash(own) == hash(ref)
            assert len({own, ref, other}) == 2
            assert ref != other
            assert ref != "ref"

    run(main())


def test_refs_are_equal_after_a_restart_and_after_the_end(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(counter(kind), supervision=Restart(backoff=Backoff(initial=0)))
            before = await ref.request("whoami")
            ref.tell("crash")
            after = await ref.request("whoami")
            assert before == after == ref
            await ref.stop()
            assert before == ref
            assert ref.is_alive() is before.is_alive() is False

    run(main())


def test_it_says_whose_it_is(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            counter_class = counter(kind)
            named, unnamed = system.spawn(counter_class, name="till"), system.spawn(counter_class)
            shown = f"Counter (till, {named.actor_urn})"
            assert (named.name, named.path, str(named), repr(named)) == (
                "till",
                "till",
                shown,
                f"<ActorRef for {shown}>",
            )
            assert unnamed.name.startswith("Counter-")
            assert unnamed.actor_class is counter_class
            assert named.actor_urn.startswith("urn:uuid:")
            assert named.actor_urn == (await named.request("whoami")).actor_urn != unnamed.actor_urn
            assert isinstance(named, pykka.ActorRef)

    run(main())


# --- proxies ---


async def on_the_loop(ref: ActorRef) -> list[object]:
    proxy = ref.proxy()
    values = [
        await proxy.add(),
        await proxy.add_later(2),
        await proxy.total,
        await proxy.step,
        await proxy.inner.value,
        await proxy.inner.shout(),
    ]
    proxy.add.defer(4)
    with pytest.raises(ValueError, match="as it should"):
        await proxy.fail()
    return [*values, await proxy.total]


def in_a_thread(ref: ActorRef) -> list[object]:
    proxy = ref.proxy()
    futures = [
        proxy.add(),
        proxy.add_later(2),
        proxy.total,
        proxy.step,
        proxy.inner.value,
        proxy.inner.shout(),
    ]
    values = list(pykka.get_all(futures, timeout=10))
    proxy.add.defer(4)
    with pytest.raises(ValueError, match="as it should"):
        proxy.fail().get()
    return [*values, proxy.total.get()]


USES: dict[str, Callable] = {
    "the loop": on_the_loop,
    "a thread": lambda ref: asyncio.to_thread(in_a_thread, ref),
    "another loop": lambda ref: asyncio.to_thread(lambda: asyncio.run(on_the_loop(ref))),
}


@pytest.mark.parametrize("where", USES)
def test_pykkas_proxies_work_from_everywhere(run, kind, where):
    async def main() -> None:
        async with ActorSystem() as system:
            assert await USES[where](system.spawn(counter(kind))) == [
                1,
                3,
                3,
                1,
                "inner",
                "INNER",
                7,
            ]

    run(main())


def test_setting_an_attribute_through_a_proxy_blocks_and_so_is_for_threads(run, kind):
    def in_thread(ref: ActorRef) -> int:
        proxy = ref.proxy()
        proxy.step = 10
        return proxy.add(1).get()

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(counter(kind))
            with pytest.raises(UsageError, match="request"):
                ref.proxy().step = 5
            assert await asyncio.to_thread(in_thread, ref) == 10

    run(main())


def test_a_proxy_has_only_what_the_actor_has(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            with pytest.raises(AttributeError, match="missing"):
                system.spawn(counter(kind)).proxy().missing  # noqa: B018 -- the reading is what raises

    run(main())


def test_pykkas_get_all_collects_from_many_actors(kind):
    with ActorSystem.in_thread() as system:
        refs = [system.spawn(counter(kind)) for _ in range(20)]
        futures = [ref.ask(number, block=False) for number, ref in enumerate(refs)]
        assert pykka.get_all(futures, timeout=10) == list(range(20))


def test_a_ref_that_is_pickled_says_why_that_cannot_be(run):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Actor)
            for attempt in (pickle.dumps, copy.deepcopy):
                with pytest.raises(TypeError, match=r"Actor-1.*another process"):
                    attempt(ref)

    run(main())


def test_an_actor_has_one_urn_even_if_two_threads_ask_for_it_first(monkeypatch):
    both = threading.Barrier(2)
    make = uuid.uuid4

    def make_when_both_are_here() -> uuid.UUID:
        try:
            # In vain, as it should be: the second one waits for what the first one makes.
            both.wait(0.2)
        except threading.BrokenBarrierError:
            pass
        return make()

    monkeypatch.setattr(uuid, "uuid4", make_when_both_are_here)
    with ActorSystem.in_thread() as system:
        ref = system.spawn(counter(Actor))
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda: found.append(ref.actor_urn), daemon=True)
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert found == [ref.actor_urn, ref.actor_urn]
