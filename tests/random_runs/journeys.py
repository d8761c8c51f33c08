"""A run in several legs, each in a loop, a system and a store of its own.

A leg ends when the run is interrupted or cancelled, or when its process is lost. The next one
starts from the bytes in the store.
"""

import asyncio
from contextlib import suppress
from functools import partial
from itertools import cycle

from hypothesis import HealthCheck, Phase, reject, settings
from hypothesis import strategies as st

from offbook.runtime import ActorSystem, MemoryStore, Runner, StoreError
from offbook.runtime.run.phase import RunPhase
from offbook.runtime.stores import RunEntry
from tests.doubles.watched_stores import WatchedStore
from tests.random_runs.play import World, answer, build
from tests.random_runs.stories import Story, journal_of
from tests.random_runs.trees import branches

# What hypothesis draws beside a tree: how often, which of the answers that are waited for are given
# at once, and how many turns each write takes.
SOMETIMES = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
CHOICES = st.lists(st.integers(0, 1), min_size=1, max_size=6)
TURNS = st.integers(0, 3)

MOST_LEGS = 300
PATIENT_LEGS = 20  # from then on all that it waits for is answered at once
PATIENCE = 20  # seconds that a leg may take, on a machine that does other things as well


class Slow(WatchedStore):
    """A store of which every operation takes some turns of the loop.

    With its `last` record its process is lost: what it does from then on, nobody sees.
    """

    def __init__(self, turns=0, last=None, at_loss=lambda: None):
        super().__init__()
        self.turns = turns
        self.last = last
        self.at_loss = at_loss
        self.records = []
        self.is_lost = asyncio.Event()
        self._end = asyncio.get_running_loop().create_future()

    def end(self):
        """Let those go who wait for a store that is lost."""
        if not self._end.done():
            self._end.set_exception(ConnectionError("the store is lost"))
            self._end.exception()

    async def _wait(self):
        if self.is_lost.is_set():
            await asyncio.shield(self._end)
        for _ in range(self.turns):
            await asyncio.sleep(0)

    async def before(self, call):
        await self._wait()

    async def after(self, call):
        if call.is_done:
            before = len(self.records)
            self.records += call.records
            # With this record: there is nothing to be lost any more.
            has_ended = call.has("close", "offbook:open:") and ("put", "id") not in call.about
            if self.last is not None and before < self.last <= len(self.records) and not has_ended:
                self.is_lost.set()
                self.at_loss()
            await self._wait()

    async def dump(self):
        """All that is in it, as bytes."""
        found = {}
        for key in await MemoryStore.keys(self):
            found[key] = (await MemoryStore.get(self, key), await MemoryStore.read(self, key))
        for row, *_ in self._runs._entries.values():
            if row.claim:
                found[row.claim] = (row, ())
        return found

    async def fill(self, data):
        for key, (value, records) in data.items():
            if isinstance(value, RunEntry):
                await MemoryStore.commit(self, None, [value])
            elif value is not None:
                await MemoryStore.set(self, key, value)
            await MemoryStore.append(self, key, records)


def limits(tree):
    """Transfers that a run may make.

    Where several lanes make them, who makes the last one is up to the clock: there the bound must
    not be reached.
    """
    return {"max_transfers": 30 if branches(tree)[0] else 5}


def reference_of(tree, **options):
    """The run in which nobody waits for anything from outside."""
    story, world = Story(tree), World(inline=True)

    async def main():
        async with ActorSystem() as system:
            run = Runner(
                build(tree, world), system=system, store=MemoryStore(), **limits(tree), **options
            ).query("go")
            seen = [event async for event in run]
            return seen, await run

    seen, result = asyncio.run(asyncio.wait_for(main(), PATIENCE))
    story.show(seen)
    story.take(world, result)
    if branches(tree)[0] and "MaxTransfersExceeded" in repr(seen):
        reject()
    return story


