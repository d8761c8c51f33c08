"""A process that uses a store: it makes one as its argument says, waits until it is told to go on,
and prints what came of it.

store_user.py '["SQLiteStore", ["a.db"], {}]' append|create|claim|first_use NAME
"""

import asyncio
import json
import sys

from offbook import runtime
from offbook.runtime.stores import Put

APPENDS = 25


async def main(recipe, action, name):
    kind, args, kwargs = json.loads(recipe)
    async with getattr(runtime, kind)(*args, **kwargs) as store:
        if action != "first_use":
            await store.get("anything")
        print("ready", flush=True)
        sys.stdin.readline()
        if action in ("append", "first_use"):
            sizes = [
                await store.append(
                    "journal", [f"{name} {turn} {part}".encode() for part in range(3)]
                )
                for turn in range(APPENDS)
            ]
            print(json.dumps(sizes))
        elif action == "create":
            print(
                json.dumps(
                    [await store.create(f"key {turn}", name.encode()) for turn in range(APPENDS)]
                )
            )
        else:
            assert action == "claim"
            await store.keep_alive(name, 60, first=True)
            claims = [
                await store.claim(f"key {turn}", name, [Put(f"key {turn}", name.encode())])
                for turn in range(APPENDS)
            ]
            print(json.dumps([claim and claim.epoch for claim in claims]), flush=True)
            sys.stdin.readline()  # as long as others claim: what an owner has that is gone is free


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
