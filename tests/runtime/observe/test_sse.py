"""Runs as server-sent events: numbers, heartbeats, clients that come back and clients that go away."""

import asyncio
import json

import pytest

from tests.doubles.gated_model import Gated
from understudy.actors import ChatModelAgent
from understudy.runtime import ActorSystem, MemoryStore, Runner, RunStatus, ScriptedModel, UsageError, sse
from understudy.runtime.testing import ManualClock


def parsed(piece):
    """One server-sent event as a browser reads it: (id, event, data)."""
    lines = piece.decode().rstrip("\n").split("\n")
    fields = dict(line.split(": ", 1) for line in lines)
    return int(fields["id"]) if "id" in fields else None, fields["event"], json.loads(fields["data"])


async def collected(stream):
    return [parsed(piece) async for piece in stream]


def agent(reply, name="A"):
    return ChatModelAgent(name=name, model=ScriptedModel([reply]))


def test_each_event_has_its_number_and_the_end_says_how_the_run_has_ended(run):
    async def main():
        return await collected(sse(Runner(agent("hello you"), streaming=True).query("q")))

    *events, (number, kind, end) = run(main())
    assert [(one, kind) for one, kind, _ in events] == [(1, "delta"), (2, "delta"), (3, "message")]
    assert (number, kind) == (None, "end")
    assert (end["status"], end["text"]) == ("completed", "hello you")


def test_deltas_may_be_left_out(run):
    async def main():
        return await collected(sse(Runner(agent("hello you"), streaming=True).query("q"), deltas=False))

    assert [(number, kind) for number, kind, _ in run(main())] == [(3, "message"), (None, "end")]


def test_a_line_break_in_a_text_does_not_end_the_event(run):
    async def main():
        return await collected(sse(Runner(agent("one\n\ntwo\rthree\u2028four")).query("q")))

    assert run(main())[0][2]["message"]["text"] == "one\n\ntwo\rthree\u2028four"


def test_a_failed_run_ends_with_what_it_failed_with(run):
    async def main():
        return await collected(sse(Runner(agent(ValueError("no luck"))).query("q")))

    *_, (_, kind, failure), (_, _, end) = run(main())
    assert kind == "error"
    assert failure["error"] == end["error"]
    assert end["status"] == "failed"


def test_silence_is_filled_with_heartbeats(run, until):
    async def main():
        clock, model = ManualClock(), Gated()
        async with ActorSystem() as system:
            stream = sse(Runner(ChatModelAgent(name="A", model=model), system=system).query("q"), heartbeat=15, clock=clock)
            for _ in range(2):
                coming = asyncio.ensure_future(anext(stream))
                await until(lambda: clock.pending)
                clock.advance(14)
                assert not coming.done()
                clock.advance(1)
                assert await coming == b": heartbeat\n\n"
            model.gate.set()
            return await collected(stream)

    assert [kind for _, kind, _ in run(main())] == ["message", "end"]


def test_a_client_that_comes_back_gets_what_it_missed(run):
    async def main():
        store = MemoryStore()
        runner = Runner(agent("hello you"), store=store, durability="step", streaming=True)
        first = await collected(sse(runner.query("q", run_id="r", detached=True)))
        second = await collected(sse(runner.attach("r", after=1)))
        third = await collected(sse(runner.attach("r"), after=3))
        return first, second, third

    first, second, third = run(main())
    assert [number for number, _, _ in first] == [1, 2, 3, None]
    assert [(number, kind) for number, kind, _ in second] == [(3, "message"), (None, "end")]
    assert [kind for _, kind, _ in third] == ["end"]
    assert second[0][2]["message"] == first[2][2]["message"]


@pytest.mark.parametrize("durability", ["none", "step"])
def test_a_client_that_goes_away_cancels_its_run(run, durability):
    async def main():
        model = Gated()
        async with ActorSystem() as system:
            running = Runner(ChatModelAgent(name="A", model=model), system=system, store=MemoryStore(), durability=durability).query("q")
            request = asyncio.ensure_future(collected(sse(running)))
            await model.asked.wait()
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            return await running

    assert run(main()).status is RunStatus.CANCELLED


def test_a_client_that_goes_away_leaves_a_detached_run_at_work(run):
    async def main():
        model = Gated()
        async with ActorSystem() as system:
            running = Runner(ChatModelAgent(name="A", model=model), system=system, store=MemoryStore(), durability="step").query("q", detached=True)
            stream = sse(running)
            request = asyncio.ensure_future(anext(stream))
            await model.asked.wait()
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            await stream.aclose()
            model.gate.set()
            return await running

    assert run(main()).text == "at last"


@pytest.mark.parametrize("wrong", [{"heartbeat": 0}, {"heartbeat": -1}, {"after": -1}, {"after": "3"}, {"after": True}])
def test_wrong_settings_are_refused_at_once(wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        sse(Runner(agent("x")).query("q"), **wrong)
