"""A store gets into trouble in the middle of a run: a server that is away, a database that somebody
else has locked, a disk that is full, a store that fails.

Either the trouble passes, and the run does not notice; or the run ends, says why, and shows nothing
that is not in the store. Then it can be recovered.
"""

import asyncio
import logging
import sqlite3
import threading

import pytest

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Interrupted,
    MemoryStore,
    Runner,
    ScriptedModel,
    StoreError,
    ToolCalls,
)
from offbook.runtime.codec.packing import unpack
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.durability.store_owner import PendingRelease, StoreOwner
from offbook.runtime.testing import ManualClock
from tests.doubles.watched_stores import WatchedStore, unfinished
from tests.programs.servers import RedisServer

LINES = 6


class Talks(Agent):
    """Says its lines, each once.

    The third time that it is about to say something, it waits for `trouble`.
    """

    def __init__(self, trouble=None, text=""):
        super().__init__(name="A")
        self.trouble = trouble
        self.text = text

    async def run(self, asked, context):
        while (number := context.state.get("said", 0)) < LINES:
            if number == 2 and self.trouble is not None:
                await self.trouble()
            context.state["said"] = number + 1
            yield AgentEvent.say(f"line {number}{self.text}")


def asking():
    @tool
    async def ask(context: ToolContext) -> str:
        return f"told {context.interrupt('sure?')}"

    def reply(request):
        return "done" if request.messages[-1].role == "tool" else ToolCalls("ask")

    return ChatModelAgent(name="A", model=ScriptedModel([reply] * 9), tools=[ask])


async def recorded(store, run_id):
    """The numbers of the events in the journal."""
    records = await store.read(f"offbook:journal:{run_id}")
    return [
        change[2].seq for record in records for change in unpack(record) if change[0] == "event"
    ]


async def played(store, trouble=None, text="", **options):
    """A run, with the events that were shown, and its result."""
    runner = Runner(Talks(trouble, text), store=store, durability="step", keep="unfinished")
    running = runner.query("go", **options)
    runner.agent.trouble = once(runner.agent, trouble)
    return runner, [event async for event in running], await running


def once(agent, trouble):
    """For whoever continues there is none."""

    async def makes():
        agent.trouble = None
        await trouble()

    return None if trouble is None else makes


def check_whole(events, text=""):
    assert [event.message.text for event in events] == [
        f"line {number}{text}" for number in range(LINES)
    ]
    assert [event.seq for event in events] == list(range(1, LINES + 1))


async def check_ended_and_recover(runner, store, events, result, *words, text=""):
    """It has ended with an error of the store; nothing was shown that is not in it; and who has not
    been able to let it go continues it at once.
    """
    *shown, last = events
    assert result.status == "failed"
    assert isinstance(last.error, StoreError)
    assert last.error is result.error
    for word in words:
        assert word in str(last.error), last.error
    run_id = last.run_id
    numbers = await recorded(store, run_id)
    assert [event.seq for event in shown] == numbers[: len(shown)]
    assert len(numbers) <= len(shown) + 1
    (again,) = await runner.recover()
    more = [event async for event in again]
    assert (await again).status == "completed"
    texts = [event.message.text for event in [*shown, *more]]
    assert texts == [
        f"line {number}{text}"
        for number in range(LINES)
        if number < len(shown) or number >= len(numbers)
    ]
    assert await store.keys() == []


# --- a server that is away ---


@pytest.fixture
def own_redis():
    server = RedisServer().start()
    yield server
    server.remove()


@pytest.fixture
def restarted(request, own_redis):
    """A server of a kind that a test may stop; it runs again afterwards."""

    def server(kind):
        found = own_redis if kind == "redis" else request.getfixturevalue("postgres_server")
        request.addfinalizer(found.start)
        return found

    return server


