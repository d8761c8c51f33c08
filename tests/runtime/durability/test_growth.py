"""A step costs the same in a long run as in a short one: in bytes, and in calls of functions.

No time is measured.
"""

import asyncio
import sys

import pytest

from offbook.actors import Agent, ChatModelAgent, Loop, tool
from offbook.runtime import AgentEvent, MemoryStore, Message, Runner, ScriptedModel, ToolCall
from offbook.runtime.codec.packing import pack, unpack
from offbook.runtime.data.events import TransferToAgent
from offbook.runtime.data.run_path import (
    SHORT,
    SharedPath,
    as_path,
    begins_with,
    extended,
    names_of,
)
from offbook.runtime.durability.path_table import PathTable, read_path, read_paths
from offbook.runtime.durability.replay import EventReader, replay

pytestmark = pytest.mark.anyio

STEPS = 1200


class Counting(MemoryStore):
    """Remembers how many bytes each write had, in their order, and what was appended."""

    def __init__(self):
        super().__init__()
        self.sizes, self.records = [], []

    async def commit(self, claim, writes, *, then="keep"):
        records = [record for write in writes for record in getattr(write, "records", ())]
        self.records += records
        self.sizes.append(
            sum(map(len, records))
            + sum(len(getattr(write, "value", None) or b"") for write in writes)
        )
        await super().commit(claim, writes, then=then)

    async def claim(self, key, owner, writes=()):
        self.records += [record for write in writes for record in getattr(write, "records", ())]
        return await super().claim(key, owner, writes)


class Tick(Agent):
    async def run(self, asked, context):
        yield AgentEvent.say("tick")


class Passing(Agent):
    """Hands over until the run is `STEPS` agents long."""

    def __init__(self, to, **options):
        super().__init__(**options)
        self.to = to

    async def run(self, asked, context):
        over = len(context.run_path) >= STEPS
        yield AgentEvent.say("done") if over else AgentEvent.of(action=TransferToAgent(self.to))


def looping(steps=STEPS):
    return Loop(name="loop", sub_agents=[Tick(name="tick")], max_iterations=steps)


def passing():
    return Passing("b", name="a", sub_agents=[Passing("a", name="b")])


@pytest.mark.parametrize("agent", [looping, passing])
async def test_the_last_steps_of_a_long_run_write_as_much_as_the_first(agent):
    store = Counting()
    result = await Runner(agent(), store=store, durability="step", max_transfers=10 * STEPS).query(
        "go"
    )
    assert result.status == "completed", result.error
    steps = store.sizes[: STEPS - 1]
    assert sum(steps[-100:]) < 1.2 * sum(steps[100:200])
    assert sum(steps) < 1500 * STEPS


