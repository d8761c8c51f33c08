"""The list of the hosts in the store: two that change it at once both get in, and it never goes
back.
"""

import asyncio

import pytest

from offbook.runtime import CheckpointError, MemoryStore
from offbook.runtime.cluster.host_list import HostList, ListKeeper, Member


async def all_join(store, count):
    keepers = [ListKeeper(store, "shop") for _ in range(count)]
    await asyncio.gather(
        *(
            keeper.change(lambda hosts, n=n: hosts.put(Member(f"shop/{n}")))
            for n, keeper in enumerate(keepers)
        )
    )
    return await ListKeeper(store, "shop").read()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_hosts_that_join_at_once_are_all_in_the_list(run, store_of, kind):
    store = store_of(kind)
    hosts = run(all_join(store, 12))
    assert hosts.names() == sorted(f"shop/{number}" for number in range(12))
    assert hosts.number == 12


def test_old_versions_do_not_stay(run, store_of):
    store = store_of("memory")
    run(all_join(store, 20))
    assert len(run(store.keys("offbook:cluster:"))) <= 5


def test_a_change_to_the_same_writes_nothing(run, store_of):
    async def twice():
        keeper = ListKeeper(store_of("memory"), "shop")
        one = await keeper.change(lambda hosts: hosts.put(Member("shop/0", "1")))
        return one, await keeper.change(lambda hosts: hosts.put(Member("shop/0", "1")))

    one, other = run(twice())
    assert one == other


def test_the_list_outlives_a_store_that_was_emptied(run):
    async def emptied():
        store = MemoryStore()
        keeper = ListKeeper(store, "shop")
        await keeper.change(lambda hosts: hosts.put(Member("shop/0")))
        for key in await store.keys():
            await store.delete(key)
        assert (await keeper.read()).names() == ["shop/0"]
        await keeper.change(lambda hosts: hosts.put(Member("shop/0")))
        return await ListKeeper(store, "shop").read()

    hosts = run(emptied())
    assert (hosts.number, hosts.names()) == (2, ["shop/0"])


def test_a_host_that_is_draining_is_in_the_list_and_has_no_place():
    hosts = HostList(1, (Member("shop/0", is_draining=True), Member("shop/1")))
    assert hosts.placement.names == ("shop/1",)
    assert HostList.of(hosts.data()) == hosts


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"format": 9, "number": 1, "members": []},
        {"format": 1, "number": 1, "members": [1]},
    ],
)
def test_a_damaged_or_newer_list_is_told(data):
    with pytest.raises(CheckpointError):
        HostList.of(data)
