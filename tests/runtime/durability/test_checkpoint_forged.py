"""G9: what somebody has made up on purpose: structures that go in circles, that are very deep or
very large, and numbers that no run has.
"""

import tracemalloc

import pytest

from offbook.actors import Agent
from offbook.runtime import CheckpointError, Message, Runner
from offbook.runtime.codec.packing import pack, unpack
from tests.runtime.durability.damage import content_of, put_at, store_with

MANY = 20_000
played = []


class Asks(Agent):
    async def run(self, asked, context):
        played.append(context.run_id)
        yield context.interrupt("?")


def make_runner(content, durability):
    return Runner(Asks(name="A"), store=store_with(content), durability=durability)


async def interrupted(durability):
    """What is in the store of a run that waits; and the key of its journal."""
    runner = make_runner({}, durability)
    running = runner.query("go", checkpoint_id="c")
    await running
    return content_of(runner.store), f"offbook:journal:{running.id}"


async def refused(content, durability, *words):
    played.clear()
    with pytest.raises(CheckpointError) as caught:
        await make_runner(content, durability).resume("c", data=1)
    for word in words:
        assert word in str(caught.value), caught.value
    assert played == []


def frames_of(checkpoint):
    ((frame_id, frame),) = checkpoint["image"]["frames"].items()
    return frame_id, frame


def circle(checkpoint):
    """Two agents, each of which was cast by the other."""
    frame_id, frame = frames_of(checkpoint)
    return {frame_id: {**frame, "in": "other"}, "other": {**frame, "in": frame_id}}


def chain(checkpoint):
    """Agents that have cast each other, one below the other, listed from the lowest on."""
    frame_id, frame = frames_of(checkpoint)
    chained = {f"f{number}": {**frame, "in": f"f{number - 1}"} for number in range(1, MANY)} | {
        "f1": {**frame, "in": frame_id}
    }
    return {**dict(reversed(chained.items())), frame_id: frame}


@pytest.mark.slow
@pytest.mark.parametrize(("forge", "words"), [(circle, "cycle"), (chain, "")])
def test_g09_agents_that_are_below_each_other_are_refused(run, forge, words):
    async def main():
        content, _journal = await interrupted("interrupt")
        checkpoint = unpack(content["c"][0])
        forged = put_at(checkpoint, ["image", "frames"], forge(checkpoint))
        await refused({"c": (pack(forged), ())}, "interrupt", "damaged", words)

    run(main())


LANES = {
    "itself": {"": [None, 0, []], "a": ["a", 0, []]},
    "each other": {"": [None, 0, []], "a": ["b", 0, []], "b": ["a", 0, []]},
    "the first": {"": ["a", 0, []], "a": ["", 0, []]},
    "a long way round": {
        "": [None, 0, []],
        **{f"l{number}": [f"l{(number + 1) % MANY}", 0, []] for number in range(MANY)},
    },
}


@pytest.mark.parametrize("lanes", LANES.values(), ids=LANES)
@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g09_lanes_that_are_above_each_other_are_refused(run, lanes, durability):
    """In a journal those that nobody uses are left out; so somebody uses them."""

    async def main():
        content, journal = await interrupted(durability)
        used = next(reversed(lanes))
        if durability == "interrupt":
            checkpoint = unpack(content["c"][0])
            frame_id, _frame = frames_of(checkpoint)
            forged = put_at(
                put_at(checkpoint, ["image", "lanes"], lanes),
                ["image", "frames", frame_id, "lane"],
                used,
            )
            await refused({"c": (pack(forged), ())}, durability, "cycle")
        else:
            start, *records = (unpack(record) for record in content[journal][1])
            frame_id, frame = next(
                (change[1], unpack(change[2]))
                for record in records
                for change in record
                if change[0] == "frame"
            )
            start[0][1]["lanes"] = lanes
            records[-1].append(["frame", frame_id, pack({**frame, "lane": used})])
            await refused(
                {**content, journal: (None, [pack(record) for record in (start, *records)])},
                durability,
                "cycle",
            )

    run(main())


