"""Runs and sessions in a cluster that is well: as they are in one process."""

import asyncio
from pathlib import Path

import pytest

from offbook.runtime import (
    CheckpointNotFound,
    Options,
    RunStatus,
    SessionBusy,
    SystemDraining,
    UsageError,
    keep_last,
)
from offbook.runtime.cluster import ClusterBusy
from offbook.runtime.cluster.host.runs import HostRuns
from tests.doubles.cluster import cluster_of


def texts(events):
    return [event.text for event in events]


def test_a_run_is_awaited_or_its_events_are_read(within):
    async def story():
        async with cluster_of() as (cluster, _):
            result = await cluster.runner.query("2 hi")
            run = cluster.runner.query("2 hi")
            events = [event async for event in run]
            return result, events, await run, run

    result, events, same, run = within(story())
    assert result.text == "done: 2 hi"
    assert (
        texts(result.events)
        == texts(events)
        == texts(same.events)
        == ["0: 2 hi", "1: 2 hi", "done: 2 hi"]
    )
    assert [event.seq for event in events] == [1, 2, 3]
    assert {event.run_id for event in events} == {run.id}
    assert run.status is RunStatus.COMPLETED


def test_a_session_is_one_conversation_from_whichever_client(within):
    async def story():
        async with cluster_of() as (cluster, _):
            await cluster.session("ada").query("hello")
            await cluster.session("ada", policy=keep_last(4)).query(
                "again", session_values={"n": 1}
            )
            await cluster.session("ada", policy="tests.programs.cluster_shop:last_two").query(
                "more"
            )
            said = [message.text for message in await cluster.session("ada").history()]
            values = await cluster.session("ada").values()
            await cluster.session("ada").clear()
            return said, values, await cluster.session("ada").history()

    said, values, cleared = within(story())
    assert said == ["hello", "done: hello", "again", "done: again", "more", "done: more"] or said[
        ::3
    ][:1] == ["hello"]
    assert [text for text in said if not text[0].isdigit()] == [
        "hello",
        "done: hello",
        "again",
        "done: again",
        "more",
        "done: more",
    ]
    assert values == {"n": 1}
    assert cleared == ()


def test_g14_messages_of_one_client_to_one_session_are_worked_on_in_the_order_sent(within):
    async def story():
        async with cluster_of() as (cluster, machines):
            machines.fault = lambda host, number: ("pass", "late", "twice")[number % 3]
            runs = []
            for number in range(30):
                runs.append(
                    cluster.session("ada").query(
                        f"m{number} " + "x" * (5_000 if number % 5 == 0 else 1)
                    )
                )
                if number % 4 == 0:
                    await asyncio.sleep(0)
            await asyncio.gather(*(awaited(run) for run in runs))
            return [
                message.text.split()[0]
                for message in await cluster.session("ada").history()
                if message.role == "user"
            ]

    assert within(story()) == [f"m{number}" for number in range(30)]


@pytest.fixture(params=[SystemDraining, CheckpointNotFound], ids=["draining", "taken back"])
def sent_on_once(request, monkeypatch):
    """Have the host send a run on, once: it is drained, or another one was before the run began."""

    def once(run_id):
        begin, sent_on = HostRuns._begin, []

        def _begin(self, play):
            if play.run_id == run_id and play.request.kind == "run" and not sent_on:
                sent_on.append(run_id)
                raise request.param("as asked")
            return begin(self, play)

        monkeypatch.setattr(HostRuns, "_begin", _begin)
        return sent_on

    return once


def test_g14_messages_behind_one_that_is_sent_on_do_not_overtake_it(within, sent_on_once):
    sent_on = sent_on_once("m7")

    async def story():
        async with cluster_of(1) as (cluster, _):
            runs = []
            for number in range(60):
                runs.append(cluster.session("ada").query(f"m{number}", run_id=f"m{number}"))
                if number % 3 == 0:
                    await asyncio.sleep(0.002)
            await asyncio.gather(*(awaited(run) for run in runs))
            history = await cluster.session("ada").history()
            return [message.text for message in history if message.role == "user"]

    assert within(story()) == [f"m{number}" for number in range(60)]
    assert sent_on == ["m7"]


def test_g17_a_follower_of_a_run_that_is_sent_on_before_it_begins_follows_it(within, sent_on_once):
    sent_on = sent_on_once("r")

    async def story():
        async with cluster_of(1) as (cluster, _):
            run = cluster.runner.query("2 hi", run_id="r")
            followed = [cluster.follow("r") for _ in range(3)]
            return [(await one).text for one in (run, *followed)]

    assert within(story()) == ["done: 2 hi"] * 4
    assert sent_on == ["r"]


async def awaited(run):
    return await run


def test_a_batch_that_is_lost_is_sent_again_and_its_runs_begin_once(within, shop):
    async def story():
        async with cluster_of(1) as (cluster, machines):
            await cluster.runner.query("hi")
            lost = []
            machines.fault = lambda host, number: (
                "lose" if not lost and not lost.append(number) else "pass"
            )
            return await asyncio.gather(
                *(
                    awaited(cluster.runner.query("2 again", run_id=f"r{number}"))
                    for number in range(3)
                )
            )

    assert [one.text for one in within(story())] == ["done: 2 again"] * 3
    assert len(shop()) == len(set(shop()))


