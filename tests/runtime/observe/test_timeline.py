"""Pictures of runs over time: who ran when and beside whom, what models and tools took, when the
run waited, and what was lost with a process.
"""

import asyncio
import time
import xml.etree.ElementTree as ET

import pytest

from offbook.actors import ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    CheckpointNotFound,
    InterruptContext,
    Interrupted,
    MemoryStore,
    Message,
    Runner,
    ScriptedModel,
    SQLiteStore,
    Timeline,
    ToolCall,
    ToolCalls,
    TransferToAgent,
    UsageError,
    timeline,
)
from offbook.runtime.observe.timeline import timeline_of
from offbook.runtime.run.kept.kept_life import KeptEvent, KeptLife, KeptMark
from tests.doubles.agents import PlannedAgent
from tests.doubles.left_runs import Counts, left_in_the_middle


async def passed(moment):
    """Wait until it is later than that."""
    while time.time() <= moment:
        await asyncio.sleep(0)


class Story:
    """Events of a run that is written down by hand: each with its second."""

    def __init__(self):
        self.events = []

    def add(self, at, path, message=None, **what):
        path = tuple(path.split("/"))
        seq = len(self.events) + 1
        self.events.append(
            AgentEvent(
                path[-1],
                path,
                message,
                seq=seq,
                timestamp=1000.0 + at,
                run_id="r1",
                invocation_id="/".join(path),
                **what,
            )
        )

    def says(self, at, path, text="", calls=()):
        self.add(at, path, Message.assistant(text, [ToolCall(call, call, "{}") for call in calls]))

    def tool(self, at, path, call, **what):
        self.add(at, path, Message.tool("result", call, call), **what)


def spans(picture):
    """Each span of each row: (agent, from, to), in seconds since the start."""
    return [
        (row.name, round(span.start - picture.start, 3), round(span.end - picture.start, 3))
        for row in picture.rows
        for span in row.spans
    ]


def parts(picture):
    return [
        (
            row.name,
            part.kind,
            part.name,
            round(part.start - picture.start, 3),
            round(part.end - picture.start, 3),
        )
        for row in picture.rows
        for span in row.spans
        for part in span.parts
    ]


def asker(name, *calls, **options):
    return ChatModelAgent(name=name, model=ScriptedModel(list(calls)), **options)


@tool
def confirm(context: ToolContext) -> str:
    """Ask."""
    return f"said {context.interrupt('Sure?')}"


def told():
    """A router asks its model for 1 s and transfers; Weather asks for 2 s, its tool takes 3 s, and
    it answers after one more.
    """
    story = Story()
    story.says(0, "Router", "I begin")
    story.says(1, "Router", calls=["transfer_to_agent"])
    story.tool(1, "Router", "transfer_to_agent", action=TransferToAgent("Weather"))
    story.says(3, "Router/Weather", calls=["get_weather"])
    story.tool(6, "Router/Weather", "get_weather")
    story.says(7, "Router/Weather", "sunny")
    return story.events


def test_a_reply_began_with_what_its_model_was_asked_and_a_tool_with_its_call():
    picture = timeline(told())
    assert spans(picture) == [("Router", 0, 1), ("Weather", 1, 7)]
    assert parts(picture) == [
        ("Router", "model", "Router", 0, 1),
        ("Weather", "model", "Weather", 1, 3),
        ("Weather", "tool", "get_weather", 3, 6),
        ("Weather", "model", "Weather", 6, 7),
    ]
    assert (picture.seconds("model"), picture.seconds("tool")) == (4, 3)
    assert picture.summary() == ["7 s", "models 4 s", "tools 3 s"]


