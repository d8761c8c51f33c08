"""Planned changes of a cluster on a real Ray: hosts are drained, added, rolled and killed while
messages and answers are on their way.

Prints what came of each story as a line of JSON. Arguments: names of stories (all, if there are
none). It ends what it has started, and nothing else. What the environment says is in
`cluster_shop.py`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

from offbook.runtime.cluster import Cluster, ClusterError

SHOP = "tests.programs.cluster_shop"
BEGAN = time.monotonic()
LIMITS = {"sweep_seconds": 0.5, "suspect_seconds": 2.0, "hang_seconds": 5.0}
SESSIONS = int(os.environ.get("SESSIONS", "6"))
MESSAGES = int(os.environ.get("MESSAGES", "20"))
RUNS = int(os.environ.get("RUNS", "12"))
STEPS = int(os.environ.get("STEPS", "30"))
REPEAT = int(os.environ.get("REPEAT", "1"))
ANSWERS = int(os.environ.get("ANSWERS", "30"))


def say(story, **found):
    print(
        json.dumps({"story": story, **found, "at": round(time.monotonic() - BEGAN, 1)}), flush=True
    )


def start(name, factory, hosts, **more):
    return Cluster.start(
        f"{SHOP}:{factory}",
        name=name,
        hosts=hosts,
        allow=("tests.",),
        resources={"num_cpus": 0.1},
        **LIMITS,
        **more,
    )


async def ended(run):
    """How it ended, as its caller is told."""
    try:
        result = await run
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return str(result.status) if result.error is None else f"{result.status}: {result.error}"


def answer_to(runner, result):
    (waits,) = result.interrupts
    return (
        runner.approve(waits)
        if hasattr(runner, "approve")
        else runner.resume(waits.id.partition(".")[2], {waits.id: True})
    )


async def conversation(cluster, name):
    """All messages of one session, sent in order without waiting for answers."""
    session, runs = cluster.session(name), []
    for number in range(MESSAGES):
        query = session.query(f"2 {name}.{number:03}", run_id=f"{name}.{number}")
        runs.append(asyncio.ensure_future(ended(query)))
        await asyncio.sleep(0.02)
    return await asyncio.gather(*runs)


async def changed(story, change, factory="host", hosts=3, name="shop", **more):
    """Sessions and runs, while the cluster is changed, as often as it is told."""
    async with start(f"{name}-{story}", factory, hosts, **more) as cluster:
        for repetition in range(REPEAT):
            await changed_once(cluster, story, f"{story}-{repetition}-", change)
            if repetition + 1 < REPEAT:
                await cluster.scale(hosts)
                await all_up(cluster, hosts)


async def changed_once(cluster, story, mark, change):
    """What callers are told, what the histories hold, and which steps were made again."""
    began = time.monotonic()
    talking = [asyncio.ensure_future(conversation(cluster, f"{mark}s{n}")) for n in range(SESSIONS)]
    runs = [cluster.runner.query(f"{STEPS} hi", run_id=f"{mark}run{n}") for n in range(RUNS)]
    waiting = [asyncio.ensure_future(ended(run)) for run in runs]
    await asyncio.sleep(0.3)
    follows = [cluster.follow(f"{mark}run{n}") for n in range(RUNS)]
    waiting += [asyncio.ensure_future(ended(run)) for run in follows]
    await asyncio.sleep(0.1)
    await change(cluster)
    told = Counter(one for each in await asyncio.gather(*talking) for one in each)
    told += Counter(await asyncio.gather(*waiting))
    swapped = missing = repeated = 0
    for number in range(SESSIONS):
        history = await cluster.session(f"{mark}s{number}").history()
        said = [message.text for message in history if message.role == "user"]
        numbers = [int(text.rpartition(".")[2]) for text in said]
        swapped += sum(one > other for one, other in pairwise(numbers))
        missing += MESSAGES - len(set(numbers))
        repeated += len(numbers) - len(set(numbers))
    again, begun_twice = repeated_steps(mark)
    say(
        story,
        told=dict(told),
        swapped=swapped,
        missing=missing,
        repeated=repeated,
        steps_again=again,
        begun_twice=begun_twice,
        seconds=round(time.monotonic() - began, 1),
    )


def repeated_steps(mark):
    """How many steps were made again, and how many runs began again after their first step."""
    made, begun_twice = {}, 0
    with Path(os.environ["LEDGER"]).open() as ledger:
        for line in ledger:
            _, run, step, *_ = line.split()
            if run.startswith(mark):
                steps = made.setdefault(run, Counter())
                begun_twice += step == "0" and any(one != "0" for one in steps)
                steps[step] += 1
    again = sum(count - 1 for steps in made.values() for count in steps.values())
    return again, begun_twice


async def all_up(cluster, hosts):
    while [one.state for one in (await cluster.stats()).hosts] != ["up"] * hosts:
        await asyncio.sleep(0.2)


async def drain(cluster):
    first, other, *_ = (one.name for one in (await cluster.stats()).hosts)
    await cluster.drain(first)
    await cluster.scale(3)
    life = await life_of(cluster, first)
    await cluster.drain(other)
    assert await life_of(cluster, first) == life, (
        "a host of a name that was used before is left alone"
    )


async def life_of(cluster, name):
    """Which life of that host is up."""
    while True:
        for one in (await cluster.stats()).hosts:
            if one.name == name and one.state == "up":
                return one.incarnation
        await asyncio.sleep(0.1)


async def scale(cluster):
    await cluster.scale(4)
    await cluster.scale(1)


async def roll(cluster):
    version = (await cluster.stats()).hosts[0].version
    await cluster.roll(str(int(version) + 1))


async def kill(cluster):
    os.kill((await cluster.stats()).hosts[0].pid, signal.SIGKILL)


async def stop(cluster):
    """A host is stopped: the others end it, and Ray starts it again."""
    os.kill((await cluster.stats()).hosts[0].pid, signal.SIGSTOP)


async def answered(story, change):
    """Runs that wait for an approval, and are all answered while the cluster is changed."""
    async with start(f"answers-{story}", "approves", 3) as cluster:
        for repetition in range(REPEAT):
            await answered_once(cluster, story, f"{story}-{repetition}-", change)
            if repetition + 1 < REPEAT:
                await cluster.scale(3)
                await all_up(cluster, 3)


async def answered_once(cluster, story, mark, change):
    """What the callers are told of their answers, and how often the tool was called."""
    asking = (cluster.runner.query("pay", run_id=f"{mark}{number}") for number in range(ANSWERS))
    waiting = await asyncio.gather(*asking)
    answering = []

    async def answer():
        for one in waiting:
            answering.append(asyncio.ensure_future(ended(answer_to(cluster.runner, one))))
            await asyncio.sleep(0.005)

    await asyncio.gather(answer(), change(cluster))
    told = Counter(await asyncio.gather(*answering))
    asked = Counter(str(one.status) for one in waiting)
    paid, _ = repeated_steps(mark)
    say(f"answers_{story}", asked=dict(asked), told=dict(told), steps_again=paid)


def head():
    """The process of Ray's head that this program has started."""
    own = str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                "gcs_server" in (folder / "comm").read_text()
                and (folder / "stat").read_text().rpartition(")")[2].split()[1] == own
            ):
                return int(folder.name)
        except OSError:
            continue
    raise LookupError("gcs_server")


