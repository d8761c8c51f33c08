"""Runs as server-sent events: numbers, heartbeats, clients that come back and clients that go
away.
"""

import asyncio
import json
import signal

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    Shutdown,
    ToolCalls,
    UsageError,
    sse,
)
from offbook.runtime.testing import ManualClock
from tests.doubles.gated_model import Gated
from tests.doubles.held_stores import beside


def parsed(piece):
    """One server-sent event as a browser reads it: (id, event, data)."""
    lines = piece.decode().rstrip("\n").split("\n")
    fields = dict(line.split(": ", 1) for line in lines)
    return (
        int(fields["id"]) if "id" in fields else None,
        fields["event"],
        json.loads(fields["data"]),
    )


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
        return await collected(
            sse(Runner(agent("hello you"), streaming=True).query("q"), deltas=False)
        )

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
            stream = sse(
                Runner(ChatModelAgent(name="A", model=model), system=system).query("q"),
                heartbeat=15,
                clock=clock,
            )
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
            running = Runner(
                ChatModelAgent(name="A", model=model),
                system=system,
                store=MemoryStore(),
                durability=durability,
            ).query("q")
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
            running = Runner(
                ChatModelAgent(name="A", model=model),
                system=system,
                store=MemoryStore(),
                durability="step",
            ).query("q", detached=True)
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


