"""G9: a checkpoint, a journal or a row that is damaged gives a CheckpointError, and nothing has
run; or what is wrong with it does not matter.
"""

import asyncio
import contextlib
import functools
import json
import logging

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.actors import Agent, ChatModelAgent, Loop, Parallel, Sequential, ToolContext, tool
from offbook.runtime import AgentEvent, CheckpointError, Message, Runner, RunStatus, ToolCall, Usage
from offbook.runtime.codec.packing import pack, unpack
from offbook.runtime.durability.rows_as_values import as_values, read_value
from offbook.runtime.stores import RunEntry
from tests.runtime.durability.damage import content_of, damaged, put_at, store_with

pytestmark = pytest.mark.slow

done = []  # what agents and tools have done
asked = {}  # by durability: the interrupts of the run that waits
FUZZ = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


class Player:
    def __init__(self, name, *lines):
        self.name, self.lines = name, lines

    async def generate(self, request):
        done.append(self.name)
        turn = sum(message.role == "assistant" for message in request.messages)
        line = self.lines[min(turn, len(self.lines) - 1)]
        if isinstance(line, str):
            return Message.assistant(line, usage=Usage(1, 1, 0, 1))
        return Message.assistant(
            "",
            [
                ToolCall(f"{self.name}-{turn}-{name}", name, json.dumps(arguments))
                for name, arguments in line.items()
            ],
        )


@tool
async def ask(context: ToolContext) -> str:
    done.append("ask")
    return f"told {context.interrupt({'question': 'sure?'}, state=[1])}"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    done.append("pay")
    return "paid"


@tool(return_directly=True)
async def direct() -> str:
    done.append("direct")
    return "direct"


class Custom(Agent):
    async def run(self, asked, context):
        done.append("custom")

        async def make():
            return [1]

        if not context.state.get("said"):
            await context.step("made", make)
            context.state["said"] = 1
            yield AgentEvent.say("custom")
        if context.resume is None or not context.resume.is_target:
            yield context.interrupt("what?", state={"a": 1})
            return
        yield AgentEvent.say("custom done")


def make_agent():
    def player(name, *lines, **options):
        return ChatModelAgent(
            name=name, description=f"plays {name}", model=Player(name, *lines), **options
        )

    inner = Sequential(
        name="Inner",
        sub_agents=[player("I1", "one"), player("I2", {"ask": {}}, "two", tools=[ask])],
    )
    outer = player(
        "Outer",
        {"Inner": {"request": "r"}, "pay": {"amount": 1}, "direct": {}},
        "end",
        tools=[inner.as_tool(), pay, direct],
    )
    router = player(
        "Router",
        {"transfer_to_agent": {"agent_name": "Sub"}},
        sub_agents=[player("Sub", {"ask": {}}, "sub done", tools=[ask])],
    )
    both = Parallel(name="P", sub_agents=[outer, Custom(name="C"), router])
    return Sequential(
        name="Root",
        sub_agents=[player("First", "hello"), Loop(name="L", max_iterations=2, sub_agents=[both])],
    )


@functools.cache
def interrupted(durability):
    """What is in the store of a run that waits, under the id "c"; the key of its journal, and its claim."""

    async def main():
        runner = Runner(make_agent(), store=store_with({}), durability=durability)
        running = runner.query("go", checkpoint_id="c", session_values={"v": [1]}, options={"o": 1})
        result = await running
        assert result.status == "interrupted"
        asked[durability] = [interrupt.id for interrupt in result.interrupts]
        return (
            content_of(runner.store),
            f"offbook:journal:{running.id}",
            f"offbook:open:4:Root:{running.id}",
        )

    return asyncio.run(main())


