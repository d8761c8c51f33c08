"""Every store answers as the model of owners and claims does: along the ways on which each thing
happens that can happen to it.
"""

import asyncio
import random

import pytest

from offbook.runtime import MemoryStore
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Expect, ExpectEntry, Put, RunEntry
from tests.runtime.durability.ownership_model import STEPS, Model

LONG, SHORT = 1000.0, 0.02
OF_STORE = ("enter", "keep alive", "time is over", "revoke", "arrives")


def ways(faults):
    """For each thing that can happen to the store in each of its states: a shortest way there, as
    what happens to the store, and how it is then.
    """
    reached = Model(*faults).explore()
    start = next(iter(reached))
    came = {start: None}
    for state, following in reached.items():  # in the order in which they were reached
        for action, after in following:
            came.setdefault(after, (state, action))
    known = set()
    for state, following in reached.items():
        for action, after in following:
            if action.name in OF_STORE and (state.store, action) not in known:
                known.add((state.store, action))
                yield [*_way(came, state), action], after.store


def _way(came, state):
    actions = []
    while came[state] is not None:
        state, action = came[state]
        if action.name in OF_STORE:
            actions.append(action)
    return actions[::-1]


class Driven:
    """A store to which happens what happens in the model."""

    def __init__(self, store, passes, name):
        self.store = store
        self.passes = passes  # lets so many seconds pass
        self.names = [f"{name} owner {number}" for number in range(4)]
        self.run, self.journal, self.answered = f"{name} run", f"{name} journal", f"{name} answered"
        self.claims = {}  # by the epochs of the model
        self.highest = 0

    async def happen(self, action):
        """Returns what the store answers, in the words of the model."""
        store = self.store
        if action.name == "arrives":
            return await self._arrive(action.who, action.answer)
        name = self.names[action.who]
        if action.name == "time is over":
            assert await store.keep_alive(name, SHORT)
            await self.passes(2 * SHORT)
        elif action.name == "revoke":
            await store.revoke(name)
        else:
            assert await store.keep_alive(name, LONG, first=action.name == "enter")
        return None

    async def _arrive(self, message, expected):
        try:
            if message.kind in ("begin", "take"):
                writes = [
                    ExpectEntry(f"{self.run}'s row", self.run),
                    Expect(self.journal),
                    Append(self.journal, (b"begun",), 0),
                    self._row("open"),
                ]
                claim = await self.store.claim(
                    self.run, self.names[message.owner], writes if message.kind == "begin" else []
                )
                if claim is None:
                    return None
                assert claim.epoch > self.highest
                self.highest = claim.epoch
                self.claims[expected] = claim
                return expected if isinstance(expected, int) else claim
            writes, then = self._writes(message)
            await self.store.commit(self.claims[message.epoch], writes, then=then)
        except WriteRefused as refused:
            return refused.reason
        return "done"

    def _writes(self, message):
        if message.kind == "verify":
            return [], "keep"
        if message.kind == "leave":
            return [], "release"
        if message.kind == "end":
            return [
                Append(self.journal, (), message.position),
                Put(self.journal, b"ended"),
                self._row("ended"),
            ], "forget"
        append = Append(self.journal, (STEPS[message.position].encode(),), message.position)
        if message.kind == "last":
            return [append, Put(self.journal, b"ended"), self._row("ended")], "forget"
        if message.kind == "answer":
            return [
                append,
                Expect(self.answered),
                Put(self.answered, b"yes"),
                self._row("open"),
            ], "keep"
        return (
            ([append, self._row("waits")], "forget")
            if message.position == 1
            else ([append], "keep")
        )

    def _row(self, status):
        claim = self.run if status == "open" else ""
        return RunEntry(f"{self.run}'s row", "A", "", status, 1, (), b"", claim=claim)

    async def check(self, expected):
        store = self.store
        assert await store.read(self.journal) == [step.encode() for step, _ in expected.journal]
        assert await store.get(self.journal) == (b"ended" if expected.ended else None)
        assert await store.get(self.answered) == (b"yes" if expected.answers else None)
        row = await store.run_entry(f"{self.run}'s row")
        assert row == (self._row(expected.row) if expected.row else None)
        owner = None if expected.claim is None or expected.claim[0] < 0 else expected.claim[0]
        holder = None if owner is None or expected.owners[owner] != "alive" else self.names[owner]
        assert await store.holder(self.run) == holder
        assert await store.orphans(self.run) == (
            [self.run] if expected.row == "open" and holder is None else []
        )


async def follow(store, passes, chosen):
    for number, (way, after) in enumerate(chosen):
        driven = Driven(store, passes, f"{number}")
        for action in way:
            answer = await driven.happen(action)
            assert answer == action.answer, f"{action} on the way {way}"
        await driven.check(after)


@pytest.mark.parametrize("faults", [(1, 0, 0), (0, 1, 0), (0, 0, 1)], ids=str)
def test_g13_the_store_in_memory_answers_as_the_model_does_along_each_way(run, machine, faults):
    async def passes(seconds):
        machine.passes(seconds)

    chosen = list(ways(faults))
    assert len(chosen) > 100
    run(follow(MemoryStore(time=machine.boottime), passes, chosen))


def test_g13_every_store_answers_as_the_model_does_along_some_ways(run, store):
    dice = random.Random(7)
    chosen = [
        way
        for faults in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        for way in dice.sample(list(ways(faults)), 20)
    ]
    run(follow(store, asyncio.sleep, chosen))
