"""Every released format of checkpoints, journals and sessions is read; one from the future is
refused.
"""

import asyncio
import logging

import msgpack
import pytest

from offbook.runtime import AgentEvent, CheckpointError, Message, Runner, Usage
from offbook.runtime.codec.packing import pack, unpack
from offbook.runtime.durability.compatibility import FORMAT
from offbook.runtime.durability.kept_outcome import pack_outcome, read_outcome
from tests.programs.make_checkpoints import AGENTS, FOLDER, content_of, fill, go_on
from tests.runtime.durability.damage import put_at

FILES = sorted(FOLDER.glob("format-*.bin"))


def read(path):
    return msgpack.unpackb(path.read_bytes())


def kind_of(path):
    return path.stem.split("-")[2]


def test_of_the_present_format_there_is_a_file_for_each_kind():
    assert {f"format-{FORMAT}-{kind}.bin" for kind in AGENTS} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_written_once_goes_on_to_the_same_end(run, path):
    kept = read(path)
    assert run(go_on(kind_of(path), kept["content"], kept["targets"])) == kept["then"]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if kind_of(path) in ("image", "long", "journal")],
    ids=lambda path: path.stem,
)
def test_the_agents_of_the_files_do_what_they_did_when_those_were_made(run, path):
    """So that a file that does not go on as it should is not their fault."""
    from tests.programs.make_checkpoints import make

    content, targets = run(make(kind_of(path)))
    assert run(go_on(kind_of(path), content, targets)) == read(path)["then"]


def newest(kind):
    return read(FOLDER / f"format-{FORMAT}-{kind}.bin")


def journal_in(content):
    (key,) = (key for key in content if key.startswith("offbook:journal:"))
    return key


def newer_header(content):
    content["c"][0] = content["c"][0][:3] + b"\x02" + content["c"][0][4:]
    return 1  # of the bytes themselves


def newer_checkpoint(content):
    content["c"][0] = pack({**unpack(content["c"][0]), "checkpoint": FORMAT + 1})


def newer_image(content):
    content["c"][0] = pack(put_at(unpack(content["c"][0]), ["image", "format"], FORMAT + 1))


def newer_journal(content):
    records = content[journal_in(content)][1]
    records[0] = pack(put_at(unpack(records[0]), [0, 1, "format"], FORMAT + 1))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("image", newer_header),
        ("image", newer_checkpoint),
        ("image", newer_image),
        ("journal", newer_checkpoint),
        ("journal", newer_journal),
    ],
)
def test_a_format_of_the_future_is_refused_and_says_what_to_do(kind, change):
    content = newest(kind)["content"]
    known = change(content) or FORMAT

    async def main():
        runner = Runner(
            AGENTS[kind](),
            store=await fill(content),
            durability="step" if kind == "journal" else "interrupt",
        )
        with pytest.raises(
            CheckpointError,
            match=rf"newer version.*format is {known + 1}.*reads up to {known}.*Update",
        ):
            await runner.resume("c", data=True)
        assert content_of(runner.store) == content, "it is as it was"

    asyncio.run(main())


def test_a_lost_run_of_the_future_is_left_for_whoever_can_read_it(caplog):
    content = newest("lost")["content"]
    newer_journal(content)

    async def main():
        runner = Runner(AGENTS["lost"](), store=await fill(content), durability="step")
        with caplog.at_level(logging.ERROR, "offbook"):
            assert await runner.recover() == []
        assert "newer version" in caplog.text
        assert content_of(runner.store) == content

    asyncio.run(main())


def test_a_session_of_the_future_is_refused():
    content = newest("session")["content"]
    ((_value, records),) = content.values()
    records[1] = pack({**unpack(records[1]), "session": 2})

    async def main():
        session = Runner(AGENTS["session"](), store=await fill(content)).session("s")
        with pytest.raises(CheckpointError, match=r"newer version.*Update"):
            await session.history()
        with pytest.raises(CheckpointError, match=r"newer version.*Update"):
            await session.query("hello")

    asyncio.run(main())


def test_how_a_run_has_ended_names_a_message_that_its_journal_has():
    message = Message.assistant("the answer")
    event = AgentEvent("A", ("A",), message, seq=7, run_id="r", invocation_id="i")
    said = {
        "outcome": 1,
        "root": "A",
        "status": "completed",
        "message": 7,
        "usage": (1, 2, 3, 4),
        "agent": "A",
        "output": 0,
    }
    result = read_outcome("r", pack(said), (event,))
    assert (result.status, result.final_message, result.final_output, result.usage) == (
        "completed",
        message,
        "the answer",
        Usage(1, 2, 3, 4),
    )
    assert unpack(pack_outcome(result, "A", None, journaled=True)) == said
    with pytest.raises(CheckpointError, match="event 7"):
        read_outcome("r", pack(said), ())