def test_g15_a_run_id_begins_once_however_often_it_is_asked_for(within, shop):
    async def story():
        async with cluster_of() as (cluster, _):
            runs = [cluster.runner.query("3 hi", run_id="order-7") for _ in range(4)]
            results = await asyncio.gather(*map(awaited, runs))
            later = await cluster.runner.query("3 hi", run_id="order-7")
            followed = await cluster.follow("order-7")
            with pytest.raises(UsageError, match="other messages"):
                await cluster.runner.query("4 other", run_id="order-7")
            return [one.text for one in (*results, later, followed)]

    assert within(story()) == ["done: 3 hi"] * 6
    assert shop() == [("order-7", str(number)) for number in range(3)]


def test_what_was_never_begun_cannot_be_followed(within):
    async def story():
        async with cluster_of(1) as (cluster, _):
            with pytest.raises(CheckpointNotFound):
                await cluster.follow("nothing")

    within(story())


def test_a_run_is_cancelled_by_its_caller_and_by_leaving_its_events(within, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.05")

    async def story():
        async with cluster_of(1) as (cluster, _):
            run = cluster.runner.query("90 slow")
            async for _event in run:
                break
            cancelled = await run
            other = cluster.runner.query("90 slow")
            async for _event in other:
                assert await other.cancel()
            third = cluster.runner.query("90 slow")
            await third.aclose()
            return cancelled.status, (await other).status, third.status

    assert within(story()) == (RunStatus.CANCELLED,) * 3


def test_a_busy_session_may_refuse(within, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.05")

    async def story():
        async with cluster_of(1) as (cluster, _):
            first = cluster.session("ada").query("20 slow")
            async for _event in first:
                with pytest.raises(SessionBusy):
                    (await cluster.session("ada", busy="reject").query("now")).raise_for_error()
                break

    within(story())


def test_a_host_that_has_as_much_to_do_as_it_may_says_when_to_come_again(within, monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.05")

    async def story():
        async with cluster_of(1, limits={"max_runs": 2, "max_waiting": 1}) as (cluster, _):
            runs = [cluster.session("ada").query("5 slow") for _ in range(3)]
            runs.append(cluster.runner.query("5 slow"))
            results = await asyncio.gather(*map(awaited, runs), return_exceptions=True)
            assert isinstance(results[2], ClusterBusy)
            assert results[2].retry_after > 0
            return [one.text for index, one in enumerate(results) if index != 2]

    assert within(story()) == ["done: 5 slow"] * 3


def test_events_come_as_fast_as_they_are_read_and_no_faster(within):
    async def story():
        async with cluster_of(1, factory="tests.programs.cluster_shop:streams") as (
            cluster,
            machines,
        ):
            run = cluster.runner.query("20000", streaming=True)
            seen, ahead = 0, 0
            async for event in run:
                seen += event.delta is not None
                if seen == 300:
                    (machine,) = machines.by_name.values()
                    await asyncio.sleep(0.2)
                    play = next(iter(machine.life._host.runs._plays.values()))
                    ahead = play.sent - seen
            return seen, ahead, (await run).text

    seen, ahead, text = within(story())
    assert seen == 20_000
    assert 0 < ahead < 5_000
    assert text == "whole"


def test_what_cannot_travel_is_refused_at_once(within):
    class Own(Options):
        pass

    async def story():
        async with cluster_of(1) as (cluster, _):
            for given in (
                {"context": object()},
                {"session_values": {"a": object()}},
                {"options": Own(a=1)},
                {"options": Options(a=object())},
            ):
                with pytest.raises(
                    UsageError, match=r"can be sent to another process|another machine|options="
                ):
                    cluster.runner.query("hi", **given)
            with pytest.raises(UsageError, match="module:function"):
                cluster.session("ada", policy=lambda messages: messages)
            with pytest.raises(UsageError, match="accepts only names"):
                await cluster.session("ada", policy="os:getcwd").query("hi")
            with pytest.raises(UsageError, match="timeout"):
                cluster.runner.query("hi", timeout=0)
            return (
                await cluster.runner.query("hi", context={"tenant": 7}, options=Options(a=1))
            ).text

    assert within(story()) == "done: hi"


def test_runs_that_are_not_kept_bear_the_id_that_their_client_knows(within):
    async def story():
        async with cluster_of(1, factory="tests.programs.cluster_shop:unkept") as (cluster, _):
            run = cluster.runner.query("2 hi", run_id="mine")
            return [event.run_id async for event in run], (await run).text

    assert within(story()) == (["mine"] * 3, "done: 2 hi")


def test_the_example_of_a_cluster_is_one(within, monkeypatch, tmp_path):
    """What it does on Ray, without Ray. Its manifests for Kubernetes: test_kuberay.py."""
    folder = Path(__file__).parents[3] / "examples" / "cluster"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def story():
        async with cluster_of(factory="shop:host") as (cluster, _):
            return [
                (await cluster.session("user-42").query(text)).text
                for text in ("Hello!", "And tomorrow?")
            ]

    assert within(story()) == ["You said: Hello!", "You said: And tomorrow?"]
