"""The same program on one machine and on many: hosts on Ray, sessions that survive the loss of a
host, and an actor on one of them.

pip install 'offbook[ray,postgres]'
python examples/cluster/shop.py        # on this machine, by itself: Ray, two hosts, an SQLite file
kubectl apply -f examples/cluster/raycluster.yaml        # on Kubernetes: see the comment in that
file
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from offbook import (
    Actor,
    ActorSystem,
    ChatModelAgent,
    Message,
    ModelRequest,
    PostgresStore,
    Runner,
    SQLiteStore,
    model_from_env,
)
from offbook.runtime.cluster import Cluster


class Parrot:
    """A model for users without a key."""

    async def generate(self, request: ModelRequest) -> Message:
        return Message.assistant(f"You said: {request.messages[-1].text}")


class Visits(Actor):
    """Count in memory: the count is lost with its host."""

    def __init__(self, start: int = 0) -> None:
        super().__init__()
        self.count = start

    def on_receive(self, more: int) -> int:
        self.count += more
        return self.count


def open_store() -> SQLiteStore | PostgresStore:
    place = os.environ.get("STORE", "")
    return PostgresStore(place) if place.startswith("postgres") else SQLiteStore(place or "shop.db")


@asynccontextmanager
async def host(system: ActorSystem) -> AsyncIterator[Runner]:
    """Open the store and the Runner of a host, which calls this by its name, "shop:host"."""
    model = model_from_env() if "OPENAI_API_KEY" in os.environ else Parrot()
    agent = ChatModelAgent(name="Shop", instruction="Answer the customer.", model=model)
    async with open_store() as store:
        yield Runner(agent, system=system, store=store, durability="step")


async def main() -> None:
    hosts = int(os.environ.get("HOSTS", "2"))
    cpus = float(os.environ.get("CPUS", "0.5"))
    async with Cluster.start(
        "shop:host", name="shop", hosts=hosts, resources={"num_cpus": cpus}
    ) as cluster:
        session = cluster.session("user-42")
        print((await session.query("Hello!")).text)
        async for event in session.query("And tomorrow?"):
            print(event)
        visits = await cluster.spawn("shop:Visits", 10, near="visits")
        print("visits:", await visits.request(1, timeout=10))
        stats = await cluster.stats()
        print(", ".join(f"{one.name} is {one.state}" for one in stats.hosts))
        if "--stay" in sys.argv:
            # A service: web workers connect, and `python -m offbook.runtime.cluster drain` ends it.
            await asyncio.Event().wait()


if __name__ == "__main__":
    # Hosts import this file as `shop`, so PYTHONPATH must name its folder. The SQLite file is there
    # too, in whichever folder a host runs.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    )
    os.environ.setdefault("STORE", str(Path.cwd() / "shop.db"))
    asyncio.run(main())