def unfinished_row(run_id, agent="A", checkpoint=None):
    """The row of a run whose process was lost."""
    how = (True, "by", None, 0.0, None, None, 0, None, 0, None, None)
    return RunEntry(
        run_id,
        agent,
        "",
        "running",
        1,
        (),
        msgpack.packb((1, None, None, None, how)),
        claim=f"offbook:open:{len(agent)}:{agent}:{run_id}",
        checkpoint=checkpoint or run_id,
    )


@functools.cache
def lost():
    """The same of one that was lost before it came to rest."""
    content, journal, claim = interrupted("step")
    return (
        {
            journal: (None, content[journal][1][:-1]),
            claim: (unfinished_row(journal.split(":")[-1], "Root", "c"), ()),
        },
        journal,
        claim,
    )


async def answered(content, durability):
    """What comes of answering it. Either it is refused, and nothing has run, or it ends."""
    done.clear()
    runner = Runner(make_agent(), store=store_with(content), durability=durability)
    try:
        async with asyncio.timeout(20):
            result = await runner.resume("c", targets=dict.fromkeys(asked[durability], True))
    except CheckpointError as error:
        assert str(error)
        assert done == []
        return None
    check_ended(result)
    return result


async def recovered(content):
    done.clear()
    runner = Runner(make_agent(), store=store_with(content), durability="step")
    async with asyncio.timeout(20):
        runs = await runner.recover()
        if not runs:
            assert done == []
            return None
        result = await runs[0]
    check_ended(result)
    return result


def check_ended(result):
    assert result.status in (RunStatus.COMPLETED, RunStatus.INTERRUPTED, RunStatus.FAILED)
    assert result.error is None or "supervisor" not in str(result.error)


def test_what_is_not_damaged_goes_on(run):
    for durability in ("interrupt", "step"):
        assert run(answered(interrupted(durability)[0], durability)).status == "interrupted"
    assert run(recovered(lost()[0])).status == "interrupted"


@FUZZ
@given(data=st.data())
def test_g09_a_damaged_checkpoint_is_refused_or_goes_on(data):
    content, *_ = interrupted("interrupt")
    whole = unpack(content["c"][0])
    asyncio.run(answered({**content, "c": (pack(data.draw(damaged(whole))), ())}, "interrupt"))


@FUZZ
@given(data=st.data())
def test_g09_a_damaged_place_in_a_journal_is_refused_or_goes_on(data):
    content, *_ = interrupted("step")
    place = unpack(content["c"][0])
    asyncio.run(answered({**content, "c": (pack(data.draw(damaged(place))), ())}, "step"))


def with_damaged_record(data, content, journal):
    records = list(content[journal][1])
    index = data.draw(st.integers(0, len(records) - 1))
    records[index] = pack(data.draw(damaged(unpack(records[index]))))
    return {**content, journal: (None, records)}


@FUZZ
@given(data=st.data())
def test_g09_a_damaged_journal_is_refused_or_goes_on(data):
    content, journal, _claim = interrupted("step")
    asyncio.run(answered(with_damaged_record(data, content, journal), "step"))


@FUZZ
@given(data=st.data())
def test_g09_a_lost_run_with_a_damaged_journal_is_left_or_goes_on(data):
    content, journal, _claim = lost()
    asyncio.run(recovered(with_damaged_record(data, content, journal)))


@FUZZ
@given(data=st.data())
def test_g09_a_lost_run_with_a_damaged_row_is_left_or_goes_on(data):
    content, _journal, claim = lost()
    row = content[claim][0]
    said = msgpack.unpackb(row.value)
    row = row.replace(value=msgpack.packb(data.draw(damaged(said)), default=str))
    asyncio.run(recovered({**content, claim: (row, ())}))


@FUZZ
@given(data=st.data())
def test_g09_a_damaged_value_in_place_of_a_row_is_refused_or_is_one(data):
    content, _journal, claim = lost()
    (put, _other) = as_values([content[claim][0]])
    assert read_value(claim, put.value) == content[claim][0]
    with contextlib.suppress(CheckpointError):
        found = read_value(claim, pack(data.draw(damaged(unpack(put.value)))))
        assert isinstance(found, RunEntry)


