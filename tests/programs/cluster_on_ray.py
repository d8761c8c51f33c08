"""A cluster on a real Ray of two nodes on this machine, through one story after the other.

Prints what came of each as a line of JSON.

It ends what it has started, and nothing else. What the environment says is in `cluster_shop.py`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import ray
from ray.cluster_utils import Cluster as RayCluster

from offbook.runtime.cluster import Cluster, HostLost

SHOP = "tests.programs.cluster_shop"
BEGAN = time.monotonic()
NODE = {"num_cpus": 3, "object_store_memory": 80 * 2**20}


def say(story, **found):
    print(
        json.dumps({"story": story, **found, "at": round(time.monotonic() - BEGAN, 1)}), flush=True
    )


def steps():
    ledger = Path(os.environ["LEDGER"])
    return (
        [tuple(line.split()[1:3]) for line in ledger.read_text().splitlines()]
        if ledger.exists()
        else []
    )


async def read(run, at=3, then=None):
    """The texts of a run, what is done after some of them, and how long the run stood still after
    that.
    """
    texts, seqs, stood = [], [], 0.0
    async for event in run:
        texts.append(event.text)
        seqs.append(event.seq)
        if len(texts) == at and then is not None:
            await then()
            stood = time.monotonic()
        elif len(texts) == at + 1 and stood:
            stood = time.monotonic() - stood
    return {
        "texts": texts,
        "in_order": seqs == list(range(1, len(seqs) + 1)),
        "stood": round(stood, 2),
    }


async def pid_of(cluster, host):
    return next(one.pid for one in (await cluster.stats()).hosts if one.name == host)


async def awaited(run):
    return await run


async def is_up(cluster, hosts):
    while [one.state for one in (await cluster.stats()).hosts].count("up") < hosts:
        await asyncio.sleep(0.2)


async def straight(cluster):
    result = await cluster.session("ada").query("2 hello")
    async with Cluster.connect("shop") as other:
        followed = await other.session("ada").query("2 again")
        said = [
            message.text
            for message in await other.session("ada").history()
            if message.role == "user"
        ]
    say("straight", texts=[result.text, followed.text], said=said)


async def actors(cluster):
    counter = await cluster.spawn(f"{SHOP}:Counter", 1, host="shop/0")
    asks = await cluster.spawn(f"{SHOP}:Asks", host="shop/1")
    reply = await asks.request([counter, 4], timeout=20)
    for number in range(1_000):
        counter.tell([number, "x" * (20_000 if number % 50 == 0 else 1)])
    heard = await counter.request("heard", timeout=20)
    os.kill(await pid_of(cluster, "shop/0"), signal.SIGKILL)
    try:
        await counter.request(1, timeout=20)
        lost = "answered"
    except HostLost:
        lost = "HostLost"
    say("actors", reply=reply, in_order=heard == list(range(1_000)), lost=lost)


async def killed(cluster):
    run = cluster.runner.query("20 hi", run_id="killed")

    async def kill():
        os.kill(await pid_of(cluster, run.host), signal.SIGKILL)

    found = await read(run, then=kill)
    own = [step for step in steps() if step[0] == "killed"]
    say("killed", **found, done=len(set(own)), twice=len(own) - len(set(own)))


async def many(cluster):
    runs = [cluster.runner.query("10 hi", run_id=f"r{number}") for number in range(25)]
    runs += [
        cluster.session(f"s{number}").query("10 hi", run_id=f"t{number}") for number in range(25)
    ]
    tasks = [asyncio.ensure_future(awaited(run)) for run in runs]
    before = len(steps())
    while len(steps()) < before + 120:
        await asyncio.sleep(0.02)
    os.kill(await pid_of(cluster, runs[0].host), signal.SIGKILL)
    texts = {(await task).text for task in tasks}
    own = [step for step in steps() if step[0][0] in "rt" and step[0][1:].isdigit()]
    say("many", texts=sorted(texts), done=len(set(own)), twice=len(own) - len(set(own)))


async def stopped(cluster):
    run = cluster.runner.query("20 hi", run_id="stopped")
    pids = []

    async def stop():
        pids.append(await pid_of(cluster, run.host))
        os.kill(pids[0], signal.SIGSTOP)

    found = await read(run, then=stop)
    try:
        os.kill(pids[0], signal.SIGCONT)
    except ProcessLookupError:
        pass
    say("stopped", **found)


async def scaled(cluster):
    reading = [
        asyncio.ensure_future(read(cluster.session(f"u{number}").query("25 hi")))
        for number in range(6)
    ]
    await cluster.scale(4)
    await cluster.scale(2)
    found = await asyncio.gather(*reading)
    say(
        "scaled",
        whole=all(one["in_order"] and len(one["texts"]) == 26 for one in found),
        hosts=sorted(one.name for one in (await cluster.stats()).hosts),
    )


async def leaving(cluster, node):
    """The hosts of a node that is going away are drained, and as many start on the other one."""
    reading = [asyncio.ensure_future(read(cluster.runner.query("25 hi"))) for _ in range(6)]
    leave = [one.name for one in (await cluster.stats()).hosts if one.node == node.node_id]
    report = await cluster.drain(node=node.node_id, replace=True)
    await is_up(cluster, 2)
    found = await asyncio.gather(*reading)
    nodes = [one.node for one in (await cluster.stats()).hosts]
    say(
        "leaving",
        whole=all(one["in_order"] and len(one["texts"]) == 26 for one in found),
        drained=sorted(report) == sorted(leave) and all(one["drained"] for one in report.values()),
        hosts=len(nodes),
        there=nodes.count(node.node_id),
    )


async def node_lost(cluster, machines, node):
    node_id = node.node_id
    await cluster.scale(4)  # Ray spreads them
    hosts = {one.name: one.node for one in (await cluster.stats()).hosts}
    there = next((name for name, where in hosts.items() if where == node_id), None)
    number = next(
        n for n in range(10_000) if cluster._routes.hosts.placement.first(f"n{n}") == there
    )
    run = cluster.runner.query("40 hi", run_id=f"n{number}")

    async def lose():
        await asyncio.to_thread(machines.remove_node, node, allow_graceful=False)

    found = await read(run, then=lose)
    own = [step for step in steps() if step[0] == f"n{number}"]
    say("node_lost", **found, done=len(set(own)), twice=len(own) - len(set(own)))


async def main(machines, node):
    limits = {"sweep_seconds": 1.0, "suspect_seconds": 2.0}
    began = time.monotonic()
    async with Cluster.start(
        f"{SHOP}:host",
        name="shop",
        hosts=3,
        allow=("tests.",),
        resources={"num_cpus": 0.5},
        **limits,
    ) as cluster:
        say(
            "started",
            seconds=round(time.monotonic() - began, 1),
            nodes=len({one.node for one in (await cluster.stats()).hosts}),
        )
        await straight(cluster)
        await killed(cluster)
        await is_up(cluster, 3)
        await many(cluster)
        await is_up(cluster, 3)
        await actors(cluster)
        await is_up(cluster, 3)
        await stopped(cluster)
        await is_up(cluster, 3)
        await scaled(cluster)
        await leaving(cluster, node)
        await node_lost(cluster, machines, node)
    say("left", hosts=ray.util.list_named_actors(all_namespaces=True))


if __name__ == "__main__":
    machines = RayCluster(
        initialize_head=True,
        head_node_args={**NODE, "node_ip_address": "127.0.0.2", "include_dashboard": False},
    )
    node = machines.add_node(**NODE, node_ip_address="127.0.0.3")
    try:
        ray.init(
            address=machines.address,
            namespace="tests",
            _node_ip_address="127.0.0.2",
            log_to_driver=False,
        )
        asyncio.run(asyncio.wait_for(main(machines, node), 220))
    finally:
        ray.shutdown()
        machines.shutdown()
    sys.exit(0)
