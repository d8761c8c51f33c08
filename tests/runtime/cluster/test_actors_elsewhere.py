"""Actors that are spawned on other hosts: their refs, what they are asked, and that with their host
they are gone.
"""

import asyncio

import pytest

from offbook.runtime import ActorDeadError, AskTimeout, UsageError
from offbook.runtime.cluster import Cluster, HostLost, RemoteRef
from offbook.runtime.codec.packing import pack, unpack
from tests.doubles.cluster import Machines, cluster_of

SHOP = "tests.programs.cluster_shop"


def test_an_actor_is_spawned_asked_told_and_stopped(within):
    async def story():
        async with cluster_of() as (cluster, _):
            ref = await cluster.spawn(f"{SHOP}:Counter", 5, near="visits")
            assert await ref.request(2, timeout=5) == 7
            ref.tell(1)
            await ref.send(1)
            assert await ref.ask(0) == 9
            with pytest.raises(ValueError, match="as asked"):
                await ref.request("fail")
            return ref

    within(story())


def test_a_ref_can_be_sent_to_an_actor_on_another_host(within):
    async def story():
        async with cluster_of() as (cluster, _):
            counter = await cluster.spawn(f"{SHOP}:Counter", 1, host="shop/0")
            asks = await cluster.spawn(f"{SHOP}:Asks", host="shop/1")
            assert (counter.host, asks.host) == ("shop/0", "shop/1")
            return await asks.request([counter, 4], timeout=5)

    assert within(story()) == 5


def test_a_stopped_actor_is_dead_for_everybody(within):
    async def story():
        async with cluster_of(1) as (cluster, _):
            ref = await cluster.spawn(f"{SHOP}:Counter")
            assert await ref.is_alive()
            ending = asyncio.ensure_future(ref.wait_stopped())
            assert await ref.stop()
            await ending
            assert not await ref.is_alive()
            assert not await ref.stop()
            with pytest.raises(ActorDeadError):
                await ref.request(1)

    within(story())


def test_g14_what_one_client_tells_an_actor_comes_in_the_order_told(within):
    async def story():
        async with cluster_of(1) as (cluster, machines):
            ref = await cluster.spawn(f"{SHOP}:Counter")
            machines.fault = lambda host, number: ("late", "pass", "twice", "pass")[number % 4]
            for number in range(2_000):
                ref.tell([number, "x" * (20_000 if number % 100 == 0 else 1)])
                if number % 7 == 0:
                    await asyncio.sleep(0)
            return await ref.request("heard", timeout=20)

    assert within(story()) == list(range(2_000))


def test_an_actor_is_gone_with_its_host_also_when_that_is_back(within):
    async def story():
        async with cluster_of(1) as (cluster, machines):
            ref = await cluster.spawn(f"{SHOP}:Counter")
            await ref.request(1)
            await asyncio.to_thread(machines.kill, machines.by_name["shop/0"])
            for _ in range(2):
                with pytest.raises(HostLost) as raised:
                    await ref.request(1, timeout=10)
                assert isinstance(raised.value, ActorDeadError)
            assert not await ref.is_alive()
            await ref.wait_stopped()

    within(story())


def test_an_ask_ends_with_its_timeout(within):
    async def story():
        async with cluster_of(1) as (cluster, machines):
            ref = await cluster.spawn(f"{SHOP}:Counter")
            await ref.request(1)
            machines.fault = lambda host, number: "lose"
            with pytest.raises(AskTimeout):
                await ref.request(1, timeout=0.1)
            machines.fault = lambda host, number: "pass"

    within(story())


def test_only_classes_of_actors_that_the_cluster_lets_in_are_spawned(within):
    async def story():
        async with cluster_of(1) as (cluster, _):
            for name, what in (
                ("subprocess:Popen", "accepts only names"),
                (f"{SHOP}:Shop", "the name must be that of an actor class"),
                (f"{SHOP}:Nothing", "has no 'Nothing'"),
                ("tests.no_such:Thing", "cannot import"),
                ("Counter", "module:attribute"),
            ):
                with pytest.raises(UsageError, match=what):
                    await cluster.spawn(name)
            with pytest.raises(UsageError, match="can be sent to another process"):
                await cluster.spawn(f"{SHOP}:Counter", object())
            with pytest.raises(UsageError, match="host must be one of"):
                await cluster.spawn(f"{SHOP}:Counter", host="shop/9")

    within(story())


def test_a_ref_says_where_it_needs_a_connection(within):
    ref = RemoteRef("nowhere", "nowhere/0", "i", "a")
    assert unpack(pack(ref)) == ref

    async def ask():
        await ref.request(1)

    with pytest.raises(UsageError, match="not connected"):
        within(ask())


def test_a_ref_goes_on_through_one_client_when_another_one_of_the_same_program_leaves(within):
    async def story():
        async with cluster_of(1) as (cluster, machines):
            ref = await cluster.spawn(f"{SHOP}:Counter")
            async with Cluster("shop", None, 0, machines):
                assert await ref.request(1) == 1
            return await ref.request(1)

    assert within(story()) == 2


def test_an_actor_that_a_key_calls_is_there_when_it_is_asked_and_stops_when_it_was_idle(within):
    async def story():
        async with cluster_of() as (cluster, machines):
            visits = cluster.actor(f"{SHOP}:Counter", 10, key="visits", idle=0.3)
            same = cluster.actor(f"{SHOP}:Counter", 10, key="visits", idle=0.3)
            assert await visits.request(1, timeout=5) == 11
            await visits.send(1)
            assert await same.request(1) == 13
            while sum(len(machine.life._host.actors) for machine in machines.by_name.values()):
                await asyncio.sleep(0.02)
            return await visits.request(1)

    assert within(story()) == 11


def test_actors_near_one_string_are_on_one_host_and_the_former_name_of_near_says_so(within):
    async def story():
        async with cluster_of(3) as (cluster, _):
            refs = [await cluster.spawn(f"{SHOP}:Counter", near="order-7") for _ in range(5)]
            assert len({ref.host for ref in refs}) == 1
            assert len({ref.id for ref in refs}) == 5
            run = cluster.runner.query("1 hi", run_id="order-7")
            await run
            assert run.host == refs[0].host
            with pytest.warns(DeprecationWarning, match=r"spawn\(near='order-7'\)"):
                former = await cluster.spawn(f"{SHOP}:Counter", key="order-7")
            assert former.host == run.host

    within(story())


def test_other_arguments_for_the_key_of_an_actor_that_runs_are_refused(within):
    async def story():
        machines = Machines()
        async with cluster_of(machines=machines) as (cluster, _):
            assert await cluster.actor(f"{SHOP}:Counter", 10, key="visits").request(1) == 11
            async with Cluster("shop", None, 0, machines) as other:
                for arguments, named in (((20,), {}), ((), {"start": 10}), ((), {})):
                    visits = other.actor(f"{SHOP}:Counter", *arguments, key="visits", **named)
                    with pytest.raises(UsageError, match="must be those that the actor of this"):
                        await visits.request(1)
                    with pytest.raises(UsageError, match="must be those that the actor of this"):
                        await visits.send(1)
                assert await other.actor(f"{SHOP}:Counter", 10, key="visits").request(1) == 12
                assert await other.actor(f"{SHOP}:Counter", 20, key="others").request(1) == 21

    within(story())
