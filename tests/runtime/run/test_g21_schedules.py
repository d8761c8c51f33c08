"""Schedules (G21): each occurrence starts one run, once, in whichever process attends."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, MemoryStore, Message, Runner, UsageError
from offbook.runtime.durability.timers import due_timers
from offbook.runtime.run import schedules
from offbook.runtime.run.schedules import ScheduleInfo, new_schedule
from offbook.runtime.stores import RunQuery
from offbook.runtime.stores.run_entries import TIMER
from tests.doubles.snapshots import Snapshots

HOUR = timedelta(hours=1)


class Model:
    def __init__(self, gate=None):
        self.heard, self.gate = [], gate

    async def generate(self, request):
        self.heard.append(request.messages[-1].text)
        if self.gate is not None:
            await self.gate.wait()
        return Message.assistant("written")


def runner_on(store, system, model=None, **options):
    return Runner(
        ChatModelAgent(name="A", model=model or Model()),
        system=system,
        store=store,
        keep="all",
        **options,
    )


async def make_due(runner, name, late=timedelta(0)):
    """Move the next occurrence of a schedule to now, or to some time ago."""
    stored = runner._schedules(runner._access)
    (info,) = [one for one in await runner.schedules() if one.name == name]
    due = info.replace(next=(datetime.now(info.next.tzinfo) - late).replace(microsecond=0))
    await runner.unschedule(name)
    return await stored.put(due)


async def run_ids(runner):
    return sorted(one.id for one in await runner.runs())


async def acted_on(runner, count):
    async with asyncio.timeout(20):
        while len(await runner.runs("completed")) < count:
            await asyncio.sleep(0.01)


def test_g21_an_occurrence_starts_one_run_that_bears_its_time(run, store):
    async def main():
        async with ActorSystem() as system:
            model = Model()
            runner = runner_on(store, system, model)
            info = await runner.schedule("report", every=HOUR, text="Write it.")
            assert await runner.schedules() == [info]
            due = await make_due(runner, "report")
            async with runner.attending(every=0.05):
                await acted_on(runner, 1)
            assert await run_ids(runner) == [f"report@{due.next.isoformat()}"]
            assert model.heard == ["Write it."]
            (after,) = await runner.schedules()
            assert after.next == due.next + HOUR
            assert after.last_run_id == due.next_run_id
            assert await runner.unschedule("report")
            assert not await runner.unschedule("report")
            assert await store.run_entries(RunQuery((TIMER,))) == []

    run(main())


def test_g21_an_occurrence_in_a_session_is_a_turn_of_it(run, store):
    async def main():
        async with ActorSystem() as system:
            runner = runner_on(store, system)
            await runner.schedule(
                "report",
                cron="0 9 * * MON-FRI",
                timezone="Europe/Berlin",
                session="team",
                text="Go.",
            )
            due = await make_due(runner, "report")
            async with runner.attending(every=0.05):
                await acted_on(runner, 1)
            history = await runner.session("team").history()
            assert [one.text for one in history] == ["Go.", "written"]
            assert (await runner.info(due.next_run_id)).session_id == "team"

    run(main())


def test_g21_a_service_that_starts_again_leaves_an_equal_schedule_as_it_is(run, store):
    async def main():
        async with ActorSystem() as system:
            runner = runner_on(store, system)
            first = await runner.schedule("report", every=HOUR, text="Go.")
            assert await runner.schedule("report", every=HOUR, text="Go.") == first
            other = await runner.schedule("report", every=2 * HOUR, text="Go.")
            assert await runner.schedules() == [other]
            assert len(await store.run_entries(RunQuery((TIMER,)))) == 1

    run(main())


@pytest.mark.parametrize(("missed", "count"), [("once", 1), ("skip", 0), ("all", 4)])
def test_g21_occurrences_that_nobody_attended_are_made_up_for_as_it_says(
    run, store_of, missed, count
):
    async def main():
        async with ActorSystem() as system:
            runner = runner_on(store_of("sqlite"), system)
            await runner.schedule("report", every=HOUR, text="Go.", missed=missed)
            due = await make_due(runner, "report", late=3 * HOUR + timedelta(minutes=5))
            async with runner.attending(every=0.02), asyncio.timeout(20):
                while (await runner.schedules())[0].next <= datetime.now(UTC):
                    await asyncio.sleep(0.01)
            await acted_on(runner, count)
            assert await run_ids(runner) == [
                f"report@{(due.next + number * HOUR).isoformat()}" for number in range(count)
            ]
            assert (await runner.schedules())[0].next == due.next + 4 * HOUR

    run(main())


@pytest.mark.parametrize(("overlap", "count"), [("skip", 1), ("queue", 2)])
def test_g21_an_occurrence_during_the_last_one_is_skipped_or_started(run, store_of, overlap, count):
    async def main():
        gate = asyncio.Event()
        async with ActorSystem() as system:
            runner = runner_on(store_of("sqlite"), system, Model(gate))
            await runner.schedule("report", every=HOUR, text="Go.", missed="all", overlap=overlap)
            await make_due(runner, "report", late=HOUR + timedelta(minutes=5))
            async with runner.attending(every=0.02), asyncio.timeout(20):
                while (await runner.schedules())[0].next <= datetime.now(UTC):
                    await asyncio.sleep(0.01)
                assert len(await runner.runs()) == count
                gate.set()
                await acted_on(runner, count)

    run(main())


def test_g21_several_processes_attend_and_each_occurrence_is_one_run(run, store_of):
    async def main():
        async with ActorSystem() as system:
            model = Model()
            runners = [runner_on(store_of("sqlite", "same"), system, model) for _ in range(3)]
            await runners[0].schedule(
                "report", every=HOUR, text="Go.", missed="all", overlap="queue"
            )
            await make_due(runners[0], "report", late=9 * HOUR + timedelta(minutes=5))
            async with (
                runners[0].attending(every=0.02),
                runners[1].attending(every=0.02),
                runners[2].attending(every=0.02),
            ):
                await acted_on(runners[0], 10)
            assert len(await runners[0].runs()) == 10
            assert model.heard == ["Go."] * 10

    run(main())


def test_g21_an_occurrence_is_one_run_whenever_the_process_ends(run):
    """From what is in the store after each step, another process acts on it."""

    async def main():
        store = Snapshots()
        async with ActorSystem() as system:
            runner = runner_on(store, system, durability="step")
            await runner.schedule("report", every=HOUR, text="Go.")
            due = await make_due(runner, "report")
            before = len(store.taken)
            rows = [row for row, *_ in store._runs._entries.values() if row.status == TIMER]
            async with runner.attending(every=0.02):
                await acted_on(runner, 1)
                async with asyncio.timeout(20):
                    while (await runner.schedules())[0].next == due.next:
                        await asyncio.sleep(0.001)
        for _, content in store.taken[before:]:
            left = Snapshots(content)
            if (await runner_on(left, None).schedules())[0].next == due.next:
                await left.commit(None, rows)  # a snapshot has no rows but those of open runs
            async with ActorSystem() as system:
                runner = runner_on(left, system, durability="step")
                async with runner.attending(every=0.02, recover_every=600.0), asyncio.timeout(20):
                    while (await runner.schedules())[0].next == due.next:
                        await asyncio.sleep(0.001)
                    while await runner.runs(["running", "pending"]):
                        await asyncio.sleep(0.001)
                assert await due_timers(runner._access, "A") == []
                assert {one.id for one in await runner.runs()} <= {due.next_run_id}

    run(main())


def times(cron, zone, after, count):
    """The next occurrences after a local time."""
    info = ScheduleInfo(
        "x", "t", cron, None, zone, None, "once", "skip", after.replace(tzinfo=ZoneInfo(zone))
    )
    found = []
    for _ in range(count):
        at = info.after(info.next)
        info = info.replace(next=at)
        found.append(at.isoformat())
    return found


def test_g21_a_local_time_that_does_not_exist_fires_after_the_gap_and_a_double_one_once():
    assert times("30 2 * * *", "Europe/Berlin", datetime(2026, 3, 28, 3), 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    assert times("30 2 * * *", "Europe/Berlin", datetime(2026, 10, 24, 3), 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


@given(
    start=st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
    every=st.timedeltas(timedelta(seconds=1), timedelta(days=90)),
    later=st.timedeltas(timedelta(0), timedelta(days=400)),
)
@settings(deadline=None)
def test_g21_times_at_a_distance_stay_on_their_grid(start, every, later):
    info = ScheduleInfo("x", "t", None, every, "UTC", None, "once", "skip", start)
    following = info.after(start + later)
    assert following > start + later
    assert following - every <= start + later
    assert (following - start) % every == timedelta(0)


@pytest.mark.parametrize("day", [datetime(2026, 3, 28, 23), datetime(2026, 10, 24, 23)])
def test_g21_times_at_a_distance_do_not_heed_that_clocks_are_changed(day):
    zone = ZoneInfo("Europe/Berlin")
    start = day.replace(tzinfo=UTC)
    info = ScheduleInfo(
        "x", "t", None, HOUR, "Europe/Berlin", None, "all", "skip", start.astimezone(zone)
    )
    for hours in range(1, 6):
        info = info.passed(start)
        assert info.next.astimezone(UTC) == start + hours * HOUR


def test_bad_input_of_schedules_is_told(run, monkeypatch):
    for wrong, says in (
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "every day"}, "five fields"),
        ({}, "either cron= or every="),
        ({"cron": "* * * * *", "every": HOUR}, "not both"),
        ({"every": timedelta(0)}, "at least a second"),
        ({"every": 60}, "must be a timedelta"),
        ({"every": HOUR, "timezone": "Mars/Base"}, "'Europe/Berlin'"),
        ({"every": HOUR, "missed": "never"}, "'once' or 'skip' or 'all'"),
        ({"every": HOUR, "overlap": "twice"}, "'skip' or 'queue'"),
        ({"every": HOUR, "text": ""}, "text must be"),
        ({"every": HOUR, "name": ""}, "name must be"),
    ):
        arguments = {
            "name": "report",
            "text": "Go.",
            "cron": None,
            "every": None,
            "timezone": "UTC",
            "session_id": None,
            "missed": "once",
            "overlap": "skip",
        }
        with pytest.raises(UsageError, match=says):
            new_schedule(**arguments | wrong)

    async def main():
        runner = runner_on(MemoryStore(), None, durability="none")
        with pytest.raises(UsageError, match="must record its runs"):
            await runner.schedule("report", every=HOUR, text="Go.")
        with pytest.raises(UsageError, match="schedule"):
            await Runner(ChatModelAgent(name="A", model=Model())).schedule(
                "report", every=HOUR, text="Go."
            )

        def without_cronsim(cron, after):
            raise ModuleNotFoundError(name="cronsim")

        monkeypatch.setattr(schedules, "_times", without_cronsim)
        with pytest.raises(UsageError, match=r"offbook\[schedules\]"):
            await runner_on(MemoryStore(), None).schedule("report", cron="* * * * *", text="Go.")

    run(main())