def store_at(kind, server, store_of):
    from offbook.runtime import RedisStore

    return RedisStore(server.url) if kind == "redis" else store_of("postgres")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_run_waits_for_a_server_that_is_started_again(run, store_of, restarted, kind):
    server = restarted(kind)

    async def trouble():
        await asyncio.to_thread(server.stop)
        coming_back.append(asyncio.create_task(asyncio.to_thread(server.start)))

    async def main():
        async with store_at(kind, server, store_of) as store:
            _runner, events, result = await played(store, trouble)
            assert result.status == "completed"
            check_whole(events)
            await asyncio.gather(*coming_back)
            assert await store.keys() == []

    coming_back = []
    run(main())


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_g07_a_run_whose_server_stays_away_ends_and_can_be_recovered(
    run, store_of, restarted, kind
):
    server = restarted(kind)

    async def main():
        async with store_at(kind, server, store_of) as store:
            store._worker()._backend.patience = 0.2
            runner, events, result = await played(store, lambda: asyncio.to_thread(server.stop))
            server.start()
            await check_ended_and_recover(runner, store, events, result, "check that it runs")

    run(main())


# --- a database that is locked, or full ---


class Lock:
    """Somebody else's hold on a database, in a thread: from `take` on, until it is let go, by hand
    or after some time.
    """

    def __init__(self, path, seconds=None):
        self.path = path
        self.seconds = seconds
        self.taken, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._hold)

    def _hold(self):
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        self.taken.set()
        self.over.wait(self.seconds)
        connection.execute("ROLLBACK")
        connection.close()

    async def take(self):
        self.thread.start()
        await asyncio.to_thread(self.taken.wait)

    def let_go(self):
        self.over.set()
        self.thread.join()


def test_a_run_waits_for_a_database_that_is_locked_for_a_moment(run, store_of):
    async def main():
        store = store_of("sqlite", busy_timeout=20)
        lock = Lock(store._path, 0.2)
        _runner, events, result = await played(store, lock.take)
        lock.let_go()
        assert result.status == "completed"
        check_whole(events)

    run(main())


def test_g07_a_run_whose_database_stays_locked_ends_and_can_be_recovered(run, store_of):
    async def main():
        store = store_of("sqlite", busy_timeout=0.05)
        lock = Lock(store._path)
        runner, events, result = await played(store, lock.take)
        lock.let_go()
        await check_ended_and_recover(
            runner, store, events, result, "another process holds its lock"
        )

    run(main())


def limit(store, room):
    """Let the database grow by so many pages, and no further; None: as much as it likes."""
    connection = store._worker()._backend._opened.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + room if room is not None else 1 << 30}")


@pytest.mark.parametrize("room", [0, 4, 12])
def test_g07_a_run_whose_disk_is_full_ends_and_can_be_recovered(run, store_of, room):
    async def main():
        store = store_of("sqlite")
        text = "x" * 20_000

        async def trouble():
            limit(store, room)

        runner, events, result = await played(store, trouble, text)
        limit(store, None)
        await check_ended_and_recover(runner, store, events, result, "disk is full", text=text)

    run(main())


# --- a store that forgets ---


def test_a_run_that_lasts_longer_than_its_store_keeps_things_is_found_all_the_same(run):
    """As long as something happens in it."""
    clock = ManualClock()

    async def main():
        store = MemoryStore(ttl=100, time=clock.time)
        async with ActorSystem(clock=clock) as system:
            running = Runner(
                Talks(), system=system, store=store, durability="step", event_buffer=1
            ).query("go")
            async for event in running:
                assert (
                    len(await unfinished(store)),
                    len(await store.keys("offbook:journal:")),
                ) == (1, 1), event
                clock.advance(60)

    run(main())


# --- a store that fails ---


def test_g06_there_is_no_gap_before_the_error_of_a_store(run):
    async def main():
        store = Failing()
        _runner, events, _result = await played(
            store, lambda: asyncio.sleep(0, store.failing.add("append"))
        )
        assert [event.seq for event in events] == [1, 2, 3]
        assert isinstance(events[-1].error, StoreError)

    run(main())