def test_the_text_has_a_line_for_each_agent_and_each_tool():
    assert timeline(told()).text(60, ascii=True).split("\n") == [
        "Router run r1",
        "7 s, models 4 s, tools 3 s",
        "                0 s                     5 s",
        "Router          #####                                    1 s",
        "  Weather           ###########--------------#####       6 s",
        "    get_weather               ===============            3 s",
        "# model  = tool  - between calls",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_of_the_text_is_wider_than_it_is_told(width):
    story = Story()
    story.says(0, "A" * 70, "begins")
    story.says(86_400, "A" * 70, calls=["b" * 90])
    story.tool(86_401, "A" * 70, "b" * 90)
    for text in (
        timeline(story.events).text(width),
        timeline(story.events).text(width, ascii=True),
    ):
        assert max(map(len, text.split("\n"))) <= width
    timeline(story.events).text(ascii=True).encode("ascii")


@pytest.mark.parametrize("seconds", [383, 59 * 60 + 59, 23 * 3600 + 59 * 60])
def test_a_long_wait_for_an_answer_leaves_its_line_as_wide_as_the_others(seconds):
    story = Story()
    story.says(0, "Desk", "begins")
    story.says(1, "Desk", calls=["pay"])
    story.add(1, "Desk", action=Interrupted((InterruptContext("i1", ()),)))
    story.tool(1 + seconds, "Desk", "pay")
    story.says(2 + seconds, "Desk", "done")
    lines = timeline(story.events).text(80).split("\n")
    assert any(line.startswith("waits for an answer") for line in lines)
    assert max(map(len, lines)) <= 80


def test_those_of_a_parallel_begin_together_and_what_comes_behind_it_after_all_of_them():
    story = Story()
    story.says(2, "Team/Both/One", "one")
    story.says(3, "Team/Both/Two", "two")
    story.says(4, "Team/Both/Last", "last")
    both = Parallel(name="Both", sub_agents=[asker("One"), asker("Two")])
    team = Sequential(name="Team", sub_agents=[both, asker("Last")])
    with_the_tree = timeline(story.events, runner=Runner(team))
    assert spans(with_the_tree) == [("One", 0, 0), ("Two", 0, 1), ("Last", 1, 2)]


def test_an_agent_that_comes_again_has_one_row_and_one_that_is_there_twice_has_two():
    story = Story()
    for number, at in enumerate((1, 2, 3)):
        story.says(at, "Loop" + "/Writer" * (number + 1), "text")
    assert [(row.name, len(row.spans)) for row in timeline(story.events).rows] == [("Writer", 3)]
    story = Story()
    story.says(1, "Both/One/Same", "begins")
    story.says(1, "Both/Two/Same", "begins")
    story.says(5, "Both/One/Same", "ends")
    story.says(5, "Both/Two/Same", "ends")
    assert [(row.name, len(row.spans)) for row in timeline(story.events).rows] == [
        ("Same", 1),
        ("Same", 1),
    ]


def test_time_in_which_a_run_waited_is_a_band_and_counts_for_no_tool():
    story = Story()
    story.says(0, "Payer", "begins")
    story.says(1, "Payer", calls=["pay"])
    story.add(1, "Payer", action=Interrupted((InterruptContext("i", ()),)))
    story.tool(86_401, "Payer", "pay")
    story.says(86_402, "Payer", "paid")
    picture = timeline(story.events)
    assert [
        (band.kind, band.start - picture.start, band.end - picture.start) for band in picture.bands
    ] == [("waits", 1, 86_401)]
    assert (picture.seconds("model"), picture.seconds("tool")) == (2, 0)
    line = next(
        line
        for line in picture.text().split("\n")
        if line.startswith("Payer ") and "run" not in line
    )
    assert line.count("█") > 20, "a day of waiting leaves room for two seconds of work"


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize("durability", ["step", "interrupt"])
def test_waiting_for_an_approval_is_waiting_and_no_time_of_a_tool(run, durability):
    async def main():
        runner = Runner(
            asker("A", ToolCalls(pay={}), "done", tools=[pay]),
            store=MemoryStore(),
            durability=durability,
            keep="all",
        )
        first = await runner.query("go", run_id="r")
        waiting = await runner.timeline("r")
        await passed(waiting.end + 0.2)
        later = await runner.timeline("r")
        await runner.approve(first.interrupts[0])
        return waiting, later, await runner.timeline("r")

    waiting, later, done = run(main())
    assert [band.kind for band in waiting.bands] == ["waits"]
    assert later.end - later.start > 0.2 > later.active(later.start, later.end)
    assert [band.kind for band in done.bands] == ["waits"]
    assert done.bands[0].end - done.bands[0].start > 0.2 > done.seconds("tool")


def test_a_process_that_is_lost_right_after_an_answer_does_not_count_the_wait_twice():
    story = Story()
    story.says(0, "Payer", "begins")
    story.says(1, "Payer", calls=["pay"])
    story.tool(30, "Payer", "pay")
    events = tuple(KeptEvent(event, None) for event in story.events)
    marks = (
        KeptMark("interrupted", 1001.0, 2),
        KeptMark("resumed", 1010.0, 2),
        KeptMark("resumed", 1020.0, 2),
    )
    picture = timeline_of(KeptLife("r", events, marks))
    assert [
        (band.kind, band.start - picture.start, band.end - picture.start) for band in picture.bands
    ] == [("waits", 1, 10), ("lost", 10, 20)]
    assert picture.seconds("tool") == 10


def test_the_legend_has_all_that_is_drawn():
    story = Story()
    story.says(0, "A", "begins")
    story.says(1, "A", calls=["pay"])
    story.add(1, "A", action=Interrupted((InterruptContext("i", ()),)))
    story.tool(9, "A", "pay")
    story.tool(10, "A", "pay")
    story.add(12, "A", error=ValueError("no"))
    picture = timeline(story.events)
    for word in ("model", "tool", "own work", "between calls", "failed", "waits for an answer"):
        assert f">{word}<" in picture.svg()
    assert "stands still" in picture.text(40)


def test_an_agent_that_fails_is_told():
    story = Story()
    story.says(0, "A", "begins")
    story.add(2, "A", error=ValueError("<b>no</b>"))
    picture = timeline(story.events)
    assert picture.rows[0].spans[0].failed
    assert "&lt;b&gt;no&lt;/b&gt;" in picture.svg()


@pytest.mark.parametrize("form", [Timeline.svg, Timeline.html])
def test_drawing_and_page_escape_all_that_was_said_and_load_nothing(form):
    story = Story()
    evil = "</text></svg><script>alert(1)</script><img src=x onerror=alert(1)>'\""
    story.says(0, evil, "begins")
    story.says(1, evil, evil, calls=[evil])
    story.tool(2, evil, evil)
    shown = form(timeline(story.events))
    assert "<script" not in shown
    assert "<img" not in shown
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    ET.fromstring(timeline(story.events).svg())


def test_a_run_of_many_thousand_events_is_a_picture_of_bounded_size():
    story = Story()
    for number in range(8000):
        story.says(number, "Busy", "text", calls=[f"call {number}"])
        story.tool(number + 0.5, "Busy", f"call {number}")
    assert len(timeline(story.events).svg()) < 2_000_000


def test_a_run_its_result_and_what_the_store_has_of_it_show_the_same(run):
    async def main():
        runner = Runner(
            asker("A", ToolCalls(confirm={}), "done", tools=[confirm]),
            store=MemoryStore(),
            durability="step",
        )
        first = runner.query("go")
        assert timeline(first).rows == ()  # it has not begun
        result = await first
        assert timeline(first) == timeline(result)
        resumed = await runner.resume(first.id, data="yes")
        kept = await runner.timeline(first.id)
        both = timeline([result, resumed])
        assert (kept.agent, kept.status, kept.run_id) == ("A", "completed", first.id)
        for picture in (kept, both):
            assert [(row.name, len(row.spans)) for row in picture.rows] == [("A", 1)]
            assert [part.kind for part in picture.rows[0].spans[0].parts] == [
                "model",
                "tool",
                "model",
            ]
            (band,) = picture.bands
            assert band.kind == "waits"
            assert (
                result.events[0].timestamp <= band.start <= band.end <= resumed.events[0].timestamp
            )

    run(main())


def test_what_the_store_keeps_tells_which_agents_were_beside_each_other(run):
    async def main():
        both = Parallel(
            name="Both", sub_agents=[PlannedAgent("One", "x", "y"), PlannedAgent("Two", "x", "y")]
        )
        team = Sequential(name="Team", sub_agents=[both, PlannedAgent("Last", "x")])
        store = MemoryStore()
        first = Runner(team, store=store, durability="step").query("go")
        await first
        picture = await Runner(PlannedAgent("Other", "x"), store=store).timeline(first.id)
        row = {one.name: one.spans[0] for one in picture.rows}
        assert row["One"].start == row["Two"].start == picture.start
        assert row["Last"].start == max(row["One"].end, row["Two"].end)

    run(main())


def test_what_was_lost_between_the_end_of_a_process_and_the_recovery_is_a_band(run, tmp_path):
    async def main():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            gate, reached = asyncio.Event(), asyncio.Event()

            class Gate:
                async def wait(self):
                    reached.set()
                    await gate.wait()

            agent = Counts(Gate())
            lost = await left_in_the_middle(store, agent, reached)
            gate.set()
            runner = Runner(agent, store=store, durability="step")
            (again,) = await runner.recover()
            result = await again
            (band,) = (await runner.timeline(lost.id)).bands
            assert band.kind == "lost"
            assert band.start <= band.end <= result.events[-1].timestamp

    run(main())


def test_by_the_id_of_a_run_it_is_found_where_no_loop_is_running(tmp_path):
    runner = Runner(PlannedAgent("A", "x"), store=MemoryStore(), durability="step")
    result = runner.query("go", run_id="order-7").result()
    picture = timeline("order-7", runner=runner)
    assert spans(picture)[0][0] == "A"
    assert len(result.events) == 1


def test_what_is_no_run_is_named(run):
    runner = Runner(PlannedAgent("A", "x"), store=MemoryStore())
    with pytest.raises(UsageError, match=r"timeline\('order-7', runner=runner\)"):
        timeline("order-7")
    with pytest.raises(UsageError, match="must get the results of one run or its events"):
        timeline([1, 2])
    with pytest.raises(UsageError, match="the argument must be a run, a result, events"):
        timeline(7)
    with pytest.raises(CheckpointNotFound, match="the store has no run 'nothing'"):
        timeline("nothing", runner=runner)
    with pytest.raises(UsageError, match="needs a Runner with a store"):
        timeline("nothing", runner=Runner(PlannedAgent("A", "x")))

    async def on_a_loop():
        with pytest.raises(UsageError, match=r"await runner\.timeline"):
            timeline("order-7", runner=runner)

    run(on_a_loop())
    assert timeline([]).text() == "a run\n0 s\n     0 s"
