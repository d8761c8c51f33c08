"""A cluster that grows, shrinks, and changes its version, under load; and what is refused when one
is started.
"""

import asyncio

import pytest

from offbook.runtime import RunStatus, UsageError
from offbook.runtime.cluster import Cluster, ClusterError, HostLost, VersionMismatch
from offbook.runtime.cluster.limits import limits_of, read_limits
from offbook.runtime.cluster.on_ray import environment
from offbook.runtime.cluster.transport import Place
from tests.doubles.cluster import Machines, cluster_of, spec_of

SHOP = "tests.programs.cluster_shop"


async def read(run):
    """The texts of a run, and that no number came twice or not at all."""
    seen = [(event.seq, event.text) async for event in run]
    assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
    return [text for _, text in seen]


def whole(count, said):
    return [*(f"{number}: {count} {said}" for number in range(count)), f"done: {count} {said}"]


def test_g17_scaling_up_and_down_under_load_loses_no_turn(within, shop, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.02")

    async def story():
        async with cluster_of(2) as (cluster, machines):
            reading = [
                asyncio.ensure_future(read(cluster.session(f"s{number}").query("25 hi")))
                for number in range(8)
            ]
            reading += [
                asyncio.ensure_future(read(cluster.runner.query("25 hi"))) for number in range(8)
            ]
            await cluster.scale(4)
            assert len(cluster._routes.hosts.names()) == 4
            await cluster.scale(1)
            assert list(machines.by_name) == ["shop/0"]
            return await asyncio.gather(*reading)

    assert within(story()) == [whole(25, "hi")] * 16
    assert len(set(shop())) == 400


def test_g17_a_drained_host_brings_its_runs_to_rest_and_others_go_on(within, shop, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.02")

    async def story():
        async with cluster_of(2) as (cluster, _):
            run = cluster.runner.query("20 hi")
            reading, unread = (
                asyncio.ensure_future(read(run)),
                cluster.runner.query("20 other", run_id="other"),
            )
            ref = await cluster.spawn(f"{SHOP}:Counter", host=run.host)
            while not shop():
                await asyncio.sleep(0.01)
            report = await cluster.drain(run.host)
            with pytest.raises(HostLost):
                await ref.request(1)
            return report, await reading, await unread

    report, texts, unread = within(story())
    assert texts == whole(20, "hi")
    assert unread.status is RunStatus.COMPLETED
    (said,) = report.values()
    assert said["drained"]
    assert len(shop()) == len(set(shop())), "a run that came to rest has made each step once"


def test_g17_rolling_to_another_version_keeps_every_run(within, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.02")

    async def story():
        async with cluster_of(2, version="1") as (cluster, machines):
            reading = [
                asyncio.ensure_future(read(cluster.session(f"s{number}").query("25 hi")))
                for number in range(6)
            ]
            await cluster.roll("2")
            texts = await asyncio.gather(*reading)
            stats = await cluster.stats()
            # on a loaded machine, one may answer late
            while any(one.state == "suspect" for one in stats.hosts):
                stats = await cluster.stats()
            return (
                texts,
                {one.name: (one.version, one.state) for one in stats.hosts},
                list(machines.by_name),
            )

    texts, hosts, names = within(story())
    assert texts == [whole(25, "hi")] * 6
    assert hosts == {"shop/2": ("2", "up"), "shop/3": ("2", "up")}
    assert names == ["shop/2", "shop/3"]


def test_a_cluster_that_is_there_is_connected_to_and_left_as_it_is(within):
    async def story():
        machines = Machines()
        async with cluster_of(2, machines=machines, version="1") as (cluster, _):
            async with Cluster("shop", spec_of(version="1"), 5, machines) as same:
                assert (await same.session("ada").query("hi")).text == "done: hi"
            assert [one.state for one in (await cluster.stats()).hosts] == ["up", "up"]
            with pytest.raises(VersionMismatch, match="Two programs must not share a name"):
                await Cluster("shop", spec_of(f"{SHOP}:unkept"), 1, machines).open()
            with pytest.raises(VersionMismatch, match=r"roll\('2'\)"):
                await Cluster("shop", spec_of(version="2"), 1, machines).open()

    within(story())


def test_what_a_factory_must_not_be_is_said_at_start_and_no_host_is_left(within):
    cases = {
        "host_x": "has no 'host_x'",
        "NO_FUNCTION": "got a int",
        "no_runner": "must yield a Runner, but yields a Message",
        "without_store": "its Runner must have a store",
        "in_memory": "MemoryStore is in one process",
        "of_another_system": "the Runner must use the system",
    }

    async def story():
        for factory, what in cases.items():
            machines = Machines()
            try:
                with pytest.raises(UsageError, match=what):
                    await Cluster("shop", spec_of(f"{SHOP}:{factory}"), 2, machines).open()
                assert machines.by_name == {}
            finally:
                await asyncio.to_thread(machines.clean_up)

    within(story())


def test_a_file_of_one_machine_is_no_store_for_two(within):
    class Two(Machines):
        def place(self):
            return Place("there", "the machines of the tests", {})

    async def story():
        machines = Two()
        with pytest.raises(UsageError, match="is on another node than the starter"):
            await Cluster("shop", spec_of(), 1, machines).open()
        await asyncio.to_thread(machines.clean_up)

    within(story())


def test_a_cluster_that_is_not_there_is_said(within):
    with pytest.raises(ClusterError, match=r"cluster 'shop' not found. Start it"):
        within(Cluster("shop", None, 0, Machines()).open())


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"factory": lambda system: None}, "cannot be sent to another machine"),
        ({"factory": "shop"}, "module:attribute"),
        ({"name": "a/b"}, "name must have at most 100 letters"),
        ({"hosts": 0}, "1 or more"),
        ({"max_run": 3}, "max_runs"),
        ({"lease_seconds": 1}, "2 or more"),
        ({"max_runs": 1.5}, "whole number"),
        ({"allow": "shop."}, "allow="),
    ],
)
def test_what_is_wrong_with_the_options_is_said_before_anything_starts(given, what, monkeypatch):
    monkeypatch.setattr("offbook.runtime.cluster.on_ray.transport.import_ray", lambda: None)
    monkeypatch.setattr(
        "offbook.runtime.cluster.on_ray.transport.RayTransport", lambda ray, may_start: None
    )
    with pytest.raises(UsageError, match=what):
        Cluster.start(**{"factory": f"{SHOP}:host", "name": "shop", **given})