class Failing(WatchedStore):
    """Fails at what is among `failing`: a word, or a word and a kind of key; each of its writes
    takes some turns of the loop.
    """

    def __init__(self, *failing):
        super().__init__()
        self.failing = set(failing)
        self.failed = 0

    async def before(self, call):
        kinds = [
            (word, key.split(":")[1] if key.startswith("offbook:") else "checkpoint")
            for word, key in call.changes
        ]
        if self.failing & {
            *(word for word, _ in kinds),
            *(f"{word} {kind}" for word, kind in kinds),
        }:
            self.failed += 1
            raise OSError("it is broken")
        if kinds:
            await asyncio.sleep(0)
            await asyncio.sleep(0)


def test_g07_where_an_interrupt_cannot_be_saved_that_is_said_before_it(run):
    """Where each step is kept, it is not shown, and the run is continued:
    `test_unwritten_steps.py`.
    """

    async def main():
        running = Runner(asking(), store=Failing("put checkpoint"), durability="interrupt").query(
            "go"
        )
        events = [event async for event in running]
        assert isinstance(events[-2].error, StoreError)
        assert "it is broken" in str(events[-2].error)
        assert isinstance(events[-1].action, Interrupted)
        result = await running
        assert (result.status, result.error) == ("interrupted", events[-2].error)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))

    run(main())


@pytest.mark.parametrize("failing", ["append", "open"])
def test_g07_a_run_that_cannot_be_written_down_as_begun_has_not_begun(run, failing):
    """Nobody finds it later on either: its caller was told that it has not run."""
    asked = []

    class Asked(Agent):
        async def run(self, asked_for, context):
            asked.append(asked_for)
            yield AgentEvent.say("hello")

    async def main():
        store = Failing(failing)
        runner = Runner(Asked(name="A"), store=store, durability="step", keep="unfinished")
        with pytest.raises(StoreError, match="it is broken"):
            await runner.query("go")
        assert asyncio.all_tasks() == {asyncio.current_task()}, (
            "nothing of it is still being written"
        )
        assert await unfinished(store) == []
        store.failing.clear()
        assert await runner.recover() == []
        assert asked == []

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g07_an_answer_that_cannot_be_written_down_shows_nothing_and_may_be_given_again(
    run, durability
):
    async def main():
        store = Failing()
        agent = asking()
        runner = Runner(agent, store=store, durability=durability)
        await runner.query("go", checkpoint_id="c")
        store.failing.add("put answered")
        failed = await runner.resume("c", data=1)
        assert [type(event.error) for event in failed.events] == [StoreError]
        assert failed.status == "failed"
        store.failing.clear()
        again = await runner.resume("c", data=2)
        assert again.status == "completed"
        assert again.events[0].message.text == "told 2"

    run(main())


def test_a_run_that_has_ended_has_ended_even_if_that_cannot_be_written_down(run, caplog):
    async def main():
        store = Failing("remove")
        with caplog.at_level(logging.ERROR, "offbook"):
            runner, events, result = await played(store)
        assert result.status == "completed"
        check_whole(events)
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert events[-1].run_id in caplog.text
        store.failing.clear()
        (again,) = await runner.recover()
        assert (await again).events == ()
        assert await store.keys() == []

    run(main())


def test_what_is_owed_to_a_store_that_was_never_reached_is_not_called_a_lease_that_expires(
    run, caplog
):
    class Unreachable:
        async def keep_alive(self, owner, seconds, *, first):
            raise StoreError("nothing answers there")

    async def main():
        async with ActorSystem() as system:
            owner = StoreOwner(Unreachable(), system)
            owner.owed["run"] = PendingRelease(None)
            return await owner.renew()

    assert run(main()) is False
    assert [record.getMessage() for record in caplog.records] == [
        "1 leases could not be released yet: nothing answers there"
    ]


def test_what_an_owner_owes_is_paid_under_its_new_name(run):
    """The store has not heard of that name yet, and gives it nothing: `recover()`, which pays
    first, would be refused for ever.
    """

    async def main():
        store = MemoryStore()
        async with ActorSystem() as system:
            owner = StoreOwner(StoreAccess(store), system)
            await owner.enter()
            owner.end(owner.name)  # its time was over
            owner.owed["a key"] = PendingRelease(None)
            await owner.pay_all()
            assert (owner.owed, await store.holder("a key")) == ({}, None)

    run(main())
