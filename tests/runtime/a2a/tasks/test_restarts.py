"""A server that ends, or is lost, with tasks in every state; two servers on one store; many tasks
at once.
"""

import asyncio

import pytest

from offbook.runtime import MemoryStore, Runner
from offbook.runtime.a2a import BearerTokens, a2a_app
from offbook.runtime.a2a.tasks.eviction import evict
from offbook.runtime.durability import leases
from tests.doubles.a2a import (
    ByHand,
    kind_of,
    message,
    scripted,
    serving,
    state_of,
    status_text,
    text_of,
)

LASTING = ["sqlite", "redis", "postgres"]
STORES = ["memory", *LASTING]


async def many_ways(input, context):
    word = input.messages[-1].text
    if word == "ask":
        if context.resume is not None and context.resume.was_interrupted:
            yield f"answered {context.resume.data}"
        else:
            yield context.interrupt("?")
    elif word == "fail":
        raise ValueError
    else:
        yield word


@pytest.mark.parametrize("kind", STORES)
def test_tasks_at_rest_are_there_after_a_restart_in_each_state(run, store_of, kind):
    async def main():
        store = store_of(kind, "one") if kind == "memory" else None
        made = {}
        for process in range(2):
            own = store or store_of(kind, "one")
            async with (
                serving(a2a_app(scripted(many_ways), store=own)) as url,
                ByHand(url) as client,
            ):
                if not process:
                    made = {word: await client.send(word) for word in ("say", "ask", "fail")}
                    waiting = await client.send("ask")
                    made["cancel"] = (await client.call("CancelTask", {"id": waiting["id"]}))[
                        "result"
                    ]
                else:
                    for word, task in made.items():
                        assert await client.get(task["id"]) == task, word
                    states = {word: state_of(task) for word, task in made.items()}
                    assert states == {
                        "say": "COMPLETED",
                        "ask": "INPUT_REQUIRED",
                        "fail": "FAILED",
                        "cancel": "CANCELED",
                    }
                    done = await client.send("yes", taskId=made["ask"]["id"])
                    assert (state_of(done), text_of(done)) == ("COMPLETED", "answered yes")
                    assert (await client.call("ListTasks", {}))["result"]["totalSize"] == 4

    run(main())


@pytest.mark.parametrize("kind", LASTING)
def test_a_task_that_was_at_work_is_continued_from_its_checkpoint(run, store_of, kind):
    steps = []

    async def play(input, context):
        async def first():
            steps.append("first")
            return "one"

        said = await context.step("first", first)
        if len(steps) == 1 and not second_life.is_set():
            begun.set()
            await asyncio.Event().wait()
        yield f"{said} and two"

    begun, second_life = asyncio.Event(), asyncio.Event()

    async def main():
        async with (
            serving(a2a_app(scripted(play), store=store_of(kind, "one"))) as url,
            ByHand(url) as client,
        ):
            task = await client.send(configuration={"returnImmediately": True})
            await begun.wait()
        second_life.set()
        async with (
            serving(a2a_app(scripted(play), store=store_of(kind, "one"))) as url,
            ByHand(url) as client,
        ):
            done = await client.until(task["id"], "COMPLETED", "FAILED")
            assert (state_of(done), text_of(done)) == ("COMPLETED", "one and two")
            assert steps == ["first"], "what was done is not done again"

    run(main())


def test_a_task_whose_run_is_gone_has_failed_with_the_server(run):
    begun = asyncio.Event()

    async def play(input, context):
        begun.set()
        await asyncio.Event().wait()
        yield

    async def main():
        async with MemoryStore() as store:
            for process in range(2):
                runner = Runner(scripted(play), store=store, durability="none")
                async with serving(a2a_app(runner, store=store)) as url, ByHand(url) as client:
                    if not process:
                        task = await client.send(configuration={"returnImmediately": True})
                        await begun.wait()
                    else:
                        failed = await client.until(task["id"], "FAILED", "COMPLETED")
                        assert (state_of(failed), status_text(failed)) == (
                            "FAILED",
                            "server restarted",
                        )

    run(main())


