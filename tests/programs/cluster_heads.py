"""Ray's head is killed with its node and replaced by another one, while clients ask all the time.

Prints what came of each round as a line of JSON. Argument: the number of rounds. It ends what it
has started, and nothing else: its processes bear the mark in their environment.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
MARK = os.environ["HEADS_MARK"] = f"heads-{os.getpid()}"
os.environ["HEADS_FOLDER"] = os.environ.get("HEADS_FOLDER", "/tmp")

from offbook.runtime.cluster import Cluster, ClusterError

SHOP = "tests.programs.cluster_shop"
ADDRESS = "127.0.0.2"
LIMITS = {
    "lease_seconds": 4.0,
    "sweep_seconds": 0.5,
    "suspect_seconds": 2.0,
    "hang_seconds": 5.0,
    "link_seconds": 8.0,
}


def free_port():
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


def start_head(port):
    ray = str(Path(sys.executable).parent / "ray")
    options = [f"--port={port}", f"--node-ip-address={ADDRESS}", "--num-cpus=4"]
    options += ["--object-store-memory=83886080", "--include-dashboard=false"]
    subprocess.run(
        [ray, "start", "--head", "--disable-usage-stats", *options],
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=90,
    )


def kill_nodes():
    """End all that bears the mark, and is not this program."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_mine = f"HEADS_MARK={MARK}".encode() in (folder / "environ").read_bytes()
            if is_mine and int(folder.name) != os.getpid():
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue


class Asking:
    """Calls that are made again and again: how they ended, and how long the longest took."""

    def __init__(self, name, call, pause):
        self.name, self.pause = name, pause
        self.ended, self.longest = Counter(), 0.0
        self.succeeded = asyncio.Event()
        self.task = asyncio.ensure_future(self.ask(call))

    async def ask(self, call):
        while True:
            began = time.monotonic()
            try:
                await call()
                self.ended["done"] += 1
                self.succeeded.set()
            except ClusterError as error:
                self.ended[type(error).__name__] += 1
            except Exception as error:
                self.ended[f"{type(error).__name__}: {error}"[:200]] += 1
            self.longest = max(self.longest, time.monotonic() - began)
            await asyncio.sleep(self.pause)

    async def succeeds(self):
        self.succeeded.clear()
        await self.succeeded.wait()

    def take(self):
        found = {"ended": dict(self.ended), "longest": round(self.longest, 1)}
        self.ended, self.longest = Counter(), 0.0
        return found


async def all_succeed(asking):
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(one.succeeds() for one in asking))
    except TimeoutError:
        found = {one.name: one.take() for one in asking}
        msg = f"these calls have not all succeeded within 60 s: {found}"
        raise TimeoutError(msg) from None


async def start():
    options = {"allow": ("tests.",), "resources": {"num_cpus": 0.1}, "detach": True}
    cluster = Cluster.start(f"{SHOP}:host", name="heads", hosts=2, **options, **LIMITS)
    await cluster.open()
    return cluster


async def connect():
    async with Cluster.connect("heads") as cluster:
        await cluster.runner.query("1 hi")


async def main(rounds):
    port = free_port()
    os.environ["RAY_ADDRESS"] = f"{ADDRESS}:{port}"
    await asyncio.to_thread(start_head, port)
    client = await start()
    loop = asyncio.get_running_loop()
    asking = [
        Asking("runs", lambda: client.runner.query("1 hi"), 0.05),
        Asking("sessions", lambda: client.session("ada").query("1 hi"), 0.05),
        Asking("stats", client.stats, 0.2),
        Asking("connect", connect, 0.2),
        Asking("names", lambda: loop.getaddrinfo("localhost", 80), 0.1),
    ]
    for number in range(rounds):
        await all_succeed(asking)
        kill_nodes()
        await asyncio.sleep(3)
        away = {one.name: one.take() for one in asking}
        await asyncio.to_thread(start_head, port)
        began = time.monotonic()
        while True:
            try:
                starter = await start()
                break
            except ClusterError as error:
                print(f"not started: {error}", file=sys.stderr)
                await asyncio.sleep(0.5)
        started = time.monotonic() - began
        await all_succeed(asking)
        answered = time.monotonic() - began
        await starter.close()
        back = {one.name: one.take() for one in asking}
        seconds = {"started": round(started, 1), "answered": round(answered, 1)}
        print(json.dumps({"round": number, "away": away, "back": back, **seconds}), flush=True)
    for one in asking:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in asking), return_exceptions=True)
    await client.stop()
    await client.close()
    print(json.dumps({"round": "end"}), flush=True)


if __name__ == "__main__":
    rounds = int(sys.argv[1])
    try:
        asyncio.run(asyncio.wait_for(main(rounds), 60 + 150 * rounds))
    finally:
        kill_nodes()
