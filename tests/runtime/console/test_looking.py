"""What the console's page is shown: runs, steps, values, saves, sessions; and what is answered
where there is nothing to show.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Sequential
from offbook.runtime import ActorSystem, MemoryStore, Runner, ScriptedModel, ToolCalls
from tests.doubles.console import Asking, desk, events_of, refunding, runner_of
from tests.doubles.left_runs import Counts, lose_all


def test_the_list_of_runs_is_a_page_of_the_newest_and_goes_on_behind_it(run):
    async def main():
        runner = runner_of(desk(*["hello"] * 5))
        for number in range(5):
            await runner.query(
                "q", run_id=f"r{number}", labels={"tenant": "acme" if number % 2 else "other"}
            )
        async with Asking(runner) as ask:
            first = await ask.get("runs", limit=2)
            rest = await ask.get("runs", limit=10, after=first["runs"][-1]["id"])
            labelled = await ask.get("runs", label="tenant=acme")
            failed = await ask.get("runs", status="failed,stuck")
        return first, rest, labelled, failed

    first, rest, labelled, failed = run(main())
    assert ([one["id"] for one in first["runs"]], first["more"]) == (["r4", "r3"], True)
    assert ([one["id"] for one in rest["runs"]], rest["more"]) == (["r2", "r1", "r0"], False)
    assert [one["id"] for one in labelled["runs"]] == ["r3", "r1"]
    assert failed["runs"] == []


def test_a_run_is_shown_with_its_events_steps_values_and_what_it_was_asked(run):
    async def main():
        runner = runner_of(desk("hello"))
        await runner.query(
            "how are you?", run_id="r", session_values={"name": "Ada", "odd": {1, 2}}
        )
        async with Asking(runner) as ask:
            return [
                await ask.get(f"run{part}", id="r")
                for part in ("", "/steps", "/values", "/saves", "/asked", "/answers")
            ], await ask.streamed("run/events", method="GET", id="r")

    (info, steps, values, saves, asked, answers), streamed = run(main())
    assert (info["id"], info["agent"], info["status"], info["can_go_on"]) == (
        "r",
        "Desk",
        "completed",
        True,
    )
    assert [change["kind"] for change in steps["steps"][0]["changes"]] == ["start"]
    assert "hello" in str(steps["steps"])
    assert values == {"name": "Ada", "odd": [1, 2]}
    assert (saves, answers) == ([], [])
    assert ([message["text"] for message in asked["messages"]], asked["before"]) == (
        ["how are you?"],
        0,
    )
    assert [event["message"]["text"] for event in events_of(streamed)] == ["hello"]
    assert (streamed[0][2], streamed[-1][0], streamed[-1][1]["status"]) == (1, "end", "completed")


def test_events_go_on_behind_the_last_one_that_the_browser_has(run):
    async def main():
        runner = runner_of(
            Sequential(name="Both", sub_agents=[desk("one", name="A"), desk("two", name="B")])
        )
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            behind = await ask.streamed("run/events", method="GET", id="r", after=1)
            ask.client.headers["Last-Event-ID"] = "1"
            again = await ask.streamed("run/events", method="GET", id="r")
            ask.client.headers["Last-Event-ID"] = "77"
            beyond = await ask.streamed("run/events", method="GET", id="r")
        return behind, again, beyond

    behind, again, beyond = run(main())
    assert (
        [event["agent"] for event in events_of(behind)]
        == [event["agent"] for event in events_of(again)]
        == ["B"]
    )
    assert [kind for kind, *_ in beyond] == ["end"]


def test_a_run_of_another_agent_can_be_looked_at_but_not_gone_on_with(run):
    async def main():
        store = MemoryStore()
        await runner_of(refunding(name="Other"), store).query("q", run_id="r")
        async with ActorSystem() as system, Asking(runner_of(desk(), store, system=system)) as ask:
            info = await ask.get("run", id="r")
            streamed = await ask.streamed("run/events", method="GET", id="r")
            refused = await ask.post(
                "run/answer", 400, id="r", interrupt=info["waiting"][0]["id"], kind="approve"
            )
            answers = await ask.get("run/answers", id="r")
            await ask.post("run/forget", id="r")
            return info, streamed, refused, answers, await ask.get("runs")

    info, streamed, refused, answers, left = run(main())
    assert (info["status"], info["can_go_on"]) == ("interrupted", False)
    assert [event["kind"] for event in events_of(streamed)] == ["message", "interrupted"]
    assert "belongs to the agent 'Other'" in refused["error"]
    assert answers == left["runs"] == []


@pytest.mark.parametrize(
    "path",
    ["run", "run/events", "run/steps", "run/values", "run/saves", "run/answers", "run/asked"],
)
def test_an_unknown_run_is_not_found(run, path):
    async def main():
        async with Asking(runner_of(desk())) as ask:
            return (
                await ask.get(path, 404, id="nothing"),
                await ask.get(path, 400),
                await ask.get(path, 400, id="x" * 2001),
            )

    unknown, without, long = run(main())
    assert "no run 'nothing'" in unknown["error"]
    assert "id must be the id of a run" in without["error"]
    assert "2,001 characters" in long["error"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"status": "sleeping"}, "status must be one or more of"),
        ({"limit": "many"}, "must be an integer from 0 to"),
        ({"limit": "501"}, "0 to 500"),
        ({"label": "tenant"}, "NAME=VALUE"),
        ({"label": "x" * 70 + "=y"}, "1 to 64 characters"),
        ({"agent": "x" * 2001}, "must have at most"),
    ],
)
def test_what_is_asked_for_wrongly_is_named(run, parameters, words):
    async def main():
        async with Asking(runner_of(desk())) as ask:
            return await ask.get("runs", 400, **parameters)

    assert words in run(main())["error"]


def test_a_page_behind_a_run_that_is_gone_says_so(run):
    async def main():
        async with Asking(runner_of(desk())) as ask:
            return await ask.get("runs", 404, after="gone")

    assert "no longer listed" in run(main())["error"]


class Plain:
    """A store that keeps values and knows of no list."""

    def __init__(self):
        self.values = {}

    def get(self, key):
        return self.values.get(key)

    def set(self, key, value):
        self.values[key] = value


@pytest.mark.parametrize(("store", "words"), [(None, "has no store"), (Plain(), "Plain")])
def test_without_a_list_of_runs_the_rest_is_shown_and_why(run, store, words):
    async def main():
        runner = Runner(desk("hello"), store=store)
        async with Asking(runner) as ask:
            return (
                await ask.get("now"),
                await ask.get("runs", 400),
                await ask.streamed("try", text="q"),
            )

    now, runs, tried = run(main())
    assert words in now["problem"]
    assert words in runs["error"]
    assert tried[-1][1]["text"] == "hello"


def test_a_run_whose_steps_are_not_recorded_says_so(run):
    async def main():
        runner = runner_of(desk("hello"), durability="interrupt", keep="all")
        await runner.query("q", run_id="r")
        async with Asking(runner) as ask:
            return (
                await ask.get("run/steps", id="r"),
                await ask.get("run/asked", 404, id="r"),
                await ask.streamed("run/events", method="GET", id="r"),
            )

    steps, asked, streamed = run(main())
    assert (steps["steps"], steps["kept"]) == ([], False)
    assert "is not stored" in asked["error"] or "the steps of run" in asked["error"]
    assert [event["message"]["text"] for event in events_of(streamed)] == ["hello"]


def test_now_counts_runs_and_shows_the_system(run):
    async def main():
        async with ActorSystem("shop") as system:
            runner = runner_of(refunding(), system=system)
            await runner.query("q", run_id="waits")
            async with Asking(runner) as ask:
                return await ask.get("now"), await ask.get("stats")

    now, stats = run(main())
    assert (now["runs"]["interrupted"], now["runs"]["completed"], now["more"]) == (1, 0, [])
    assert [one["id"] for one in now["waiting"]] == ["waits"]
    assert now["recent"]["begun"] == 1
    assert stats["system"]["name"] == "shop"
    assert stats["runs"] == now["runs"]


def test_a_run_whose_process_is_gone_is_not_at_work(run):
    async def main():
        store, gate, reached = MemoryStore(), asyncio.Event(), asyncio.Event()

        class Gate:
            async def wait(self):
                reached.set()
                await gate.wait()

        async def shown(ask, run_id):
            now = await ask.get("now")
            runs = {one["id"]: one["is_lost"] for one in (await ask.get("runs"))["runs"]}
            return (
                [[one["id"] for one in now[name]] for name in ("working", "lost")],
                runs[run_id],
                (await ask.get("run", id=run_id))["is_lost"],
            )

        async with ActorSystem() as system:
            runner = Runner(Counts(Gate()), system=system, store=store, durability="step")
            begun = runner.query("go")
            await reached.wait()
            found = []
            for lose in (False, True):
                if lose:
                    await lose_all(system, store)
                async with Asking(runner) as ask:
                    found.append(await shown(ask, begun.id))
            begun.cancel()
            return found == [([[begun.id], []], False, False), ([[], [begun.id]], True, True)]

    assert run(main())


def test_many_who_look_cost_one_look(run):
    async def main():
        class Counting(MemoryStore):
            looks = 0

            async def run_entries(self, query):
                type(self).looks += 1
                return await super().run_entries(query)

        async with Asking(runner_of(desk(), Counting())) as ask:
            await ask.get("now")
            once = Counting.looks
            for _ in range(5):
                await ask.get("now")
            return once, Counting.looks

    once, after = run(main())
    assert once == after


def test_no_page_reads_more_of_a_store_than_its_bound(run):
    class Noting(MemoryStore):
        def __init__(self):
            super().__init__()
            self.limits = []

        async def run_entries(self, query):
            self.limits.append(query.limit)
            return await super().run_entries(query)

        async def keys(self, prefix=""):
            raise AssertionError("all keys of a store are too many")

    async def main():
        store = Noting()
        async with Asking(runner_of(desk("hello"), store)) as ask:
            await ask.streamed("session/say", id="s", text="q")
            for path in ("now", "runs", "pending", "sessions"):
                await ask.get(path)
            await ask.get("runs", limit=500)
        return store.limits

    assert max(run(main())) <= 1_001


def test_a_session_is_shown_from_its_end_and_goes_back(run):
    async def main():
        runner = runner_of(ChatModelAgent(name="Desk", model=ScriptedModel(["hello"] * 60)))
        session = runner.session("ada/öl?")
        for number in range(60):
            await session.query(f"question {number}", session_values={"count": number})
        async with Asking(runner) as ask:
            last = await ask.get("session", id="ada/öl?")
            return (
                last,
                await ask.get("session", id="ada/öl?", before=last["first"]),
                await ask.get("sessions"),
                await ask.get("session", 400),
            )

    last, before, sessions, without = run(main())
    assert (last["total"], last["first"], len(last["messages"]), last["values"]) == (
        120,
        20,
        100,
        {"count": 59},
    )
    assert [message["text"] for message in before["messages"][:2]] == ["question 0", "hello"]
    assert (before["first"], before["values"]) == (0, {})
    assert [(one["id"], one["runs"]) for one in sessions["sessions"]] == [("ada/öl?", 60)]
    assert "id of a session" in without["error"]


def test_each_message_of_a_session_has_its_agents_name(run):
    async def main():
        runner = runner_of(
            Sequential(
                name="Both", sub_agents=[desk("one", "one", name="A"), desk("two", "two", name="B")]
            )
        )
        await runner.session("s").query("first")
        await runner.session("s").query("second")
        single = runner_of(desk(ToolCalls(refund={"order": "A-7", "amount": 1})), runner.store)
        await single.session("t").query("refund")
        async with Asking(runner) as ask:
            return [
                [
                    (one["role"], one.get("agent"))
                    for one in (await ask.get("session", id=name))["messages"]
                ]
                for name in ("s", "t")
            ]

    both, single = run(main())
    turn = [("user", None), ("assistant", "A"), ("assistant", "B")]
    assert both == turn * 2
    assert single == [("user", None), ("assistant", "Desk")]


def test_what_is_very_long_is_cut_short(run):
    async def main():
        runner = runner_of(desk("x" * 200_000))
        await runner.query(
            "q",
            run_id="r",
            session_values={"large": "y" * 200_000, "many": list(range(5_000)), "number": 2**70},
        )
        async with Asking(runner) as ask:
            return await ask.get("run/values", id="r"), events_of(
                await ask.streamed("run/events", method="GET", id="r")
            )

    values, (event,) = run(main())
    assert len(values["large"]) < 60_000
    assert values["large"].endswith("(150,000 characters more)")
    assert (len(values["many"]), values["number"]) == (1_001, str(2**70))
    assert len(event["message"]["text"]) < 60_000


def test_half_a_character_ends_no_stream(run):
    async def main():
        runner = runner_of(desk("half \ud83d of it"))
        await runner.query("q", run_id="r", session_values={"\ud83d": "\ud83d"})
        async with Asking(runner) as ask:
            return await ask.streamed("run/events", method="GET", id="r"), await ask.get(
                "run/values", id="r"
            )

    streamed, values = run(main())
    assert [event["message"]["text"] for event in events_of(streamed)] == ["half \ufffd of it"]
    assert (streamed[-1][0], values) == ("end", {"?": "?"})


def test_more_pages_than_there_is_room_for_are_refused_before_anything_is_begun(run):
    async def main():
        runner = runner_of(desk("hello"))
        async with Asking(runner) as ask:
            feeds = ask.app.feeds
            streams = [feeds.stream(runner.attach("r")) for _ in range(64)]
            waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
            await asyncio.sleep(0)
            refused = await ask.post("session/say", 503, id="s", text="q")
            feeds.close()
            await asyncio.gather(*waiting, return_exceptions=True)
            for stream in streams:
                await stream.aclose()
            return refused, await ask.get("runs")

    refused, runs = run(main())
    assert "64 pages" in refused["error"]
    assert runs["runs"] == []


def test_a_run_that_waits_for_what_this_process_does_not_know_is_listed_all_the_same(run):
    from offbook.runtime.stores import RunEntry

    async def main():
        store = MemoryStore()
        await store.commit(
            None,
            [
                RunEntry(
                    "odd", "Desk", "", "interrupted", 1_700_000_000_000_000, (), b"\x00\x01", None
                )
            ],
        )
        async with Asking(runner_of(desk(), store)) as ask:
            return await ask.get("runs")

    (found,) = run(main())["runs"]
    assert (found["id"], found["status"]) == ("odd", "interrupted")
    assert "cannot be read here" in found["error"]