@pytest.mark.parametrize("kind", STORES)
def test_two_servers_on_one_store_are_one(run, store_of, kind):
    gate, begun = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        if input.messages[-1].text != "wait":
            async for event in many_ways(input, context):
                yield event
            return
        yield "begun"
        begun.set()
        await gate.wait()
        yield "done"

    async def main():
        first_store = store_of(kind, "one")
        second_store = first_store if kind == "memory" else store_of(kind, "one")
        first, second = (
            a2a_app(scripted(play), store=store) for store in (first_store, second_store)
        )
        async with (
            serving(first) as url,
            serving(second) as other,
            ByHand(url) as here,
            ByHand(other) as there,
        ):
            asked = await here.send("ask")
            assert state_of(await there.get(asked["id"])) == "INPUT_REQUIRED"
            assert text_of(await there.send("yes", taskId=asked["id"])) == "answered yes"
            working = await here.send("wait", configuration={"returnImmediately": True})
            await begun.wait()
            assert state_of(await there.get(working["id"])) == "WORKING"
            async with there.streaming("SubscribeToTask", {"id": working["id"]}) as events:
                assert state_of(await anext(events)) == "WORKING"
                gate.set()
                kinds = [kind_of(event) async for event in events]
            assert kinds[-1] == "COMPLETED"
            assert text_of(await there.get(working["id"])) == "begundone"
            assert (await there.call("ListTasks", {}))["result"]["totalSize"] == 2

    run(main())


