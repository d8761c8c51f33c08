"""Long sessions, of which a turn reads what is new: what is read, and what has happened to the
session meanwhile.
"""

from contextlib import asynccontextmanager

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    Runner,
    ScriptedModel,
    ToolCall,
    keep_last,
)
from offbook.runtime.sessions import known_sessions
from offbook.runtime.sessions.known_sessions import KnownSessions
from offbook.runtime.sessions.session_policy import Bounded
from tests.doubles.held_stores import HeldStore, beside, texts

LONG = "long " * 4_000
"""A question by which a session is long."""


class Reads(HeldStore):
    """A store in memory that notes how many records were read of a journal."""

    def __init__(self, **options):
        super().__init__(**options)
        self.read_records = []

    async def read(self, key, after=0):
        found = await super().read(key, after)
        self.read_records.append(len(found))
        return found


@asynccontextmanager
async def conversing(store, answers, policy=None):
    """A session in a system of its own, as if it were in another process than others, and the model
    that answers.
    """
    model, system = ScriptedModel(list(answers)), beside()
    yield (
        Runner(ChatModelAgent(name="A", model=model), system=system, store=store).session(
            "s", policy=policy
        ),
        model,
    )
    await system.stop()


def shown(model):
    return [message.text[:10] for message in model.requests[-1].messages]


def test_a_turn_reads_what_is_new(run):
    async def main():
        store = Reads()
        async with conversing(store, "abcd") as (session, model):
            for text in (LONG, "2", "3", "4"):
                await session.query(text)
            assert store.read_records == [0, 1, 1, 1]
            assert shown(model) == [LONG[:10], "a", "2", "b", "3", "c", "4"]

    run(main())


def test_a_short_session_is_read_anew(run):
    async def main():
        store = Reads()
        async with conversing(store, "abc") as (session, _):
            for text in "123":
                await session.query(text)
            assert store.read_records == [0, 1, 2]

    run(main())


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_what_another_system_has_added_is_shown(run, store_of, kind):
    async def main():
        one = store_of(kind, "same")
        other = one if kind == "memory" else store_of(kind, "same")
        async with (
            conversing(one, "abe") as (session, model),
            conversing(other, "cd") as (elsewhere, _),
        ):
            await session.query(LONG)
            await session.query("2")
            await elsewhere.query("3")
            await elsewhere.query("4")
            await session.query("5")
            assert shown(model) == [LONG[:10], "a", "2", "b", "3", "c", "4", "d", "5"]
            assert texts(await session.history())[1:] == [
                "a",
                "2",
                "b",
                "3",
                "c",
                "4",
                "d",
                "5",
                "e",
            ]

    run(main())


def test_one_that_another_system_has_cleared_and_gone_on_with_is_read_anew(run):
    """It has as many records as before, and more."""

    async def main():
        store = MemoryStore()
        async with (
            conversing(store, "abx") as (session, model),
            conversing(store, "cde") as (elsewhere, _),
        ):
            await session.query(LONG)
            await session.query("2")
            await elsewhere.clear()
            for text in (LONG.upper(), "2", "3"):
                await elsewhere.query(text)
            await session.query("4")
            assert shown(model) == [LONG.upper()[:10], "c", "2", "d", "3", "e", "4"]

    run(main())


def test_one_that_the_store_has_forgotten_begins_anew(run):
    async def main():
        store = MemoryStore()
        async with conversing(store, "ab") as (session, model):
            await session.query(LONG)
            for key in await store.keys():
                await store.delete(key)
            await session.query("2")
            assert shown(model) == ["2"]

    run(main())


def test_values_that_are_changed_after_the_run_are_not_those_of_the_session(run):
    async def main():
        async with conversing(MemoryStore(), "abc") as (session, _):
            mine = {"items": [1]}
            first = await session.run(LONG, session_values={"cart": mine})
            mine["items"].append(2)
            first.session_values["cart"]["items"].append(3)
            second = await session.query("2")
            assert second.session_values == {"cart": {"items": [1]}}
            second.session_values["cart"]["items"].append(4)
            assert (await session.query("3")).session_values == {"cart": {"items": [1]}}
            assert await session.values() == {"cart": {"items": [1]}}

    run(main())


def test_values_that_are_changed_while_the_store_writes_are_those_that_were_written(run):
    async def main():
        store, mine = HeldStore(), {"items": [1]}
        async with conversing(store, "ab") as (session, _):
            gate = store.hold("append", "session")
            first = session.run(LONG, session_values={"cart": mine})
            await gate.reached.wait()
            mine["items"].append(2)
            gate.open()
            await first
            assert (
                (await session.query("2")).session_values
                == {"cart": {"items": [1]}}
                == await session.values()
            )

    run(main())


def test_a_policy_may_do_with_the_messages_what_it_wants(run):
    class Takes:
        async def bound(self, messages, note):
            del note
            taken = messages[-1:]
            messages.clear()
            return Bounded(taken)

    async def main():
        async with conversing(MemoryStore(), "abc", Takes()) as (session, model):
            for text in (LONG, "2", "3"):
                await session.query(text)
            assert shown(model) == ["b", "3"]
            assert texts(await session.history())[1:] == ["a", "2", "b", "3", "c"]

    run(main())


def test_what_could_not_be_written_is_not_known(run):
    async def main():
        store = HeldStore()
        async with conversing(store, "abcd") as (session, model):
            await session.query(LONG)
            mend = store.fail("append", "session")
            failed = await session.query("2")
            assert failed.error is not None
            mend()
            await session.query("3")
            assert shown(model) == [LONG[:10], "a", "3"]

    run(main())


def test_what_was_written_though_no_answer_came_is_read(run):
    async def main():
        store = HeldStore()
        async with conversing(store, "abcd") as (session, model):
            await session.query(LONG)
            mend = store.fail("append", "session", after=True)
            failed = await session.query("2")
            assert failed.error is not None
            mend()
            await session.query("3")
            assert shown(model) == [LONG[:10], "a", "2", "b", "3"]

    run(main())


def test_calls_without_results_are_answered_in_a_session_that_is_known_too(run):
    async def main():
        store = MemoryStore()
        async with conversing(store, "abc") as (session, model):
            await session.run(
                [Message.user(LONG), Message.assistant("", [ToolCall("c1", "look", "{}")])]
            )
            await session.query("2")
            assert [message.role for message in model.requests[-1].messages] == [
                "user",
                "assistant",
                "tool",
                "assistant",
                "user",
            ]

    run(main())


def test_no_more_are_known_than_there_is_room_for(run, monkeypatch):
    monkeypatch.setattr(known_sessions, "_MOST_BYTES", 50_000)

    async def main():
        store = Reads()
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=ScriptedModel(["a"] * 12)),
                system=system,
                store=store,
            )
            for name in "wxyz":
                await runner.session(name).query(LONG)
            known = system.belongings[KnownSessions]
            assert len(known) == 2
            store.read_records.clear()
            for name in "zw":
                await runner.session(name).query("2")
            assert store.read_records == [1, 1]
            await runner.session("w").query(LONG * 3)  # it is longer than all that may be known
            store.read_records.clear()
            await runner.session("w").query("3")
            assert store.read_records == [3]

    run(main())


def test_a_policy_chooses_of_all(run):
    async def main():
        async with conversing(MemoryStore(), "abcd", keep_last(2)) as (session, model):
            for text in (LONG, "2", "3", "4"):
                await session.query(text)
            assert shown(model) == ["3", "c", "4"]

    run(main())