def test_g09_very_many_lanes_below_each_other_take_no_long_time(run):
    async def main():
        content, _journal = await interrupted("interrupt")
        lanes = {
            "": [None, 0, []],
            "l0": ["", 0, []],
            **{f"l{number}": [f"l{number - 1}", 0, []] for number in range(1, MANY)},
        }
        forged = put_at(unpack(content["c"][0]), ["image", "lanes"], dict(reversed(lanes.items())))
        assert (
            await make_runner({"c": (pack(forged), ())}, "interrupt").resume("c")
        ).status == "interrupted"

    run(main())


def test_g09_a_journal_does_not_grow_by_being_read(run):
    """Lanes that are put behind one another again and again have no more in them than was said."""

    async def main():
        content, journal = await interrupted("step")
        start, *records = (unpack(record) for record in content[journal][1])
        row = ["A", ["A"], "x", Message.user("again")]
        start[0][1]["lanes"] = {"": [None, 0, [row] * 10], "a": ["", 0, [row] * 10]}
        records[0] += [["joined", "", ["a", ""]], ["joined", "a", ["", "a"]]] * 60
        forged = {**content, journal: (None, [pack(record) for record in (start, *records)])}
        tracemalloc.start()
        try:
            assert (await make_runner(forged, "step").resume("c")).status == "interrupted"
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()

    run(main())


CHANGES = [
    (["number"], 10**5000),
    (["number"], 0),
    (["number"], -1),
    (["run"], "x" * 5000),
    (["run"], None),
    (["checkpoint"], "1"),
    (["checkpoint"], 10**5000),
    (["image", "format"], 10**5000),
    (["image", "format"], None),
    (["image", "shape"], ["A"]),
    (["image", "shape"], ["B", "Asks", [], None]),
    (["image", "seq"], float("inf")),
    (["image", "seq"], -5),
    (["image", "values"], {1: 2}),
    (["image", "options"], [["model", None, None, {"no such setting": 1}]]),
    (["image", "options"], [["plain", "A", None, {}]]),
    (["image", "lanes"], {}),
    (["image", "frames"], {}),
    (["image", "session_id"], 1),
    (["image", "usage"], 1),
    (["image", "stored"], ["x" * 5000, {"": 5}]),
    (["image", "stored"], ["x", {"": 5}]),
    (["image", "stored"], ["x", {"": -5, "a": 1}]),
    (["image", "stored"], 1),
]


@pytest.mark.parametrize(
    ("path", "value"),
    CHANGES,
    ids=[f"{'.'.join(path)}-{number}" for number, (path, _value) in enumerate(CHANGES)],
)
def test_g09_what_no_run_has_is_refused(run, path, value):
    async def main():
        content, _journal = await interrupted("interrupt")
        forged = put_at(unpack(content["c"][0]), path, value)
        await refused({"c": (pack(forged), ())}, "interrupt")

    run(main())


def test_g09_a_session_that_holds_what_no_message_is_is_refused(run):
    async def main():
        runner = make_runner({}, "interrupt")
        await runner.session("s").query("hello")
        _value, (record,) = content_of(runner.store)["offbook:session:s"]
        forged = put_at(unpack(record), ["messages", 0, "tool_calls"], 5)
        session = make_runner({"offbook:session:s": (None, [pack(forged)])}, "interrupt").session(
            "s"
        )
        with pytest.raises(CheckpointError):
            await session.query("and now?")

    run(main())


def test_g09_an_answered_mark_says_so_whatever_is_in_it(run):
    async def main():
        content, _journal = await interrupted("interrupt")
        run_id = unpack(content["c"][0])["run"]
        await refused(
            {**content, f"offbook:answered:{run_id}@1": (b"junk", ())},
            "interrupt",
            "already answered",
        )

    run(main())
