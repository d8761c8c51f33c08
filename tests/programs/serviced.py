"""A program that is a service, for the tests of `service()`: `serviced.py KIND STORE`, which says
on stdout where it is.
"""

import asyncio
import sys
import time

from offbook import ChatModelAgent, Runner, ScriptedModel, SQLiteStore, ToolCalls, service, tool


@tool
async def work() -> str:
    """Work."""
    print("working", flush=True)
    if sys.argv[3:] != ["quick"]:
        await asyncio.sleep(0.3)
    return "worked"


def reply(request):
    return (
        ToolCalls(work={})
        if request.messages[-1].role == "user"
        else f"Done: {request.messages[-1].text}"
    )


agent = ChatModelAgent(name="Desk", model=ScriptedModel([reply] * 9), tools=[work])
desk = service(agent, store=SQLiteStore(sys.argv[2]), drain_timeout=10)


async def in_a_block():
    async with desk as runner:
        runner.query("go", run_id="a", detached=True)
        try:
            await asyncio.Event().wait()
        finally:
            print("left", flush=True)


async def in_a_stack():
    """As a server does that calls its hooks in tasks of their own."""
    await asyncio.create_task(started())
    await asyncio.Event().wait()


async def started():
    runner: Runner = await desk.__aenter__()
    runner.query("go", run_id="a", detached=True)


def without_a_loop():
    with desk as runner:
        runner.query("go", run_id="a", detached=True)
        try:
            time.sleep(60)
        finally:
            print("left", flush=True)


async def awaited():
    async with desk as runner:
        try:
            await runner.query("go", run_id="a")
        finally:
            print("left", flush=True)


async def followed():
    async with desk as runner:
        try:
            async for _ in runner.query("go", run_id="a"):
                pass
        finally:
            print("left", flush=True)


async def in_a_group():
    """Beside another task, which is cancelled, too."""

    async def beside():
        try:
            await asyncio.Event().wait()
        finally:
            print("left", flush=True)

    async def serve():
        async with desk as runner:
            await runner.query("go", run_id="a")

    async with asyncio.TaskGroup() as group:
        group.create_task(beside())
        group.create_task(serve())


def asked():
    with desk as runner:
        try:
            runner.blocking.query("go", run_id="a")
        finally:
            print("left", flush=True)


def opened():
    runner = desk.open()
    runner.query("go", run_id="a", detached=True)
    time.sleep(60)


def ended():
    runner = desk.open()
    print(runner.blocking.query("go", run_id="a").text)


match sys.argv[1]:
    case "block":
        asyncio.run(in_a_block())
    case "stack":
        asyncio.run(in_a_stack())
    case "with":
        without_a_loop()
    case "awaits":
        asyncio.run(awaited())
    case "follows":
        asyncio.run(followed())
    case "group":
        asyncio.run(in_a_group())
    case "asks":
        asked()
    case "open":
        opened()
    case "end":
        ended()
