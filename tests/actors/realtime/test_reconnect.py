"""A connection is lost, and the conversation goes on over another one."""

import asyncio

import pytest

from offbook.actors import handoff as _handoff  # noqa: F401
from offbook.actors import tool
from offbook.actors.realtime import (
    OpenAIRealtimeModel,
    OpenAIRealtimeSIPModel,
    RealtimeAgent,
    RealtimeRunner,
    Reconnect,
)
from offbook.actors.realtime.local import Call, Fault, Gate, LocalRealtimeServer, Reply, Say, speech
from offbook.runtime import Backoff, ModelError, UsageError
from offbook.runtime.sessions.session_policy import keep_last
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import desk, until

AGENT = RealtimeAgent("desk", "Answer.")


def conversation(at):
    """What the far side holds, as text."""
    found = []
    for item in at.server.session.items:
        if item["type"] == "message":
            found.append(item["content"][0].get("text") or item["content"][0].get("transcript"))
        else:
            found.append(item.get("name") or item.get("output"))
    return found


def test_case_51_a_drop_in_mid_reply_is_followed_by_one_response(run):
    async def main():
        gate = Gate()
        async with desk(
            AGENT,
            Reply(Say("One.")),
            Reply(Say("Two and", ms=500), gate),
            otherwise=Reply(Say("Three.")),
        ) as at:
            await at.ask("first")
            await at.session.send_message("second")
            await at.heard.until(lambda: len(at.heard.of("audio")) == 7)
            at.server.session.peer.abort()
            (event,) = await at.heard.until_shown("reconnected")
            await at.heard.until_shown("agent_end", 3)
            assert (event.attempt, event.replayed, event.resumed) == (1, 4, False)
            assert [one.status for one in at.heard.of("agent_end")] == [
                "completed",
                "interrupted",
                "completed",
            ]
            assert conversation(at) == ["first", "One.", "second", "Two and", "Three."]
            assert len(at.server.sent("response.create", 1)) == 1
            kinds = [
                event.data.status
                for event in at.heard.of("raw_model_event")
                if event.data.type == "connection_status"
            ]
            assert kinds == ["connected", "disconnected", "connecting", "connected"]

    run(main())


def test_case_51_a_drop_while_a_tool_runs_gives_one_output_and_one_response(run):
    async def main():
        go = asyncio.Event()

        @tool
        async def look() -> str:
            """Look."""
            await go.wait()
            return "found"

        async with desk(
            RealtimeAgent("a", tools=[look]),
            Reply(Call("look", call_id="c")),
            otherwise=Reply(Say("Found.")),
        ) as at:
            await at.ask("look")
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            go.set()
            await at.heard.until_shown("agent_end", 2)
            assert conversation(at) == ["look", "look", "found", "Found."]
            assert len(at.server.responses) == 2

    run(main())


