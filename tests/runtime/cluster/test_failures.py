"""What fails in a cluster, and what happens then: the rows of the failure matrix of
docs/guides/scaling.md, without Ray.
"""

import asyncio
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest

from offbook.runtime import AgentEvent, MessageDelta, ModelRetry, RunStatus
from offbook.runtime.cluster import Cluster, ClusterError, HostLost
from tests.doubles.cluster import Machines, cluster_of

UNKEPT = "tests.programs.cluster_shop:unkept"


@pytest.fixture(autouse=True)
def slow_steps(monkeypatch):
    monkeypatch.setenv("STEP_SECONDS", "0.02")


async def killed_in_the_middle(cluster, machines, run, **how):
    """The texts of a run whose host is killed after its third event, and its longest pause."""
    texts, seqs, stood = [], [], 0.0
    async for event in run:
        texts.append(event.text)
        seqs.append(event.seq)
        if len(texts) == 3:
            await asyncio.to_thread(machines.kill, machines.by_name[run.host], **how)
            stood = time.monotonic()
        elif len(texts) == 4:
            stood = time.monotonic() - stood
    assert seqs == list(range(1, len(seqs) + 1)), "no number twice, and none left out"
    return texts, stood


@pytest.mark.parametrize("again", [True, False], ids=["started again", "not started again"])
@pytest.mark.parametrize("session", [None, "ada"])
def test_g16_a_run_goes_on_elsewhere_when_its_host_is_killed(within, shop, again, session):
    async def story():
        async with cluster_of(3) as (cluster, machines):
            endpoint = cluster.runner if session is None else cluster.session(session)
            run = endpoint.query("12 hi")
            texts, stood = await killed_in_the_middle(cluster, machines, run, again=again)
            assert (await run).text == "done: 12 hi"
            return texts, stood, run.id

    texts, stood, run_id = within(story())
    assert texts == [*(f"{number}: 12 hi" for number in range(12)), "done: 12 hi"]
    assert stood < 3
    steps = [int(number) for run, number in shop() if run == run_id]
    assert sorted(set(steps)) == list(range(12))
    assert len(steps) <= 13, "only the step under way is made again"


def test_g16_many_runs_and_sessions_go_on_when_a_host_is_killed(within, shop):
    async def story():
        async with cluster_of(3) as (cluster, machines):
            runs = [cluster.runner.query("10 hi", run_id=f"r{number}") for number in range(15)]
            runs += [
                cluster.session(f"s{number}").query("10 hi", run_id=f"t{number}")
                for number in range(15)
            ]
            tasks = [asyncio.ensure_future(awaited(run)) for run in runs]
            while len(shop()) < 60:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(machines.kill, machines.by_name[runs[0].host])
            return [one.text for one in await asyncio.gather(*tasks)]

    assert within(story()) == ["done: 10 hi"] * 30
    steps = shop()
    assert len(set(steps)) == 300
    assert len(steps) - len(set(steps)) <= 30, "of each run only the step under way is made again"


async def awaited(run):
    return await run


def test_g16_a_run_that_is_not_kept_ends_once_with_host_lost(within):
    async def story():
        async with cluster_of(2, factory=UNKEPT) as (cluster, machines):
            run = cluster.runner.query("50 hi")
            with pytest.raises(HostLost, match="durability='step'"):
                await killed_in_the_middle(cluster, machines, run)
            with pytest.raises(HostLost):
                await run
            return run.status

    assert within(story()) is RunStatus.FAILED


def test_g18_a_host_that_is_stopped_is_noticed_ended_and_writes_nothing_when_it_goes_on(
    within, shop
):
    async def story():
        async with cluster_of(2, limits={"hang_seconds": 1.5}) as (cluster, machines):
            run = cluster.runner.query("12 hi")
            texts = []
            async for event in run:
                texts.append(event.text)
                if len(texts) == 3:
                    stopped = await asyncio.to_thread(machines.freeze, run.host)
            result = await run
            while not stopped.gone:  # it is ended by who takes over, or by the look of another host
                await asyncio.sleep(0.02)
            records = await stored(machines, run.id)
            await asyncio.to_thread(stopped.go_on)
            await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(stopped.life.end(), stopped.loop)
            )
            assert await stored(machines, run.id) == records
            return texts, result

    texts, result = within(story())
    assert texts == [*(f"{number}: 12 hi" for number in range(12)), "done: 12 hi"]
    assert result.status is RunStatus.COMPLETED


class HoldsTheStore(Machines):
    """A stopped process may be in the middle of a transaction: what it locks is free at its end."""

    held = None

    def hold(self, path):
        self.held = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.held.execute("BEGIN IMMEDIATE")

    def kill(self, machine, *, again=None):
        if machine.frozen and self.held is not None:
            self.held.close()
        super().kill(machine, again=again)