async def headless():
    """The head is stopped: calls answer within their bounds, runs go on, and names are resolved."""
    async with start("headless", "host", 2) as cluster:
        pid, found = head(), {}
        await cluster.runner.query("1 hi")
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            asked = [asyncio.ensure_future(cluster.stats()) for _ in range(6)]
            running = asyncio.ensure_future(ended(cluster.runner.query("3 hi")))
            await asyncio.get_running_loop().getaddrinfo("localhost", 80)
            found["resolved_within"] = round(time.monotonic() - began, 1)
            found["run"] = await running
            found["up"] = [one.state for one in (await asyncio.gather(*asked))[-1].hosts]
            found["stats_within"] = round(time.monotonic() - began, 1)
            try:
                await cluster.scale(3)
                found["scale"] = "done"
            except ClusterError as error:
                found["scale"] = str(error)
            found["scale_within"] = round(time.monotonic() - began, 1)
        finally:
            os.kill(pid, signal.SIGCONT)
        found["after"] = await ended(cluster.runner.query("1 hi"))
    say("headless", **found)


STORIES = {
    "drain": lambda: changed("drain", drain),
    "scale": lambda: changed("scale", scale, hosts=2),
    "roll": lambda: changed("roll", roll, hosts=2, version="1"),
    "kill": lambda: changed("kill", kill),
    "stop": lambda: changed("stop", stop),
    "headless": headless,
    "answers_drain": lambda: answered("drain", drain),
    "answers_kill": lambda: answered("kill", kill),
}


async def main(names):
    import ray

    ray.init(
        address="local",
        namespace="offbook",
        include_dashboard=False,
        log_to_driver=False,
        num_cpus=8,
        object_store_memory=80 * 2**20,
    )
    for name in names or STORIES:
        await asyncio.wait_for(STORIES[name](), 90 * REPEAT)
    say("left", hosts=ray.util.list_named_actors(all_namespaces=True))
    ray.shutdown()


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1:]), 600 * REPEAT))
