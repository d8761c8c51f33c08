"""The command of a cluster: what it prints, and its exit status."""

import asyncio
import json

import pytest

from offbook.runtime.cluster import __main__ as command
from offbook.runtime.cluster.on_ray import transport
from tests.doubles.cluster import Machines, cluster_of


@pytest.fixture
def told(within, monkeypatch, capsys):
    """What the command says beside a cluster of two hosts, on which a run has ended."""

    def tell(*words):
        async def story():
            machines = Machines()
            monkeypatch.setattr(transport, "ray_transport", lambda may_start: machines)
            async with cluster_of(2, machines=machines) as (cluster, _):
                await cluster.runner.query("2 hi", run_id="order-7")
                await asyncio.sleep(0)
                said = command._parser().parse_args([words[0], "--name", "shop", *words[1:]])
                return await command._do(said), sorted(machines.by_name)

        status, hosts = within(story())
        return status, hosts, capsys.readouterr().out

    return tell


def test_status_is_a_table_or_json(told):
    status, _, out = told("status")
    assert status == 0
    assert out.splitlines()[0].split()[:3] == ["name", "state", "version"]
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["shop/0", "up"],
        ["shop/1", "up"],
    ]
    status, _, out = told("status", "--json")
    assert [one["name"] for one in json.loads(out)["hosts"]] == ["shop/0", "shop/1"]


def test_follow_shows_a_run_to_its_end(told):
    status, _, out = told("follow", "order-7")
    assert status == 0
    assert out.splitlines() == [
        "[Shop] 0: 2 hi",
        "[Shop] 1: 2 hi",
        "[Shop] done: 2 hi",
        "order-7: completed",
    ]


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (("scale", "3"), ["shop/0", "shop/1", "shop/2"]),
        (("drain", "shop/0"), ["shop/1"]),
        (("drain", "--here"), []),
        (("drain", "--node", "another"), ["shop/0", "shop/1"]),
        (("roll", "2"), ["shop/2", "shop/3"]),
        (("stop",), []),
    ],
)
def test_hosts_come_and_go(told, words, hosts):
    status, found, _ = told(*words)
    assert (status, found) == (0, hosts)


def test_what_is_wrong_is_said_in_a_line(monkeypatch, capsys):
    monkeypatch.setattr(transport, "ray_transport", lambda may_start: Machines())
    assert command.main(["status", "--name", "shop"]) == 2
    assert "cluster 'shop' not found" in capsys.readouterr().err
