"""A pool of workers: if one fails, its supervisor restarts it, and the others are not affected.

python examples/supervised_workers.py
"""

import asyncio
import logging

from offbook import Actor, ActorRef, ActorSystem, Restart
from offbook.runtime import Backoff


class Worker(Actor):
    """Square numbers, and fail at unlucky ones."""

    def __init__(self, unlucky: int) -> None:
        super().__init__()
        self.unlucky = unlucky

    async def on_receive(self, message: tuple[int, ActorRef[Actor]]) -> None:
        number, reply_to = message
        await asyncio.sleep(0.01)  # stands in for slow work
        if number == self.unlucky:
            raise ValueError(f"{number} is unlucky")
        reply_to.tell((number, number * number))


class Pool(Actor):
    """Distribute numbers to workers, and collect the results."""

    def on_start(self) -> None:
        again = Restart(max_restarts=5, within=10, backoff=Backoff(initial=0.01))
        self.workers = [self.spawn(Worker, unlucky=13, supervision=again) for _ in range(4)]
        self.results: dict[int, int] = {}

    def on_receive(self, message: tuple[int, int]) -> None:
        number, square = message
        self.results[number] = square

    def square_all(self, count: int) -> None:
        for number in range(count):
            self.workers[number % len(self.workers)].tell((number, self.actor_ref))

    def collected(self) -> dict[int, int]:
        return self.results


async def main() -> None:
    async with ActorSystem() as system:
        pool = system.spawn(Pool)
        await pool.proxy().square_all(20)
        report = await system.drain(timeout=10)
        results = await pool.proxy().collected()
        print(system.tree())
        print(
            f"{len(results)} of 20 done in {report.seconds:.2f} s, {system.stats().restarts} "
            f"restart; 13 is missing: {13 not in results}"
        )


if __name__ == "__main__":
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.CRITICAL)
    asyncio.run(main())
