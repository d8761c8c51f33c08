"""Who owns a cluster, and what is refused, on a real Ray: versions, names, owners, clients, nodes.

Prints what came of each story as a line of JSON. Arguments: names of stories (all, if there are
none), or `program WHAT`, for a program that a story starts. It ends what it has started, and
nothing else. What the environment says is in `cluster_shop.py`.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import ray
from ray.cluster_utils import Cluster as RayCluster

from offbook.runtime import UsageError
from offbook.runtime.cluster import Cluster, ClusterBusy, ClusterError

SHOP = "tests.programs.cluster_shop"
BEGAN = time.monotonic()
LIMITS = {"sweep_seconds": 0.5, "suspect_seconds": 2.0, "lease_seconds": 4.0}
NODE = {"num_cpus": 4, "object_store_memory": 80 * 2**20}
MEMORY = {"object_store_memory": 80 * 2**20, "include_dashboard": False, "log_to_driver": False}


def say(story, **found):
    at = round(time.monotonic() - BEGAN, 1)
    print(json.dumps({"story": story, **found, "at": at}), flush=True)


def start(name, factory="host", hosts=1, cpus=0.1, **more):
    options = {"allow": ("tests.",), "resources": {"num_cpus": cpus}, **LIMITS, **more}
    return Cluster.start(f"{SHOP}:{factory}", name=name, hosts=hosts, **options)


async def text_of(cluster, **options):
    return (await cluster.runner.query("1 hi", **options)).text


async def refusal(cluster):
    """Why the cluster is not entered."""
    try:
        await cluster.open()
    except (UsageError, ClusterError) as error:
        return f"{type(error).__name__}: {error}"
    await cluster.close()
    return None


@contextlib.asynccontextmanager
async def program(*words, **environment):
    """Another program: it prints a line when it has entered, and leaves when it may read one."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.stdin.close()
        await process.wait()


async def line_of(process):
    """The next line of JSON that it prints."""
    while line := await process.stdout.readline():
        if line.startswith(b"{"):
            return json.loads(line)
    return None


async def leave(process):
    process.stdin.write(b"leave\n")
    await process.stdin.drain()
    return await line_of(process)


# --- what the other programs do ---


async def be_program(what):
    if what == "second":
        ray.init(address="local", num_cpus=2, **MEMORY)
    elif what == "owner":
        ray.init(address=os.environ["RAY_ADDRESS"], namespace="tests", log_to_driver=False)
    cluster = start("claimed" if what == "second" else "owned")
    loop = asyncio.get_running_loop()
    if what == "second":
        say("second", refused=await refusal(cluster))
        await loop.run_in_executor(None, sys.stdin.readline)
        async with start("claimed") as cluster:
            say("second", text=await text_of(cluster))
    else:
        async with cluster:
            say("owner", owns=cluster._started, text=await text_of(cluster))
            await loop.run_in_executor(None, sys.stdin.readline)
        say("owner", left=True)
    ray.shutdown()


# --- the stories ---


async def pinned():
    """R6: a run of a pinned cluster is played by its version, and a Runner has its cluster's."""
    slow = {"ray_options": {"runtime_env": {"env_vars": {"STEP_SECONDS": "0.05"}}}}
    async with start("pinned", hosts=2, version="1", pin=True, **slow) as cluster:
        spec = await cluster._changes.spec(["pinned/0"])
        ids = [f"pinned{number}" for number in range(20)]
        runs = [cluster.runner.query("300 hi", run_id=one) for one in ids]
        waiting = [asyncio.ensure_future(finished(run)) for run in runs]
        first = {one.pid for one in (await cluster.stats()).hosts}
        await asyncio.sleep(0.7)
        await cluster.roll("2", max_surge=2, timeout=3)
        new = {one.pid for one in (await cluster.stats()).hosts}
        await asyncio.sleep(2)
        unfinished = sum(not one.done() for one in waiting)
        await cluster._transport.start("pinned/9", spec.pack())
        told = Counter(await asyncio.gather(*waiting))
    made_by = {int(line.split()[3]) for line in ledger() if line.split()[1] in ids}
    options = {"ray_options": {"runtime_env": {"env_vars": {"SHOP_VERSION": "7"}}}}
    refused = await refusal(start("versions", "versioned", version="1", **options))
    found = {"unfinished": unfinished, "told": dict(told), "by_new": len(made_by & new)}
    say("pinned", **found, by_first=len(made_by & first), refused=refused)


def ledger():
    return Path(os.environ["LEDGER"]).read_text().splitlines()


async def finished(run):
    return str((await run).status)


