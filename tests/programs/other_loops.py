"""Programs in which something other than asyncio runs: greenlets of gevent, trio.

Each prints what it was told, a line each.
"""

import sys


def tell(attempt):
    try:
        print(attempt())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


def gevent():
    from gevent import monkey

    monkey.patch_all()
    from offbook.runtime import Runner, SQLiteStore
    from tests.doubles.agents import PlannedAgent

    runner = Runner(PlannedAgent("A", "hello"))
    tell(lambda: SQLiteStore("never.db"))
    tell(lambda: runner.query("go", detached=True))
    tell(lambda: runner.query("go").result())
    tell(lambda: list(runner.query("go")))


def trio():
    import anyio
    import trio as real

    from offbook.runtime import Runner
    from tests.doubles.agents import PlannedAgent

    runner = Runner(PlannedAgent("A", "hello"))

    async def main():
        tell(lambda: runner.query("go", detached=True))
        tell(lambda: runner.query("go").result())
        tell(lambda: list(runner.query("go")))
        try:
            await runner.query("go")
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        try:
            async for _event in runner.query("go"):
                pass
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        print(await real.to_thread.run_sync(lambda: runner.query("go").result().status.value))

    real.run(main)
    anyio.run(main, backend="trio")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
