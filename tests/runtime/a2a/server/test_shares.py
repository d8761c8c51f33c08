"""What one client may use of a served agent, and that the others do not suffer from it."""

import asyncio

import pytest

from offbook.runtime import MemoryStore, UsageError
from offbook.runtime.a2a import BearerTokens, ServerLimits, WebhookPolicy, a2a_app
from offbook.runtime.a2a.fair_slots import FairSlots
from offbook.runtime.a2a.tasks.eviction import evict
from offbook.runtime.a2a.tasks.keys import Owner
from tests.doubles.a2a import ByHand, message, scripted, serving, state_of, text_of
from tests.doubles.webhooks import Webhook

TOKENS = BearerTokens({"a": "alice", "b": "bob"})


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Held:
    """An agent that works until it is let go, and asks if it is told to."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.working = []

    async def __call__(self, input, context):
        if context.resume is not None and context.resume.was_interrupted:
            yield "answered"
            return
        word = input.messages[-1].text
        if word == "ask":
            yield context.interrupt("?")
        elif word != "quick":
            self.working.append(word)
            await self.gate.wait()
        yield word


@pytest.fixture
def shared(run):
    def shared(story, limits, **options):
        async def main():
            held = Held()
            app = a2a_app(scripted(held), auth=TOKENS, limits=limits, **options)
            async with (
                serving(app) as url,
                ByHand(url, bearer("a")) as alice,
                ByHand(url, bearer("b")) as bob,
            ):
                try:
                    await story(app, held, alice, bob)
                finally:
                    held.gate.set()

        return run(main())

    return shared


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def test_a_client_with_too_much_under_way_is_refused_with_429_and_others_are_not(shared):
    async def story(app, held, alice, bob):
        sent = [asyncio.create_task(alice.send("wait")) for _ in range(3)]
        await until(lambda: len(held.working) == 3)
        bodies = {
            "/a2a": {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {"message": message("one more")},
            },
            "/a2a/message:send": {"message": message("one more")},
            "/a2a/message:stream": {"message": message("one more")},
        }
        for path, body in bodies.items():
            answer = await alice.http.post(path, json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "5"), path
            assert "send this one again later" in answer.text
        former = {
            "kind": "message",
            "messageId": "x",
            "role": "user",
            "parts": [{"kind": "text", "text": "x"}],
        }
        answer = await alice.http.post(
            "/a2a",
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "message/send",
                "params": {"message": former},
            },
            headers={"A2A-Version": ""},
        )
        assert answer.status_code == 429
        assert text_of(await bob.send("quick")) == "quick"
        held.gate.set()
        assert [text_of(task) for task in await asyncio.gather(*sent)] == ["wait"] * 3
        assert text_of(await alice.send("quick")) == "quick", "what has ended does not count"
        service = await app.service()
        await until(lambda: not service._accepted)

    shared(story, ServerLimits(accepted=3))


def test_what_is_refused_or_fails_does_not_count(shared):
    async def story(app, held, alice, bob):
        for _ in range(5):
            assert "error" in await alice.send(taskId="none")
            task = await alice.send("quick")
            assert "error" in await alice.send("x", taskId=task["id"])
        asked = await alice.send("ask")
        assert text_of(await alice.send("yes", taskId=asked["id"])) == "answered"
        assert not (await app.service())._accepted

    shared(story, ServerLimits(accepted=2))


def test_a_client_cannot_take_all_places(shared):
    async def story(app, held, alice, bob):
        sent = [asyncio.create_task(alice.send("wait")) for _ in range(30)]
        await until(lambda: len(held.working) == 2)
        assert text_of(await bob.send("quick")) == "quick"
        assert len(held.working) == 2, "half of the places"
        held.gate.set()
        assert {state_of(task) for task in await asyncio.gather(*sent)} == {"COMPLETED"}
        slots = (await app.service()).slots
        await until(lambda: slots._taken == 0)
        assert (slots._taken_by, slots._waiting) == ({}, {})

    shared(story, ServerLimits(at_once=4))


def test_clients_take_turns_for_places(run):
    async def main():
        anna, ben = Owner("", "anna"), Owner("", "ben")
        slots, order = FairSlots(1, 1), []

        async def work(owner):
            if not slots.take_now(owner):
                await slots.wait(owner)
            order.append(owner.subject)
            await asyncio.sleep(0)
            slots.leave(owner)

        await asyncio.gather(*(work(owner) for owner in [anna] * 50 + [ben] * 3))
        assert order[:7] == ["anna", "anna", "ben", "anna", "ben", "anna", "ben"]
        assert len(order) == 53

    run(main())


@pytest.mark.parametrize("given", [False, True])
def test_who_gives_up_waiting_leaves_no_place_taken(run, given):
    async def main():
        anna = Owner("", "anna")
        slots = FairSlots(1, 1)
        assert slots.take_now(anna)
        place = slots.wait(anna)
        if given:
            slots.leave(anna)
        slots.give_up(anna, place)
        if not given:
            slots.leave(anna)
        assert slots.take_now(anna)
        waiting = slots.wait(anna)
        waiting.cancel()
        slots.leave(anna)
        slots.give_up(anna, waiting)
        assert slots.take_now(anna)

    run(main())


def test_a_task_that_waits_for_a_place_can_be_cancelled(shared):
    async def story(app, held, alice, bob):
        asked = await alice.send("ask")
        asyncio_task = asyncio.create_task(alice.send("wait"))
        await until(lambda: held.working)
        answer = asyncio.create_task(alice.send("yes", taskId=asked["id"]))
        service = await app.service()
        await until(lambda: service.slots._waiting)
        canceled = await alice.call("CancelTask", {"id": asked["id"]})
        assert state_of(canceled["result"]) == "CANCELED"
        await answer
        held.gate.set()
        await asyncio_task
        await until(lambda: service.slots._taken == 0)

    shared(story, ServerLimits(at_once=2, at_once_for_a_client=1))


def test_one_clients_flood_does_not_push_out_what_waits_for_another(shared):
    async def story(app, held, alice, bob):
        waiting = [await bob.send("ask") for _ in range(2)]
        ended = await bob.send("quick")
        own = await alice.send("ask")
        for _ in range(10):
            await alice.send("quick")
        service = await app.service()
        assert await evict(service, 1_000, 6) == 8
        for task in waiting:
            assert state_of(await bob.get(task["id"])) == "INPUT_REQUIRED"
            assert text_of(await bob.send("yes", taskId=task["id"])) == "answered"
        assert state_of(await bob.get(ended["id"])) == "COMPLETED"
        assert state_of(await alice.get(own["id"])) == "INPUT_REQUIRED", (
            "of one client's, what has ended goes first"
        )

    shared(story, ServerLimits())


def test_the_tasks_of_one_client_are_bounded(shared):
    async def story(app, held, alice, bob):
        for _ in range(5):
            await alice.send("quick")
        await bob.send("quick")
        assert await evict(await app.service(), 1_000, 100) == 2
        assert [
            (await one.call("ListTasks", {}))["result"]["totalSize"] for one in (alice, bob)
        ] == [3, 1]

    shared(story, ServerLimits(tasks=3))


def test_the_run_of_a_task_that_is_removed_while_it_waits_is_removed_too(run):
    async def main():
        async with MemoryStore() as store:
            app = a2a_app(scripted(Held()), store=store)
            async with serving(app) as url, ByHand(url) as client:
                await client.send("ask")
                service = await app.service()
                runner = service.runs._runner
                assert len(await runner.pending()) == 1
                assert await evict(service, 1_000, 0) == 1
                assert await runner.pending() == []
                assert await runner.runs() == []

    run(main())


def test_a_page_of_a_list_is_bounded_in_bytes(shared):
    async def story(app, held, alice, bob):
        made = [
            (await alice.send("quick", parts=[{"text": "quick"}], metadata={"pad": "x" * 3_000}))[
                "id"
            ]
            for _ in range(5)
        ]
        for number in range(5):
            await alice.send("ask", messageId=f"{number}" * 100)
        found, token, pages = [], "", 0
        while True:
            page = (await alice.call("ListTasks", {"pageToken": token, "includeArtifacts": True}))[
                "result"
            ]
            assert len(str(page)) < 8_000
            found += [task["id"] for task in page["tasks"]]
            pages += 1
            assert page["totalSize"] == 10
            token = page["nextPageToken"]
            if not token:
                break
        assert len(set(found)) == len(found) == 10
        assert set(made) <= set(found)
        assert pages >= 2

    shared(story, ServerLimits(page=1_500))


def test_webhooks_that_do_not_answer_hold_up_their_owners_only(run, monkeypatch):
    from offbook.runtime.a2a.push import outbox

    monkeypatch.setattr(outbox, "_AT_ONCE", 4)

    async def says(input, context):
        yield "said"

    async def main():
        held = asyncio.Event()
        async with Webhook(hold=held) as stuck, Webhook() as works:
            app = a2a_app(
                scripted(says),
                auth=TOKENS,
                webhooks=WebhookPolicy(allow_http=True, allow_private=True),
            )
            async with (
                serving(app) as url,
                ByHand(url, bearer("a")) as alice,
                ByHand(url, bearer("b")) as bob,
            ):
                for _ in range(10):
                    await alice.send(
                        configuration={"taskPushNotificationConfig": {"url": stuck.url}}
                    )
                await bob.send(configuration={"taskPushNotificationConfig": {"url": works.url}})
                await until(lambda: len(works.calls) >= 3)
                held.set()

    run(main())


@pytest.mark.parametrize(
    "limits",
    [{"accepted": 0}, {"at_once": True}, {"tasks": "many"}, {"values": 1.5}, {"page": None}],
)
def test_limits_that_are_none_are_refused(limits):
    with pytest.raises(UsageError, match=next(iter(limits))):
        ServerLimits(**limits)
