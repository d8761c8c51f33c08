"""Who owns a cluster, which clusters and clients are refused, and what each host must have."""

import asyncio

import pytest

from offbook.runtime import RunStatus, UsageError
from offbook.runtime.cluster import Cluster, ClusterBusy
from offbook.runtime.cluster.names import load_allowed
from offbook.runtime.cluster.transport import Place
from tests.doubles.cluster import Machines, cluster_of, spec_of

SHOP = "tests.programs.cluster_shop"


class Elsewhere(Machines):
    """The machines of another Ray cluster."""

    def place(self):
        return Place("here", "another Ray cluster", {"env_vars": {"SHOP": "1"}})


def test_of_two_programs_that_start_a_cluster_at_once_one_owns_it(within):
    async def story():
        machines = Machines()
        try:
            one, other = (Cluster("shop", spec_of(), 2, machines) for _ in range(2))
            await asyncio.gather(one.open(), other.open())
            owners = [cluster._started for cluster in (one, other)]
            assert sorted(owners) == [False, True]
            async with Cluster("shop", None, 0, machines) as client:
                leaving, owner = (one, other) if owners[1] else (other, one)
                await leaving.__aexit__(None, None, None)
                assert (await client.runner.query("1 hi")).status is RunStatus.COMPLETED
            await owner.__aexit__(None, None, None)
            assert machines.by_name == {}
        finally:
            await asyncio.to_thread(machines.clean_up)

    within(story())


def test_a_detached_cluster_stays_when_its_starter_leaves(within):
    async def story():
        machines = Machines()
        try:
            async with Cluster("shop", spec_of(), 1, machines, detach=True):
                pass
            async with Cluster("shop", None, 0, machines) as client:
                assert (await client.runner.query("1 hi")).status is RunStatus.COMPLETED
                await client.stop()
        finally:
            await asyncio.to_thread(machines.clean_up)

    within(story())


def test_g13_a_second_ray_cluster_of_that_name_is_refused_while_the_first_lives_and_no_longer(
    within,
):
    async def story():
        others = Elsewhere()
        try:
            async with cluster_of(1) as (first, machines):
                with pytest.raises(
                    UsageError, match="another Ray cluster runs the cluster 'shop' in this store"
                ):
                    await Cluster("shop", spec_of(), 1, others).open()
                assert (await first.runner.query("1 hi")).status is RunStatus.COMPLETED
                await asyncio.to_thread(machines.kill, machines.by_name["shop/0"], again=False)
                async with Cluster("shop", spec_of(), 1, others) as second:
                    assert (await second.runner.query("1 hi")).status is RunStatus.COMPLETED
        finally:
            await asyncio.to_thread(others.clean_up)

    within(story(), 40)


def test_a_client_over_the_limit_is_told_and_harms_no_other(within):
    async def story():
        async with cluster_of(1, limits={"max_clients": 2, "link_seconds": 1.0}) as (
            cluster,
            machines,
        ):
            async with Cluster("shop", None, 0, machines):
                with pytest.raises(ClusterBusy, match="has 2 clients"):
                    await Cluster("shop", None, 0, machines).open()
                assert (await cluster.runner.query("1 hi")).status is RunStatus.COMPLETED

    within(story())


def test_a_host_has_the_version_of_its_cluster_and_its_runner_no_other(within, monkeypatch):
    async def story():
        async with cluster_of(1, version="1") as (_, machines):
            assert machines.by_name["shop/0"].life._host.takeover._runner.version == "1"
        monkeypatch.setenv("SHOP_VERSION", "7")
        machines = Machines()
        try:
            with pytest.raises(
                UsageError, match="version must be that of its Runner, got '1' and '7'"
            ):
                await Cluster("shop", spec_of(f"{SHOP}:versioned", version="1"), 1, machines).open()
        finally:
            await asyncio.to_thread(machines.clean_up)

    within(story())


def test_a_run_of_a_pinned_cluster_is_continued_by_no_other_version(within, shop, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.05")

    async def story():
        async with cluster_of(1, version="1", pin=True) as (cluster, machines):
            run = cluster.runner.query("30 hi", run_id="pinned")
            while not shop():
                await asyncio.sleep(0.01)
            await cluster.roll("2", timeout=1)
            await asyncio.sleep(0.5)
            done = len(shop())
            await asyncio.sleep(0.5)
            assert len(shop()) == done
            await machines.start("shop/9", spec_of(version="1", pin=True, node="here").pack())
            assert (await run).status is RunStatus.COMPLETED

    within(story(), 40)


def test_what_a_host_needs_is_recorded_for_programs_that_scale_later(within):
    async def story():
        machines = Elsewhere()
        try:
            async with Cluster("shop", spec_of(), 1, machines):
                async with Cluster("shop", None, 0, machines) as other:
                    spec = await other._changes.spec(["shop/0"])
                    assert spec.ray_options == {"runtime_env": {"env_vars": {"SHOP": "1"}}}
        finally:
            await asyncio.to_thread(machines.clean_up)

    within(story())


@pytest.mark.parametrize(
    "name", [f"{SHOP}:os._exit", f"{SHOP}:os", f"{SHOP}:Path", f"{SHOP}:asyncio.sleep"]
)
def test_what_a_module_that_is_let_in_has_imported_is_not_let_in_with_it(name):
    with pytest.raises(
        UsageError, match="is defined outside the modules that this cluster accepts"
    ):
        load_allowed(name, ("tests.",), "spawn")
    assert load_allowed(f"{SHOP}:Counter", ("tests.",), "spawn").__name__ == "Counter"


def test_code_of_a_host_has_its_cluster_and_leaves_it_to_the_host(within):
    async def story():
        async with cluster_of(3, factory=f"{SHOP}:inside") as (cluster, _):
            asked = [(await cluster.runner.query("ask")).text for _ in range(3)]
            with pytest.raises(UsageError, match="must be called in a host"):
                Cluster.current()
            return asked

    assert within(story()) == [f"shop: heard visit {number}" for number in (1, 2, 3)]
    with pytest.raises(UsageError, match="must be called in a host"):
        Cluster.current()