def test_g18_a_host_that_is_stopped_while_it_holds_the_store_is_ended(within, tmp_path):
    async def story():
        limits = {"lease_seconds": 20.0, "hang_seconds": 1.5}
        async with cluster_of(2, machines=HoldsTheStore(), limits=limits) as (cluster, machines):
            run = cluster.runner.query("12 hi")
            texts = []
            async for event in run:
                texts.append(event.text)
                if len(texts) == 3:
                    await asyncio.to_thread(machines.freeze, run.host)
                    await asyncio.to_thread(machines.hold, tmp_path / "runs.db")
            return texts

    assert within(story()) == [*(f"{number}: 12 hi" for number in range(12)), "done: 12 hi"]


async def stored(machines, run_id):
    """What the store has of a run, as a host that is well reads it."""
    machine = next(
        one
        for one in machines.by_name.values()
        if one is not None and not one.gone and one.life._host is not None
    )
    store = machine.life._host.takeover._store
    return await asyncio.wrap_future(
        asyncio.run_coroutine_threadsafe(store.read(f"offbook:journal:{run_id}"), machine.loop)
    )


def test_g13_a_host_whose_owner_was_revoked_begins_another_life(within):
    async def story():
        async with cluster_of(2) as (cluster, machines):
            run = cluster.runner.query("40 hi")
            texts, first = [], None
            async for event in run:
                texts.append(event.text)
                if len(texts) == 3:
                    machine = machines.by_name[run.host]
                    first = machine.life.board.incarnation
                    host = machine.life._host
                    await asyncio.wrap_future(
                        asyncio.run_coroutine_threadsafe(
                            host.takeover._revoke(host.name, host.incarnation), machine.loop
                        )
                    )
            while machine.life.board.incarnation == first or machine.life.board.state != "up":
                await asyncio.sleep(0.02)
            return texts

    assert within(story()) == [*(f"{number}: 40 hi" for number in range(40)), "done: 40 hi"]


async def moved_on(cluster, machines, fault, *, break_readers):
    """The texts of a run that goes on elsewhere when, after its third event, nothing gets through
    between its client and its host.
    """
    run = cluster.runner.query("15 hi")
    texts = []
    async for event in run:
        texts.append(event.text)
        if len(texts) == 3:
            first = run.host
            incarnation = machines.by_name[first].life.board.incarnation
            fault.add(frozenset({"client", first}))
            if break_readers:
                machines.by_name[first].break_readers()
    assert run.host != first
    assert machines.by_name[first].life.board.incarnation == incarnation, (
        "it lives, and was left in peace"
    )
    fault.clear()
    return texts


def test_g18_a_client_that_cannot_reach_a_host_is_served_by_another_one_that_does_not_take_over(
    within, shop
):
    async def story():
        async with cluster_of(2) as (cluster, machines):
            return await moved_on(cluster, machines, machines.cut, break_readers=True)

    assert within(story()) == [*(f"{number}: 15 hi" for number in range(15)), "done: 15 hi"]
    assert len(shop()) == 15, "nothing was done twice"


def test_g18_a_run_continues_elsewhere_when_its_host_falls_silent_and_its_events_never_end(
    within, shop
):
    async def story():
        async with cluster_of(2) as (cluster, machines):
            return await moved_on(cluster, machines, machines.silent, break_readers=False)

    assert within(story()) == [*(f"{number}: 15 hi" for number in range(15)), "done: 15 hi"]
    assert len(shop()) == 15, "nothing was done twice"


def test_the_events_of_a_run_whose_reply_has_come_end_though_their_stream_does_not(within):
    async def story():
        async with cluster_of(1) as (cluster, machines):
            machines.endless = True
            texts = [event.text async for event in cluster.runner.query("2 hi")]
            machines.endless = False
            return texts

    assert within(story()) == ["0: 2 hi", "1: 2 hi", "done: 2 hi"]


def test_g18_a_call_ends_when_no_host_can_be_reached(within):
    async def story():
        async with cluster_of(1, limits={"link_seconds": 1.0}) as (cluster, machines):
            ref = await cluster.spawn("tests.programs.cluster_shop:Counter")
            await cluster.runner.query("1 hi")
            machine = machines.by_name["shop/0"]
            machines.cut.add(frozenset({"client", "shop/0"}))
            machine.break_readers()
            with pytest.raises(ClusterError, match="has answered for 1 s"):
                await cluster.runner.query("1 hi")
            with pytest.raises(HostLost):
                await ref.request(1)
            with pytest.raises(ClusterError):
                await cluster.session("ada").history()
            machines.cut.clear()
            while True:
                try:
                    return (await cluster.runner.query("1 hi")).text
                except ClusterError:
                    continue

    assert within(story()) == "done: 1 hi"


class Silent:
    """A client on a loop of its own, which may stop: as if its process were stopped, or its machine
    away.
    """

    def __init__(self, machines):
        self.loop, self.machines = asyncio.new_event_loop(), machines
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.cluster = Cluster("shop", None, 0, machines)
        self.do(self.cluster.open())

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def end(self):
        async def rest():
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.get_running_loop().shutdown_asyncgens()

        self.loop.run_until_complete(self.cluster.close())
        self.loop.run_until_complete(rest())
        self.loop.close()