BYTES = st.lists(
    st.tuples(
        st.sampled_from(("flip", "insert", "cut", "end")),
        st.integers(0, 100_000),
        st.integers(1, 255),
    ),
    min_size=1,
    max_size=3,
)


def spoilt(whole, changes):
    data = bytearray(whole)
    for how, index, byte in changes:
        index %= max(1, len(data))
        if how == "flip" and data:
            data[index] ^= byte
        elif how == "insert":
            data.insert(index, byte)
        elif how == "cut":
            del data[index : index + byte]
        else:
            del data[index:]
    return bytes(data)


@FUZZ
@given(
    changes=BYTES,
    record=st.integers(0, 1000),
    durability=st.sampled_from(("interrupt", "step")),
    in_journal=st.booleans(),
)
def test_g09_bytes_that_were_changed_are_refused(changes, record, durability, in_journal):
    content, journal, _claim = interrupted(durability)
    if in_journal and durability == "step":
        records = list(content[journal][1])
        whole = records[record % len(records)]
        records[record % len(records)] = changed = spoilt(whole, changes)
        content = {**content, journal: (None, records)}
    else:
        whole = content["c"][0]
        changed = spoilt(whole, changes)
        content = {**content, "c": (changed, ())}
    assert (asyncio.run(answered(content, durability)) is None) == (changed != whole)


@pytest.mark.parametrize("missing", [1, 3, 1000])
def test_g09_a_journal_that_lacks_records_is_refused(run, missing):
    content, journal, _claim = interrupted("step")
    assert (
        run(answered({**content, journal: (None, content[journal][1][:-missing])}, "step")) is None
    )
    assert (
        run(answered({**content, journal: (None, content[journal][1][missing:])}, "step")) is None
    )


def test_g09_damaged_runs_are_left_as_they_are_and_the_others_are_continued(run, caplog):
    async def main():
        store = store_with({})
        runner = Runner(Custom(name="A"), store=store, durability="step")
        ids = []
        for _ in range(6):
            running = runner.query("go")
            await running
            ids.append(running.id)
        content = content_of(store)
        for run_id in ids:
            content.pop(run_id)
            content[f"offbook:journal:{run_id}"] = (
                None,
                content[f"offbook:journal:{run_id}"][1][:-1],
            )
            content[f"offbook:open:1:A:{run_id}"] = (unfinished_row(run_id), ())
        first, second, third, fourth, *good = ids
        content[f"offbook:open:1:A:{first}"] = (unfinished_row(first).replace(value=b"junk"), ())
        content[f"offbook:open:1:A:{second}"] = (unfinished_row(second).replace(checkpoint=""), ())
        content[f"offbook:journal:{third}"] = (
            None,
            (*content[f"offbook:journal:{third}"][1], b"junk"),
        )
        start, *records = content[f"offbook:journal:{fourth}"][1]
        content[f"offbook:journal:{fourth}"] = (
            None,
            (pack(put_at(unpack(start), [0, 1, "lanes"], {})), *records),
        )
        again = Runner(Custom(name="A"), store=store_with(content), durability="step")
        with caplog.at_level(logging.ERROR, "offbook"):
            runs = await again.recover()
        assert sorted(one.id for one in runs) == sorted(good)
        assert [(await one).status for one in runs] == ["interrupted", "interrupted"]
        for bad in (first, second, third, fourth):
            assert (
                sum(
                    f"Run {bad} cannot be continued" in record.getMessage()
                    for record in caplog.records
                )
                == 1
            )
        left = content_of(again.store)
        assert {key: left.get(key) for key in content if key.split(":")[-1] in ids[:4]} == {
            key: value for key, value in content.items() if key.split(":")[-1] in ids[:4]
        }
        assert not any(holding.owner for holding in again.store._claims.values())

    run(main())
