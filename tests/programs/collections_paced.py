"""Programs whose full garbage collections are paced: one that forks, one that makes cycles.

The first argument says which. Each prints one line of JSON.
"""

import asyncio
import gc
import json
import os
import sys

from offbook.runtime import ActorSystem

LIVING = 300_000  # objects that stay
MADE = 6_000_000  # objects in cycles that nothing refers to


def is_paced():
    return gc.get_threshold()[2] > 10


async def fork():
    """What the child of a paced process finds, and the parent afterwards."""
    reading, writing = os.pipe()
    async with ActorSystem(full_collections="paced"):
        child = os.fork()
        if not child:
            os.write(writing, json.dumps(in_the_child()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        stays = is_paced()
    told = json.loads(os.read(reading, 10_000))
    return {"child": told, "parent": [stays, gc.get_threshold()]}


def in_the_child():
    found = gc.get_threshold()
    with ActorSystem.in_thread(full_collections="paced"):
        paced = is_paced()
    return found, paced, gc.get_threshold()


async def cycles(how, pacing):
    """The most memory that is used while cycles are made, in a loop that is awaited or blocked."""
    living = [[number] for number in range(LIVING)]
    async with ActorSystem(full_collections="paced" if pacing == "paced" else None):
        for number in range(MADE // 3):
            first, second = [number], {"number": number}
            first.append(second)
            second["first"] = first
            if how == "awaits" and not number % 1_000:
                await asyncio.sleep(0)
    assert len(living) == LIVING
    with open("/proc/self/status") as status:  # noqa: PTH123
        return {"most": int(next(line for line in status if "VmHWM" in line).split()[1])}


async def main():
    what, *arguments = sys.argv[1:]
    print(json.dumps(await {"fork": fork, "cycles": cycles}[what](*arguments)))


if __name__ == "__main__":
    asyncio.run(main())