async def test_the_last_steps_of_a_long_run_call_as_many_functions_as_the_first():
    marks = []

    class Marking(Tick):
        async def run(self, asked, context):
            marks.append(calls[0])
            yield AgentEvent.say("tick")

    calls = [0]

    def count(frame, event, argument):
        calls[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        loop = Loop(name="loop", sub_agents=[Marking(name="tick")], max_iterations=STEPS)
        await Runner(loop, store=MemoryStore(), durability="step").query("go")
    finally:
        sys.setprofile(before)
    assert marks[-1] - marks[-101] < 1.2 * (marks[200] - marks[100])


async def test_what_is_shown_of_a_long_run_has_plain_tuples():
    seen = []

    class Looking(Agent):
        async def run(self, asked, context):
            seen.append(context.run_path)
            yield AgentEvent.say("seen")

    store = Counting()
    loop = Loop(name="loop", sub_agents=[Looking(name="tick")], max_iterations=3 * SHORT)
    result = await Runner(loop, store=store, durability="step").query("go")
    expected = [("loop",) + ("tick",) * count for count in range(1, 3 * SHORT + 1)]
    assert seen == expected
    assert [event.run_path for event in result.events] == expected
    assert all(type(event.run_path) is tuple for event in result.events)
    assert [unpack(pack(event)) for event in result.events] == list(result.events)
    reader = EventReader()
    assert [event for record in store.records for event in reader.read(record)] == list(
        result.events
    )


@pytest.mark.parametrize("stopped_after", [1, SHORT - 1, SHORT, SHORT + 1, 3 * SHORT + 2])
async def test_a_long_run_goes_on_with_the_paths_that_it_had(stopped_after):
    played, waits = [], asyncio.Event()

    class Stopping(Agent):
        async def run(self, asked, context):
            played.append(context.run_path)
            if len(played) == stopped_after + 1:
                waits.set()
                await asyncio.Event().wait()
            yield AgentEvent.say("tick")

    store = Counting()
    count = stopped_after + 2 * SHORT
    runner = Runner(
        Loop(name="loop", sub_agents=[Stopping(name="tick")], max_iterations=count),
        store=store,
        durability="step",
    )
    run = runner.query("go", checkpoint_id="c")
    await waits.wait()
    await run.cancel()
    assert len(replay(store.records)["lanes"][""][2]) == stopped_after
    result = await runner.resume("c")
    assert result.status == "completed", result.error
    assert result.events[-1].run_path == ("loop",) + ("tick",) * count
    reader = EventReader()
    told = [event.run_path for record in store.records for event in reader.read(record)]
    assert told == [("loop",) + ("tick",) * number for number in range(1, count + 1)]


async def test_a_loop_that_has_grown_knows_who_has_played():
    waits, turn = asyncio.Event(), [0]

    class Stopping(Agent):
        async def run(self, asked, context):
            turn[0] += 1
            if turn[0] == 3:
                waits.set()
                await asyncio.Event().wait()
            yield AgentEvent.say("a")

    def loop(*more):
        return Loop(name="loop", sub_agents=[Stopping(name="a"), *more], max_iterations=4)

    store = MemoryStore()
    run = Runner(loop(), store=store).query("go", checkpoint_id="c")
    await waits.wait()
    await run.cancel()
    result = await Runner(loop(Tick(name="b")), store=store).resume("c")
    assert result.events[-1].run_path == ("loop", "a", "a", "a", "b", "a", "b")


def test_paths_share_their_beginnings():
    path = ()
    for number in range(5 * SHORT):
        path = extended(path, f"n{number}")
    names = tuple(f"n{number}" for number in range(5 * SHORT))
    assert names_of(path) == names
    assert len(path) == len(names)
    for length in (1, SHORT, SHORT + 1, 3 * SHORT, 5 * SHORT):
        assert begins_with(path, as_path(names[:length]))
        assert not begins_with(as_path(names[:length]), extended(as_path(names[:length]), "x"))
        assert not begins_with(path, extended(as_path(names[: length - 1]), "x"))
    table = PathTable()
    written = [table.write(one) for one in (path, extended(path, "x"), extended(path, "y"))]
    assert len(table.rows) == 5
    paths = read_paths(table.rows)
    assert [names_of(read_path(one, paths)) for one in written] == [
        names,
        (*names, "x"),
        (*names, "y"),
    ]
    assert isinstance(read_path(list(names), {}), SharedPath)


def approving(calls):
    @tool(needs_approval=True)
    async def pay(number: int) -> str:
        return "paid"

    first = Message(
        "assistant",
        "",
        tuple(ToolCall(f"c{number}", "pay", f'{{"number":{number}}}') for number in range(calls)),
    )
    return ChatModelAgent(name="A", model=ScriptedModel([first, "done"]), tools=[pay])


async def test_an_answer_is_recorded_once_however_many_calls_of_a_reply_were_approved():
    sizes = []
    for calls in (100, 400):
        store = Counting()
        runner = Runner(approving(calls), store=store, durability="step")
        first = await runner.query("go")
        result = await runner.resume(
            first.events[-1].action.checkpoint_id,
            {interrupt.id: True for interrupt in first.interrupts},
        )
        assert result.status == "completed", result.error
        sizes.append(sum(store.sizes) / calls)
    assert sizes[1] < 1.1 * sizes[0]
    assert sizes[1] < 4_000


async def test_the_journal_of_a_run_that_was_answered_adds_up_after_each_record():
    """Answers and open interrupts are kept apart from the frame of their agent."""
    store = Counting()
    runner = Runner(approving(3), store=store, durability="step")
    first = await runner.query("go")
    waiting = first.interrupts
    second = await runner.resume(
        first.events[-1].action.checkpoint_id, {waiting[0].id: True, waiting[2].id: False}
    )
    assert [interrupt.info.arguments for interrupt in second.interrupts] == ['{"number":1}']
    assert (await runner.approve(second.interrupts[0])).status == "completed"
    counts = []
    for number in range(1, len(store.records) + 1):
        frames = replay(store.records[:number])["frames"].values()
        counts.append(
            tuple(
                sum(len(frame.get(name, ())) for frame in frames) for name in ("pending", "answers")
            )
        )
    assert (3, 0) in counts  # all three wait
    assert (0, 3) in counts  # all three are answered
    assert (1, 0) in counts or (1, 1) in counts  # the second one waits again
    assert counts[-1] == (0, 0)