@pytest.mark.parametrize(
    ("factory", "goes_on"), [("tests.programs.cluster_shop:host", True), (UNKEPT, False)]
)
def test_the_runs_of_a_client_that_says_nothing_any_more_go_on_if_they_are_kept(
    within, shop, factory, goes_on
):
    async def begin(cluster):
        async for _event in cluster.runner.query("60 hi", run_id="its"):
            cluster.kept = asyncio.ensure_future(asyncio.Event().wait())
            await cluster.kept

    async def story():
        machines = Machines()
        limits = {"link_seconds": 0.6, "suspect_seconds": 0.3}
        async with cluster_of(1, machines=machines, factory=factory, limits=limits) as (cluster, _):
            silent = await asyncio.to_thread(Silent, machines)
            reading = asyncio.run_coroutine_threadsafe(begin(silent.cluster), silent.loop)
            while not shop():
                await asyncio.sleep(0.01)
            await asyncio.to_thread(silent.stop)
            host = machines.by_name["shop/0"].life._host
            while host.clients.find(silent.cluster._routes.client) is not None or (
                not goes_on and len(host.runs)
            ):
                await asyncio.sleep(0.02)
            done = len(shop())
            text = (await cluster.follow("its")).text if goes_on else ""
            await asyncio.to_thread(silent.end)
            assert reading.done()
            return done, text

    done, text = within(story())
    assert text == ("done: 60 hi" if goes_on else "")
    assert len(shop()) == (60 if goes_on else done)


def test_a_run_that_nobody_awaits_yet_does_not_keep_others_of_its_session_waiting(within):
    async def story():
        async with cluster_of(1) as (cluster, _):
            runs = [cluster.session("ada").query(f"1 {number}") for number in range(3)]
            texts = [(await run).text for run in reversed(runs)]
            return texts, [event.text async for event in cluster.session("ada").query("2 more")]

    assert within(story()) == (
        ["done: 1 2", "done: 1 1", "done: 1 0"],
        ["0: 2 more", "1: 2 more", "done: 2 more"],
    )


def test_two_clients_with_different_lists_never_make_a_step_twice(within, shop):
    async def story():
        machines = Machines()
        async with (
            cluster_of(3, machines=machines) as (cluster, _),
            Cluster("shop", None, 0, machines) as other,
        ):
            routes = other._routes
            for name in routes.hosts.names()[:2]:
                routes._down[name] = None  # it believes that there is one host
            runs = [
                endpoint.runner.query("5 hi", run_id=f"r{number % 10}")
                for number in range(20)
                for endpoint in (cluster, other)
            ]
            texts = [(await run).text for run in runs]
            sessions = [
                endpoint.session("ada").query(f"2 {number}")
                for number in range(5)
                for endpoint in (cluster, other)
            ]
            for run in sessions:
                await run
            said = [
                message.text
                for message in await cluster.session("ada").history()
                if message.role == "user"
            ]
            return texts, sorted(said)

    texts, said = within(story())
    assert texts == ["done: 5 hi"] * 40
    assert said == sorted(f"2 {number}" for number in range(5) for _ in range(2))
    assert len(shop()) == len(set(shop()))


def test_what_was_streamed_of_a_message_is_void_when_its_host_is_lost():
    from offbook.runtime.cluster.client.run import ClusterRun

    run = object.__new__(ClusterRun)
    run.id, run._piece, run._piece_of, run._last_seq, run._entry = (
        "r",
        None,
        None,
        0,
        SimpleNamespace(moves=0),
    )
    one, other = object(), object()
    piece = AgentEvent("A", ("A",), None, MessageDelta("half"), seq=0)
    assert [event.text for event in run._new([piece], one)] == ["half"]
    void, whole = run._new([AgentEvent("A", ("A",), AgentEvent.say("whole").message, seq=1)], other)
    assert isinstance(void.error, ModelRetry)
    assert void.delta is not None
    assert not void.is_failure
    assert whole.text == "whole"


@pytest.mark.parametrize("killed", [False, True], ids=["well", "killed"])
def test_a_run_that_waits_is_resumed_from_any_client_and_goes_on_when_its_host_is_killed(
    within, killed
):
    async def story():
        async with cluster_of(2, factory="tests.programs.cluster_shop:waits") as (
            cluster,
            machines,
        ):
            waiting = await cluster.runner.query("hi", run_id="asks")
            assert [one.info for one in waiting.interrupts] == ["May I?"]
            run = cluster.runner.resume("asks", data="yes")
            texts = []
            async for event in run:
                texts.append(event.text)
                if killed and len(texts) == 3:
                    await asyncio.to_thread(machines.kill, machines.by_name[run.host])
            return waiting.status, texts, (await run).text

    status, texts, text = within(story())
    assert status is RunStatus.INTERRUPTED
    assert texts == [*map(str, range(12)), "told: yes"]
    assert text == "told: yes"