class Journey:
    """One run in several legs."""

    def __init__(self, tree, *, turns=0, choices=(1,), **options):
        self.story = Story(tree)
        self.tree = tree
        self.options = {**limits(tree), **options}
        self.turns = turns
        self.choices = cycle(choices)
        self.data = {}
        self.contexts = ()
        self.next_seq = 1
        self.run_id = None
        self.recovers = False  # whether nobody has ended it
        self.is_open = False  # whether the last leg has begun

    def play(self, ends=()):
        """Let it go from leg to leg until it has come to its end.

        `ends`: what ends each leg before that, if it comes so far.

        `(3, "immediate")`: it is cancelled so at the third event. `(3, "lost")`: its process is
        lost when the third record is in the store. None: nothing.
        """
        ends = iter(ends)
        for _ in range(MOST_LEGS):
            result = self.leg(*(next(ends, None) or (None, None)))
            if result is not None and result.status in ("completed", "failed"):
                return self.story
        raise AssertionError(f"it does not come to its end: {self.story.legs}")

    def leg(self, count, how):
        """The result; None if the process was lost."""
        world, seen = World(), []
        self.is_cut_short = False

        async def main():
            store = Slow(self.turns, count if how == "lost" else None, world.die)
            await store.fill(self.data)
            async with ActorSystem() as system:
                run = await self._start(
                    Runner(build(self.tree, world), system=system, store=store, **self.options)
                )
                self.is_open = False
                world.is_over = partial(self._is_over, run)
                looking = asyncio.create_task(self._look(run, seen, count, how))
                losing = asyncio.create_task(store.is_lost.wait())
                await asyncio.wait((looking, losing), return_when=asyncio.FIRST_COMPLETED)
                losing.cancel()
                self.is_open = run._progress.has_begun
                self.data = await store.dump()
                if not looking.done():
                    store.end()
                    with suppress(StoreError):
                        await looking
                    return None, store.records
                result = await looking
            if not store.is_lost.is_set():
                # A process that is not lost leaves its system: what a run had begun with that was
                # cancelled is taken back.
                self.data = await store.dump()
            return result, store.records

        result, records = asyncio.run(asyncio.wait_for(main(), PATIENCE))
        if result is None:
            seen = journal_of(records)
            self.story.lose(world, records)
        self._check_numbers(seen)
        self.story.show(seen)
        self.story.take(world, result)
        if result is None:
            self.recovers = True
        elif self.is_open:
            self.recovers = False
            waiting = result.error.contexts if result.status == "cancelled" else result.interrupts
            self.contexts = [context for context in waiting if context.info != "cancelled"]
        return result

    async def _start(self, runner):
        if self.recovers:
            found = await runner.recover()
            if found:
                (run,) = found
                return run
            if "id" in await runner.store.keys("id"):
                # It waits for something, and nobody has heard for what.
                return runner.resume("id", {})
        elif "id" in self.data:
            return runner.resume("id", self._answers())
        assert not self.story.row  # it has ended before anything could be kept of it
        self.next_seq, self.run_id = 1, None
        return runner.query("go", checkpoint_id="id")

    async def _look(self, run, seen, count, how):
        if count == 0:
            self._cancel(run, how)
        async for event in run:
            seen.append(event)
            if len(seen) == count and how != "lost":
                self._cancel(run, how)
        return await run

    def _cancel(self, run, how):
        self.is_cut_short = how == "immediate"
        run.cancel(how)

    def _is_over(self, run):
        """Whether what happens now is not recorded any more."""
        actor = run._supervisor.actor
        return self.is_cut_short or actor is None or run._progress.phase >= RunPhase.ENDING

    def _answers(self):
        """Answers to some of what it waits for; to none, if it was cancelled and waits for
        nothing.
        """
        some = [
            context
            for context in self.contexts
            if next(self.choices) or len(self.story.legs) > PATIENT_LEGS
        ]
        if not some and "cancelled" not in self.story.legs[-1:]:
            some = self.contexts[:1]
        return {context.id: answer(context.info) for context in some}

    def _check_numbers(self, seen):
        hidden = branches(self.tree)[1]
        seen = [event for event in seen if not hidden & set(event.run_path)]
        if not seen:
            return
        if not self.is_open:
            assert len(seen) == 1  # it was cancelled before it was known what it goes on with
            return
        self.run_id = self.run_id or seen[0].run_id
        assert {event.run_id for event in seen} == {self.run_id}
        numbers = [event.seq for event in seen]
        if self.story.legs[-1:] == [
            "lost"
        ]:  # perhaps with an interrupt that had its number, and that nobody has seen
            self.next_seq = max(self.next_seq, numbers[0])
        assert numbers == list(range(self.next_seq, self.next_seq + len(numbers)))
        self.next_seq += len(numbers)