async def claimed():
    """R11: a second Ray cluster of that name is refused while the first lives, and no longer."""
    async with start("claimed") as cluster, program(__file__, "program", "second") as second:
        refused = await line_of(second)
        before = (await cluster.stats()).hosts[0].incarnation
        await asyncio.sleep(2 * LIMITS["lease_seconds"])
        first = await text_of(cluster)
        same = (await cluster.stats()).hosts[0].incarnation == before
        await cluster.stop()
        taken = await leave(second)
    say("claimed", refused=refused["refused"], first=first, same=same, second=taken["text"])


async def owned():
    """R12: of two programs that start a cluster at once one owns it; a detached one stays."""
    words = (__file__, "program", "owner")
    async with program(*words) as one, program(*words) as other:
        told = await asyncio.gather(line_of(one), line_of(other))
        owns = [each["owns"] for each in told]
        leaving, owner = (other, one) if owns[0] else (one, other)
        await leave(leaving)
        async with Cluster.connect("owned") as client:
            after = await text_of(client)
        await leave(owner)
    gone = await refusal(Cluster.connect("owned"))
    async with start("detached", detach=True):
        pass
    async with Cluster.connect("detached") as client:
        stays = await text_of(client)
        await client.stop()
    say("owned", owns=sorted(owns), after=after, gone=gone, stays=stays)


async def clients():
    """R13: two hundred clients are served, and one over the limit is told."""
    async with start("many", max_clients=202), contextlib.AsyncExitStack() as entered:
        many = [await entered.enter_async_context(Cluster.connect("many")) for _ in range(200)]
        texts = Counter(await asyncio.gather(*(text_of(client) for client in many)))
        began = time.monotonic()
        one_more = await entered.enter_async_context(Cluster.connect("many"))
        try:
            await Cluster.connect("many").open()
            refused = None
        except ClusterBusy as busy:
            refused = str(busy)
        seconds = round(time.monotonic() - began, 1)
        again = Counter(await asyncio.gather(*(text_of(one) for one in (*many, one_more))))
    say("clients", texts=dict(texts), refused=refused, seconds=seconds, again=dict(again))


async def command(*words, **environment):
    """Its exit status, and what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "offbook.runtime.cluster",
        *words,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    return process.returncode, out.decode(), error.decode()


async def commands():
    """R14: the command without a Ray cluster, and with one; what errors advise is accepted."""
    words = ("start", f"{SHOP}:host", "--name", "shop")
    nowhere = asyncio.ensure_future(command(*words, RAY_ADDRESS="127.0.0.2:9"))
    found = {}
    cpus = ("--cpus", "0.1", "--allow", "tests.")
    status, out, _ = await command(*words, *cpus)
    found |= {"started": status, "up": "shop/0" in out and " up " in out}
    found["status"], _, _ = await command("status", "--name", "shop")
    found["drained"], out, _ = await command("drain", "--name", "shop", "--here")
    found["report"] = [one["drained"] for one in json.loads(out.splitlines()[0]).values()]
    await command(*words, *cpus)
    found["stopped"], _, _ = await command("stop", "--name", "shop")
    found["gone"], _, error = await command("status", "--name", "shop")
    found["nowhere"], _, advice = await nowhere
    found["advice"] = "`ray start --head`" in advice
    say("commands", **found, said="cluster 'shop' not found" in error)


async def second_node(machines):
    """R15: an SQLite file is refused by a host on another node, also when that joins later."""
    async with start("one-node", cpus=3) as cluster:
        before = await text_of(cluster)
        machines.add_node(**NODE, node_ip_address="127.0.0.3")  # Ray wants the main thread
        try:
            await cluster.scale(2)
            refused = None
        except UsageError as error:
            refused = str(error)
        names = [one.name for one in (await cluster.stats()).hosts]
        say(
            "second_node", before=before, refused=refused, hosts=names, after=await text_of(cluster)
        )


STORIES = {
    "owned": owned,
    "claimed": claimed,
    "clients": clients,
    "commands": commands,
    "pinned": pinned,
}


async def main(names, machines):
    for name in names or (*STORIES, "second_node"):
        work = second_node(machines) if name == "second_node" else STORIES[name]()
        await asyncio.wait_for(work, 120)
    say("left", hosts=ray.util.list_named_actors(all_namespaces=True))


if __name__ == "__main__":
    if sys.argv[1:2] == ["program"]:
        asyncio.run(asyncio.wait_for(be_program(sys.argv[2]), 150))
        sys.exit(0)
    head = {**NODE, "node_ip_address": "127.0.0.2", "include_dashboard": False}
    machines = RayCluster(initialize_head=True, head_node_args=head)
    try:
        os.environ["RAY_ADDRESS"] = machines.address
        options = {"namespace": "tests", "_node_ip_address": "127.0.0.2", "log_to_driver": False}
        ray.init(address=machines.address, **options)
        asyncio.run(asyncio.wait_for(main(sys.argv[1:], machines), 500))
    finally:
        ray.shutdown()
        machines.shutdown()