@pytest.mark.parametrize("kind", STORES)
def test_a_task_that_another_server_works_on_can_be_cancelled(run, store_of, monkeypatch, kind):
    monkeypatch.setattr(leases, "PREEMPT_SECONDS", 0.1)
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def play(input, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        yield

    async def main():
        first_store = store_of(kind, "one")
        second_store = first_store if kind == "memory" else store_of(kind, "one")
        first, second = (
            a2a_app(scripted(play), store=store) for store in (first_store, second_store)
        )
        async with (
            serving(first) as url,
            serving(second) as other,
            ByHand(url) as here,
            ByHand(other) as there,
        ):
            task = await here.send(configuration={"returnImmediately": True})
            await begun.wait()
            answer = await there.call("CancelTask", {"id": task["id"]})
            assert state_of(answer["result"]) == "CANCELED"
            assert stopped.is_set()

    run(main())


@pytest.mark.slow
def test_a_thousand_tasks_at_once(run):
    gate = asyncio.Event()

    async def play(input, context):
        await gate.wait()
        yield input.messages[-1].text

    async def main():
        app = a2a_app(scripted(play))
        async with serving(app, limit_concurrency=None) as url, ByHand(url) as client:
            few = asyncio.Semaphore(20)  # requests at once, not tasks

            async def begin(number):
                async with few:
                    return await client.send(str(number), configuration={"returnImmediately": True})

            made = await asyncio.gather(*(begin(number) for number in range(1_000)))
            service = await app.service()
            assert service.at_work == 1_000
            gate.set()
            for number, task in enumerate(made[::10]):
                number *= 10
                assert text_of(await client.until(task["id"], "COMPLETED")) == str(number)
            while service.at_work:
                await asyncio.sleep(0.01)
            listed = (await client.call("ListTasks", {"status": "TASK_STATE_COMPLETED"}))["result"]
            assert listed["totalSize"] == 1_000

    run(main())


def test_tasks_are_listed_by_pages_context_state_and_time(run):
    async def main():
        async with serving(a2a_app(scripted(many_ways))) as url, ByHand(url) as client:
            made = [
                await client.send(word, contextId=f"c{number % 3}")
                for number, word in enumerate(["say", "ask", "say", "fail", "say", "ask", "say"])
            ]
            found, token = [], ""
            while True:
                page = (await client.call("ListTasks", {"pageSize": 3, "pageToken": token}))[
                    "result"
                ]
                found += page["tasks"]
                token = page["nextPageToken"]
                assert (page["totalSize"], page["pageSize"]) == (7, 3)
                if not token:
                    break
            assert {task["id"] for task in found} == {task["id"] for task in made}
            times = [task["status"]["timestamp"] for task in found]
            assert times == sorted(times, reverse=True)
            assert all("artifacts" not in task for task in found)

            async def ids(**params):
                return {
                    task["id"]
                    for task in (await client.call("ListTasks", params))["result"]["tasks"]
                }

            assert await ids(contextId="c0") == {task["id"] for task in made[::3]}
            assert await ids(status="TASK_STATE_INPUT_REQUIRED") == {made[1]["id"], made[5]["id"]}
            assert await ids(statusTimestampAfter=times[0]) <= {
                task["id"] for task in found if task["status"]["timestamp"] == times[0]
            }
            assert await ids(statusTimestampAfter="2100-01-01T00:00:00Z") == set()
            with_artifacts = (
                await client.call(
                    "ListTasks", {"includeArtifacts": True, "status": "TASK_STATE_COMPLETED"}
                )
            )["result"]["tasks"]
            assert all(text_of(task) == "say" for task in with_artifacts)
            for wrong in (
                {"pageSize": 0},
                {"pageSize": 101},
                {"pageToken": "nonsense"},
                {"pageToken": "!!"},
                {"historyLength": -1},
            ):
                assert (await client.call("ListTasks", wrong))["error"]["code"] == -32602, wrong

    run(main())


def test_a_page_goes_on_where_the_last_one_ended_though_its_last_task_is_gone(run):
    async def main():
        app = a2a_app(scripted(many_ways))
        async with serving(app) as url, ByHand(url) as client:
            for _ in range(4):
                await client.send("say")
            page = (await client.call("ListTasks", {"pageSize": 2}))["result"]
            service = await app.service()
            before = [
                task["id"] for task in (await client.call("ListTasks", {}))["result"]["tasks"]
            ]
            await service.access.delete(service.keys.task(page["tasks"][1]["id"]))
            rest = (
                await client.call("ListTasks", {"pageSize": 2, "pageToken": page["nextPageToken"]})
            )["result"]["tasks"]
            assert [task["id"] for task in rest] == before[2:]

    run(main())


def test_tasks_are_forgotten_by_age_and_by_count_with_all_that_belongs_to_them(run):
    async def main():
        async with MemoryStore() as store:
            app = a2a_app(scripted(many_ways), store=store, auth=BearerTokens({"t": "s"}))
            async with serving(app) as url, ByHand(url, {"Authorization": "Bearer t"}) as client:
                tasks = [await client.send("say") for _ in range(5)]
                service = await app.service()
                assert await evict(service, 1_000, 3) == 2
                assert (await client.call("ListTasks", {}))["result"]["totalSize"] == 3
                assert (await client.get(tasks[0]["id"]))["error"]["code"] == -32001
                assert await evict(service, 1_000, 3) == 0
                service.now = lambda: __import__("time").time() + 2_000
                assert await evict(service, 1_000, 3) == 3
                assert [key for key in await store.keys() if "a2a" in key] == [], (
                    "contexts and sessions go with their last task"
                )

    run(main())


def test_a_task_that_is_worked_on_is_not_forgotten(run):
    gate = asyncio.Event()

    async def play(input, context):
        await gate.wait()
        yield "x"

    async def main():
        app = a2a_app(scripted(play))
        async with serving(app) as url, ByHand(url) as client:
            task = await client.send(configuration={"returnImmediately": True})
            assert await evict(await app.service(), 0.0, 0) == 0
            gate.set()
            await client.until(task["id"], "COMPLETED")

    run(main())


def test_a_message_that_is_sent_while_the_server_stops_is_told_so(run):
    begun = asyncio.Event()

    async def play(input, context):
        begun.set()
        await asyncio.Event().wait()
        yield

    async def main():
        async with serving(a2a_app(scripted(play))) as url:
            client = ByHand(url)
            waiting = asyncio.create_task(client.call("SendMessage", {"message": message()}))
            await begun.wait()
        answer = await asyncio.gather(waiting, return_exceptions=True)
        assert not isinstance(answer[0], dict) or answer[0]["error"]["code"] == -32603
        await client.http.aclose()

    run(main())