def test_case_51_a_drop_while_a_call_waits_for_approval(run):
    async def main():
        @tool(needs_approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        async with desk(
            RealtimeAgent("a", tools=[pay]),
            Reply(Call("pay", call_id="c")),
            otherwise=Reply(Say("Paid.")),
        ) as at:
            await at.ask("pay")
            await at.heard.until_shown("tool_approval_required")
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            await at.session.approve_tool_call("c")
            await at.heard.until_shown("agent_end", 2)
            assert conversation(at) == ["pay", "pay", "paid", "Paid."]

    run(main())


@pytest.mark.parametrize(
    "fault",
    [
        Fault("reset", "conversation.item.create", nth=4),
        Fault("reset", "session.update", nth=2),
        Fault(1011, "conversation.item.create", nth=5),
    ],
)
def test_case_51_a_drop_during_the_replay_or_the_second_connect(run, fault):
    async def main():
        clock = ManualClock()
        async with desk(
            AGENT, Reply(Say("One.")), otherwise=Reply(Say("Two.")), faults=[fault], clock=clock
        ) as at:
            await at.ask("first")
            at.server.session.peer.abort()
            waiting = asyncio.create_task(at.heard.until_shown("reconnected"))
            while not waiting.done():
                clock.advance(1)
                await asyncio.sleep(0)
            await waiting
            asking = asyncio.create_task(at.ask("second"))
            while not asking.done():
                clock.advance(1)
                await asyncio.sleep(0)
            await asking
            assert conversation(at) == ["first", "One.", "second", "Two."]

    run(main())


@pytest.mark.parametrize(
    ("kind", "nth", "after"),
    [
        ("session.update", 2, False),
        ("session.update", 2, True),
        ("conversation.item.create", 2, False),
    ],
)
def test_case_52_a_drop_in_mid_handoff_leaves_one_agent_in_charge_with_its_settings(
    run, kind, nth, after
):
    async def main():
        billing = RealtimeAgent("billing", "Bills.")
        triage = RealtimeAgent("triage", "Ask.", handoffs=[billing])
        faults = [Fault("reset", kind, nth=nth, after=after)]
        async with desk(
            triage,
            Reply(Call("transfer_to_billing", "{}", "h")),
            otherwise=Reply(Say("Here.")),
            faults=faults,
        ) as at:
            await at.session.send_message("my bill")
            await at.heard.until_shown("reconnected")
            await at.heard.until_shown("agent_end", 2)
            assert at.session.current_agent is billing
            assert at.server.session.settings["instructions"] == "Bills."
            assert conversation(at) == [
                "my bill",
                "transfer_to_billing",
                '{"assistant": "billing"}',
                "Here.",
            ]
            assert len(at.heard.of("handoff")) == 1

    run(main())


def test_case_52_a_drop_before_the_switch(run):
    async def main():
        go, began = asyncio.Event(), asyncio.Event()

        async def on_handoff(context):
            began.set()
            await go.wait()

        from offbook.actors.realtime import realtime_handoff

        billing = RealtimeAgent("billing", "Bills.")
        triage = RealtimeAgent(
            "triage", "Ask.", handoffs=[realtime_handoff(billing, on_handoff=on_handoff)]
        )
        async with desk(
            triage, Reply(Call("transfer_to_billing", "{}", "h")), otherwise=Reply(Say("Here."))
        ) as at:
            await at.ask("my bill")
            await began.wait()
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            assert at.server.session.settings["instructions"] == "Ask."
            go.set()
            await at.heard.until_shown("agent_end", 2)
            assert at.server.session.settings["instructions"] == "Bills."
            assert conversation(at)[1:3] == ["transfer_to_billing", '{"assistant": "billing"}']

    run(main())


def test_case_53_an_expired_session_is_renewed_and_held_input_arrives_in_order(run):
    async def main():
        hold = asyncio.Event()
        async with desk(AGENT, Reply(Say("One.")), otherwise=Reply(Say("Two."))) as at:
            await at.ask("first")
            at.server.handshakes.append(hold)
            await at.server.session.send(
                {
                    "type": "error",
                    "error": {
                        "type": "invalid_request_error",
                        "code": "session_expired",
                        "message": "60 minutes",
                    },
                }
            )
            await at.heard.until(lambda: not at.session._core.link.is_ready)
            for text in ("a", "b", "c"):
                await at.session.send_message(text)
            await at.session.send_audio(b"\1\0" * 2_400)
            hold.set()
            await at.heard.until_shown("agent_end", 2)
            assert conversation(at) == ["first", "One.", "a", "b", "c", "Two."]
            kinds = [one["type"] for one in at.server.sent(connection=1)]
            assert kinds.index("input_audio_buffer.append") > kinds.index(
                "conversation.item.create"
            )
            assert at.heard.of("error") == []

    run(main())


def test_case_53_an_old_connection_is_renewed_in_a_pause_before_it_is_closed(run):
    async def main():
        clock = ManualClock()
        async with desk(AGENT, Reply(Say("One.")), otherwise=Reply(Say("Two.")), clock=clock) as at:
            await at.ask("first")
            clock.advance(3_301)
            (event,) = await at.heard.until_shown("reconnected")
            await at.server.until(lambda: len(at.server.session.items) == 2)
            assert (event.replayed, event.dropped_audio_ms, len(at.server.sessions)) == (2, 0.0, 2)
            await at.server.until(lambda: not at.server.sessions[0].peer.is_open)
            statuses = [
                one.data.status
                for one in at.heard.of("raw_model_event")
                if one.data.type == "connection_status"
            ]
            assert statuses == ["connected", "connected"]  # never disconnected
            await at.ask("second")
            assert conversation(at) == ["first", "One.", "second", "Two."]

    run(main())


def test_case_53_a_connection_is_not_renewed_while_something_is_said(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(AGENT, Reply(Say("One", ms=1_000), gate, Say("more")), clock=clock) as at:
            await at.session.send_message("first")
            await at.heard.until(lambda: len(at.heard.of("audio")) == 10)
            clock.advance(3_301)
            await asyncio.sleep(0)
            assert len(at.server.sessions) == 1
            gate.open()
            await at.heard.until_shown("reconnected")
            assert at.texts("assistant") == ["One", "more"]
            assert at.heard.of("agent_end")[0].status == "completed"

    run(main())


def test_case_54_what_is_refused_for_the_callers_sake_is_fatal_at_once_and_all_else_is_tried_again(
    run,
):
    async def main():
        clock = ManualClock()

        async def advance(until_task):
            while not until_task.done():
                clock.advance(1)
                await asyncio.sleep(0)

        async with desk(
            AGENT,
            Reply(Say("One.")),
            otherwise=Reply(Say("Two.")),
            clock=clock,
            config={"reconnect": Reconnect(attempts=3, backoff=Backoff(initial=1))},
        ) as at:
            await at.ask("first")
            at.server.handshakes.extend([429, 503])
            at.server.session.peer.abort()
            waiting = asyncio.create_task(at.heard.until_shown("reconnected"))
            await advance(waiting)
            assert at.heard.of("reconnected")[0].attempt == 3
            at.server.handshakes.extend([503] * 3)
            at.server.session.peer.abort()
            await advance(at.heard.task)
            assert at.heard.error.kind == "server"
            assert not at.server.handshakes
        async with desk(AGENT) as at:
            at.server.handshakes.append(401)
            at.server.session.peer.abort()
            await at.heard.task
            assert (at.heard.error.kind, len(at.server.headers)) == ("auth", 2)
            assert at.heard.of("error")[-1].fatal
        async with desk(AGENT, config={"reconnect": None}) as at:
            at.server.session.peer.abort()
            await at.heard.task
            assert isinstance(at.heard.error, ModelError)
        async with LocalRealtimeServer() as server:
            server.handshakes.append(403)
            with pytest.raises(ModelError, match="403") as caught:
                await (
                    RealtimeRunner(
                        AGENT,
                        model=OpenAIRealtimeModel(base_url=server.base_url, api_key="secret-key"),
                    )
                    .run()
                    .__aenter__()
                )
            assert (caught.value.status, caught.value.retryable) == (403, False)

    run(main())


def test_case_54_a_telephone_call_is_attached_to_again_without_a_replay(run):
    async def main():
        async with LocalRealtimeServer(otherwise=Reply(Say("Yes."))) as server:
            model = OpenAIRealtimeSIPModel(base_url=server.base_url, api_key="k")
            with pytest.raises(UsageError, match="call_id"):
                await RealtimeRunner(AGENT, model=model).run().__aenter__()
            async with RealtimeRunner(AGENT, model=model).run(
                model_config={"call_id": "rtc_1"}
            ) as session:
                from tests.doubles.realtime import Heard

                heard = Heard(session)
                assert "audio" not in server.sent("session.update")[0]["session"]
                await session.send_message("hi")
                await heard.until_shown("agent_end")
                server.session.peer.abort()
                (event,) = await heard.until_shown("reconnected")
                assert (event.resumed, event.replayed) == (True, 0)
                assert server.sent("conversation.item.create", 1) == []
            await heard.task

    run(main())


def test_case_55_a_refused_item_is_left_out_and_a_bounded_replay_parts_no_call_from_its_output(run):
    async def main():
        @tool
        def look() -> str:
            """Look."""
            return "found"

        agent = RealtimeAgent("a", tools=[look])
        replies = (Reply(Say("One.")), Reply(Call("look")), Reply(Say("Found.")))
        async with desk(
            agent, *replies, otherwise=Reply(Say("Yes.")), earned=["content_policy"]
        ) as at:
            await at.ask("first")
            await at.ask("look", 2)
            at.server.refusals["conversation.item.create"] = "content_policy"
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            (error,) = await at.heard.until_shown("error")
            assert error.code == "replay_refused"
            await at.ask("and?")
            assert conversation(at) == ["One.", "look", "look", "found", "Found.", "and?", "Yes."]
        replies = (Reply(Say("One.")), Reply(Call("look")), Reply(Say("Found.")))
        async with desk(
            agent, *replies, otherwise=Reply(Say("Yes.")), config={"replay": keep_last(2)}
        ) as at:
            await at.ask("first")
            await at.ask("look", 2)
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            await at.ask("and?")
            kept = conversation(at)
            assert kept[-3:] == ["Found.", "and?", "Yes."]
            assert kept.count("look") in (0, 1)
            assert ("found" in kept) == (kept.count("look") >= 1)

    run(main())


def test_speech_that_began_is_forgotten_with_its_connection(run):
    async def main():
        async with desk(AGENT, otherwise=Reply(Say("Yes."))) as at:
            await at.session.send_audio(speech("half a"))
            await until(lambda: at.session._core.is_speaking)
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            assert not at.session._core.is_speaking
            await at.ask("hi")

    run(main())


@pytest.mark.slow
def test_case_52_a_switch_while_the_next_connection_is_made_reaches_it(run):
    async def main():
        go, hold = asyncio.Event(), asyncio.Event()

        async def on_handoff(context):
            await go.wait()

        from offbook.actors.realtime import realtime_handoff

        billing = RealtimeAgent("billing", "Bills.")
        triage = RealtimeAgent(
            "triage", "Ask.", handoffs=[realtime_handoff(billing, on_handoff=on_handoff)]
        )
        async with desk(
            triage, Reply(Call("transfer_to_billing", "{}", "h")), otherwise=Reply(Say("Here."))
        ) as at:
            await at.ask("my bill")
            at.server.handshakes.append(hold)
            at.server.session.peer.abort()
            # It is being made, with the settings of triage.
            await at.server.until(lambda: not at.server.handshakes)
            go.set()
            await at.heard.until_shown("handoff")
            hold.set()
            await at.heard.until_shown("agent_end", 2)
            assert at.session.current_agent is billing
            assert at.server.session.settings["instructions"] == "Bills."

    run(main())