def test_without_ray_the_extra_is_named_and_an_old_one_refused(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(environment.importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"pip install 'offbook\[ray\]'"):
        Cluster.connect("shop")
    monkeypatch.setattr(
        environment.importlib,
        "import_module",
        lambda name: type("Ray", (), {"__version__": "2.9.3"}),
    )
    with pytest.raises(UsageError, match=r"2\.60 or newer, and 2\.9\.3"):
        Cluster.connect("shop")


def test_connect_takes_its_name_from_the_environment(monkeypatch):
    monkeypatch.setattr("offbook.runtime.cluster.on_ray.transport.import_ray", lambda: None)
    monkeypatch.setattr(
        "offbook.runtime.cluster.on_ray.transport.RayTransport", lambda ray, may_start: None
    )
    monkeypatch.delenv("OFFBOOK_CLUSTER", raising=False)
    with pytest.raises(UsageError, match="OFFBOOK_CLUSTER"):
        Cluster.connect()
    monkeypatch.setenv("OFFBOOK_CLUSTER", "shop")
    assert Cluster.connect().name == "shop"


@pytest.mark.parametrize(
    ("address", "mode", "warned"),
    [
        ("127.0.0.2:6379", "", False),
        ("localhost:1", "", False),
        ("10.0.0.7:6379", "", True),
        ("10.0.0.7:6379", "token", False),
    ],
)
def test_a_cluster_that_whoever_reaches_it_may_use_is_warned_of(
    address, mode, warned, monkeypatch, caplog
):
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    environment.check_safety(address)
    assert ("RAY_AUTH_MODE=token" in caplog.text) is warned


def test_limits_come_back_as_they_were_given():
    limits = limits_of({"max_runs": 7, "lease_seconds": 5})
    assert limits_of(limits.data()) == limits


def test_a_limit_that_only_another_version_knows_is_left_out():
    assert read_limits({"max_runs": 7, "of_tomorrow": 1}) == limits_of({"max_runs": 7})


def states(changes):
    return [(change.host, change.state) for change in changes]


def test_a_watch_shows_the_hosts_and_then_each_that_comes_goes_or_is_lost(within):
    async def story():
        machines = Machines(restart=False)
        async with cluster_of(2, machines=machines, version="1") as (cluster, _):
            async with Cluster("shop", None, 0, machines) as watching:
                seen = []

                async def until(host, state):
                    while (host, state) not in states(seen):
                        seen.append(await anext(changes))
                    found, seen[:] = seen[:], []
                    return found

                changes = watching.watch()
                assert states(await until("shop/1", "up")) == [("shop/0", "up"), ("shop/1", "up")]
                await cluster.scale(3)
                (*_, new) = await until("shop/2", "up")
                assert new.version == "1"
                await cluster.drain("shop/2")
                await until("shop/2", "left")
                await asyncio.to_thread(machines.kill, machines.by_name["shop/0"])
                await until("shop/0", "lost")
                await machines.start("shop/0", spec_of(version="1", node="here").pack())
                found = await until("shop/0", "up")
            assert [one async for one in changes] == []
            return found[-1].incarnation, machines.by_name["shop/0"].life.board.incarnation

    shown, present = within(story())
    assert shown == present


def test_a_watch_that_is_left_leaves_no_task(within):
    async def story():
        async with cluster_of(1) as (cluster, _):
            before = asyncio.all_tasks()
            async for change in cluster.watch():
                assert change.state == "up"
                break
            while asyncio.all_tasks() - before:
                await asyncio.sleep(0)

    within(story())


def test_the_hosts_of_a_node_are_drained_together_and_replaced_on_others(within, shop, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.02")

    async def story():
        async with cluster_of(3) as (cluster, machines):
            for name in ("shop/0", "shop/2"):
                machines.by_name[name].life.board._fixed = (name, 1, "leaving", spec_of().pack())
            reading = [asyncio.ensure_future(read(cluster.runner.query("9 hi"))) for _ in range(9)]
            while not shop():
                await asyncio.sleep(0.01)
            assert await cluster.drain(node="no such node", replace=True) == {}
            report = await cluster.drain(node="leaving", replace=True)
            texts = await asyncio.gather(*reading)
            with pytest.raises(UsageError, match="needs host= or node="):
                await cluster.drain(replace=True)
            with pytest.raises(UsageError, match="Pass one of them"):
                await cluster.drain("shop/1", node="leaving")
            return report, texts, machines.avoided, list(machines.by_name), cluster.node

    report, texts, avoided, names, node = within(story())
    assert sorted(report) == ["shop/0", "shop/2"]
    assert texts == [whole(9, "hi")] * 9
    assert names == ["shop/1", "shop/3", "shop/4"]
    assert avoided == {"shop/3": "leaving", "shop/4": "leaving"}
    assert node == "here"