@pytest.mark.parametrize(
    "wrong",
    [
        {"heartbeat": 0},
        {"heartbeat": -1},
        {"after": -1},
        {"after": "3"},
        {"after": True},
        {"show": "nothing"},
        {"until": True},
    ],
)
@pytest.mark.filterwarnings("ignore:run .* was never started:RuntimeWarning")
def test_wrong_settings_are_refused_at_once(wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        sse(Runner(agent("x")).query("q"), **wrong)


# --- what a client is shown ---

SECRET = "postgresql://app:hunter2@db/app"


def leaky():
    """A team of which a tool is given a secret, returns one and fails with one."""

    @tool
    async def look_up(key: str) -> str:
        """Look it up."""
        if key == "fails":
            raise ValueError(SECRET)
        return SECRET

    script = [
        ToolCalls(look_up={"key": SECRET}),
        ToolCalls(look_up={"key": "fails"}),
        ToolCalls(transfer_to_agent={"agent_name": "Public"}),
    ]
    inner = ChatModelAgent(
        name="Public",
        model=ScriptedModel([Message("assistant", "Hello.", reasoning=SECRET), ValueError(SECRET)]),
    )
    return ChatModelAgent(
        name="Internal",
        tools=[look_up],
        sub_agents=[inner],
        model=ScriptedModel([*script, ValueError(SECRET)]),
    )


def shown(run, show):
    """The events and the raw bytes of a run that answers, and of one that fails."""

    async def main():
        runner = Runner(leaky(), store=MemoryStore(), durability="step")
        return [[piece async for piece in sse(runner.query("q"), show=show)] for _ in range(2)]

    answered, failed = run(main())
    return (
        [parsed(piece) for piece in answered],
        [parsed(piece) for piece in failed],
        b"".join([*answered, *failed]).decode(),
    )


def test_by_default_a_client_is_shown_answers_handoffs_and_the_ids_of_errors(run, caplog):
    answered, failed, raw = shown(run, "answers")
    assert [(kind, data.get("message", data.get("action"))) for _, kind, data in answered[:-1]] == [
        ("message", {"type": "transfer", "agent": "Public"}),
        ("message", {"id": answered[1][2]["message"]["id"], "role": "assistant", "text": "Hello."}),
    ]
    assert answered[-1][2] == {
        "run_id": answered[0][2]["run_id"],
        "status": "completed",
        "text": "Hello.",
    }
    (_, kind, error), (_, _, end) = failed
    assert kind == "error"
    assert (
        error["error"]
        == end["error"]
        == {"id": error["error"]["id"], "message": "Something went wrong."}
    )
    assert end["status"] == "failed"
    for hidden in ("hunter2", "look_up", "Internal", "ValueError", "arguments"):
        assert hidden not in raw
    assert [
        record
        for record in caplog.records
        if error["error"]["id"] in record.getMessage() and SECRET in record.getMessage()
    ]


def test_progress_shows_the_names_of_agents_and_tools_and_nothing_that_they_are_given(run):
    answered, _, raw = shown(run, "progress")
    assert (
        next(
            data["message"]["tool_calls"][0]["name"]
            for _, _, data in answered
            if data.get("message", {}).get("tool_calls")
        )
        == "look_up"
    )
    assert {data["agent"] for _, _, data in answered[:-1]} == {"Internal", "Public"}
    assert answered[-1][2]["last_agent"] == "Public"
    assert "hunter2" not in raw


def test_a_function_says_what_is_shown(run):
    answered, _, raw = shown(
        run,
        lambda event: (
            {"by": event.agent_name}
            if event.message and event.message.role == "assistant"
            else None
        ),
    )
    assert [data for _, _, data in answered[:-1]] == [{"by": "Internal"}] * 3 + [{"by": "Public"}]
    assert answered[-1][2]["text"] == "Hello."
    assert "hunter2" not in raw


def test_all_shows_everything(run):
    *_, raw = shown(run, "all")
    assert raw.count("hunter2") > 3


# --- through interrupts, to one end ---


@tool(needs_approval=True)
async def pay(euros: int) -> str:
    """Pay."""
    return f"{euros} paid"


def payer():
    return ChatModelAgent(
        name="A",
        tools=[pay],
        model=ScriptedModel([ToolCalls(("pay", {"euros": 31})), "Well, it is done."]),
    )


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_run_that_is_interrupted_is_streamed_to_its_end(run, durability):
    async def main():
        runner = Runner(payer(), store=MemoryStore(), durability=durability, streaming=True)
        stream = sse(runner.query("q", detached=True))
        first = parsed(await anext(stream))
        (info,) = await runner.pending()
        answered = runner.approve(info.waiting[0].id)
        rest = await collected(stream)
        assert (await answered).text == "Well, it is done."
        return first, rest

    (_, kind, data), rest = run(main())
    assert kind == "interrupted"
    assert not {"action", "agent"} & data.keys()
    assert [kind for _, kind, _ in rest][-2:] == ["message", "end"]
    assert rest[-1][2]["status"] == "completed"
    words = "".join(data["delta"]["text"] for _, kind, data in rest if kind == "delta")
    assert words in ("Well, it is done.", ""), (
        "all of its words, or none if it was over when it was looked for"
    )


def test_without_wait_a_run_that_is_interrupted_ends_its_stream(run):
    async def main():
        return await collected(sse(Runner(payer(), store=MemoryStore()).query("q"), wait=False))

    assert [(kind, data.get("status")) for _, kind, data in run(main())] == [
        ("interrupted", None),
        ("end", "interrupted"),
    ]


def test_without_a_store_a_run_that_is_interrupted_has_ended(run):
    async def main():
        return await collected(sse(Runner(payer()).query("q")))

    assert [(kind, data.get("status")) for _, kind, data in run(main())][-1] == (
        "end",
        "interrupted",
    )


def test_until_ends_the_stream_without_an_end_and_leaves_the_run(run):
    async def main():
        model, over = Gated(), asyncio.Event()
        async with ActorSystem() as system:
            running = Runner(
                ChatModelAgent(name="A", model=model),
                system=system,
                store=MemoryStore(),
                durability="step",
            ).query("q", detached=True)
            streaming = asyncio.ensure_future(collected(sse(running, until=over)))
            await model.asked.wait()
            over.set()
            assert await streaming == []
            model.gate.set()
            return await running

    assert run(main()).text == "at last"


def test_a_run_that_is_drained_is_streamed_to_its_end_in_another_process(run):
    async def main():
        store, model = MemoryStore(), Gated()
        agent = ChatModelAgent(name="A", model=model)
        elsewhere = Runner(agent, system=beside(), store=store, durability="step")
        async with ActorSystem() as system:
            Runner(agent, system=system, store=store, durability="step").query(
                "q", run_id="r", detached=True
            )
            streaming = asyncio.ensure_future(collected(sse(elsewhere.attach("r"))))
            await model.asked.wait()
            await system.drain(0.05)
        model.gate.set()
        (recovered,) = await elsewhere.recover()
        assert (await recovered).text == "at last"
        return await streaming

    assert [(kind, data.get("status")) for _, kind, data in run(main())] == [
        ("message", None),
        ("end", "completed"),
    ]


def test_a_run_that_cannot_be_followed_ends_its_stream(run):
    async def main():
        return await collected(
            sse(Runner(agent("x"), store=MemoryStore(), durability="step").attach("never"))
        )

    ((_, kind, data),) = run(main())
    assert (kind, data["status"], data["error"]["message"]) == (
        "end",
        "failed",
        "Something went wrong.",
    )


def test_shutdown_is_set_by_a_signal_which_those_before_it_hear_too(run):
    async def main():
        heard = []
        before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
        try:
            async with Shutdown() as shutdown:
                assert not shutdown.is_set()
                signal.raise_signal(signal.SIGTERM)
                await asyncio.wait_for(shutdown.wait(), 5)
            async with Shutdown() as left:
                assert not left.is_set()
            assert left.is_set()
            signal.raise_signal(signal.SIGTERM)
            assert heard == [signal.SIGTERM] * 2
        finally:
            signal.signal(signal.SIGTERM, before)

    run(main())
