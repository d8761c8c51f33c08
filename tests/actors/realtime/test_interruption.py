"""Barge-in: what is said ends, and what was heard stays."""

import pytest

from offbook.actors.realtime import RealtimeAgent, RealtimePlaybackTracker
from offbook.actors.realtime.local import Gate, Reply, Say, silence, speech
from offbook.actors.realtime.state.conversation import heard_part
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import desk

AGENT = RealtimeAgent("desk", "Answer.")
LONG = "one two three four five six seven eight nine ten"


def test_case_18_a_barge_in_ends_the_reply_step_by_step_and_no_audio_comes_behind_it(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        reply = Reply(Say(LONG, ms=2_000), gate, Say("and more", ms=500))
        async with desk(AGENT, reply, Reply(Say("Yes?")), clock=clock) as at:
            await at.session.send_message("count")
            await gate.reached.wait()
            await at.heard.until(lambda: len(at.heard.of("audio")) == 20)
            clock.advance(1.05)
            await at.session.send_audio(speech("stop it"))
            (interrupted,) = await at.heard.until_shown("audio_interrupted")
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end", 2)
            where = at.heard.events.index(interrupted)
            first = at.heard.of("audio")[0].audio.response_id
            assert [
                e
                for e in at.heard.events[where:]
                if e.type == "audio" and e.audio.response_id == first
            ] == []
            assert at.server.truncations == [(interrupted.item_id, 1_050)]
            assert at.server.sent("response.cancel") == []  # the server does that itself

    run(main())


def test_case_18_audio_that_the_consumer_has_not_taken_is_taken_back(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(AGENT, Reply(Say(LONG, ms=2_000), gate), clock=clock, consume=False) as at:
            await at.session.send_message("count")
            await gate.reached.wait()
            await at.until_queued(2_000)
            await at.session.interrupt()
            await at.server.until_sent("response.cancel")
            await at.session.close()
            kinds = [event.type async for event in at.session]
            assert "audio" not in kinds
            assert kinds.count("audio_interrupted") == 1

    run(main())


@pytest.mark.parametrize(("format", "ms"), [("pcm16", 400), ("g711_ulaw", 400)])
def test_case_19_the_position_follows_a_tracker_if_there_is_one(run, format, ms):
    async def main():
        clock, gate, tracker = ManualClock(), Gate(), RealtimePlaybackTracker()
        settings = {"output_audio_format": format, "input_audio_format": format}
        async with desk(
            AGENT,
            Reply(Say("first part", ms=600), Say("second part", ms=600), gate),
            clock=clock,
            config={"model_settings": settings},
            model_config={"playback_tracker": tracker},
        ) as at:
            await at.session.send_message("count")
            await gate.reached.wait()
            await at.heard.until(lambda: len(at.heard.of("audio")) == 12)
            first, second = dict.fromkeys(event.item_id for event in at.heard.of("audio"))
            tracker.on_play_ms(first, 0, 600)
            tracker.on_play_bytes(second, 0, b"\0" * (ms * (48 if format == "pcm16" else 8)))
            clock.advance(60)
            await at.session.interrupt()
            await at.server.until_sent("conversation.item.truncate")
            assert at.server.truncations == [(second, 400)]

    run(main())


def test_case_19_without_a_tracker_audio_plays_in_real_time_one_item_after_the_other(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(
            AGENT, Reply(Say("first part", ms=600), Say("second part", ms=600), gate), clock=clock
        ) as at:
            await at.session.send_message("count")
            await gate.reached.wait()
            await at.heard.until(lambda: len(at.heard.of("audio")) == 12)
            clock.advance(0.9)
            await at.session.interrupt()
            await at.server.until_sent("conversation.item.truncate")
            second = at.heard.of("audio")[-1].item_id
            assert at.server.truncations == [(second, 300)]

    run(main())


def test_case_19_more_time_than_audio_cuts_at_the_end_of_the_audio(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(AGENT, Reply(Say(LONG, ms=500), gate), clock=clock) as at:
            await at.session.send_message("count")
            await gate.reached.wait()
            await at.heard.until(lambda: len(at.heard.of("audio")) == 5)
            clock.advance(60)
            await at.session.interrupt()
            await at.server.until_sent("response.cancel")
            assert at.server.truncations == [(at.heard.of("audio")[0].item_id, 500)]

    run(main())


def test_case_20_nothing_is_cut_of_which_nothing_or_all_was_heard(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(
            AGENT, Reply(gate, Say("late")), Reply(Say("All of it.", ms=300)), clock=clock
        ) as at:
            await at.session.send_message("hi")  # before the first audio
            await gate.reached.wait()
            await at.heard.until_shown("agent_start")
            await at.session.interrupt()
            await at.heard.until_shown("agent_end")
            assert (at.heard.of("audio_interrupted"), at.server.truncations) == ([], [])
            await at.ask("and now?")  # all was heard
            clock.advance(1)
            await at.session.interrupt()
            await at.session.send_audio(speech("well"))
            await at.server.until(lambda: at.server.session.heard is not None)
            assert (at.heard.of("audio_interrupted"), at.server.truncations) == ([], [])

    run(main())


def test_case_20_with_interrupt_response_off_nothing_is_interrupted(run):
    async def main():
        gate = Gate()
        settings = {"turn_detection": {"type": "server_vad", "interrupt_response": False}}
        async with desk(
            AGENT,
            Reply(Say("Let me finish.", ms=5_000), gate, Say("Done.")),
            Reply(Say("Yes?")),
            config={"model_settings": settings},
        ) as at:
            await at.session.send_message("hi")
            await gate.reached.wait()
            await at.session.send_audio(speech("but"))
            await at.server.until(lambda: at.server.session.heard is not None)
            gate.open()
            await at.heard.until_shown("agent_end")
            assert at.heard.of("audio_interrupted") == []
            assert at.texts("assistant") == ["Let me finish.", "Done."]

    run(main())


def test_case_21_interrupting_cancels_once_and_only_what_is_there(run):
    async def main():
        gate = Gate()
        async with desk(AGENT, Reply(Say("One moment.", ms=1_000), gate)) as at:
            await at.session.interrupt()
            await at.session.send_message("hi")
            await gate.reached.wait()
            await at.heard.until_shown("audio")
            await at.session.interrupt()
            await at.session.interrupt()
            await at.heard.until_shown("agent_end")
            assert len(at.server.sent("response.cancel")) == 1

    run(main())


def test_case_22_history_and_replay_hold_what_was_heard_cut_at_a_word(run):
    assert heard_part("one two three", 0.7) == "one two"
    assert heard_part("one two three", 1.0) == "one two three"
    assert heard_part("one two three", 0.0) == ""
    assert heard_part("unbroken", 0.5) == ""

    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(
            AGENT, Reply(Say(LONG, ms=2_000), gate), otherwise=Reply(Say("Yes.")), clock=clock
        ) as at:
            await at.session.send_message("count")
            await gate.reached.wait()
            await at.heard.until(lambda: len(at.heard.of("audio")) == 20)
            clock.advance(1.0)
            await at.session.interrupt()
            await at.heard.until_shown("agent_end")
            (said,) = [
                item
                for item in at.session.history
                if item.type == "message" and item.role == "assistant"
            ]
            assert said.content[0].transcript == "one two three four five"
            assert (said.status, said.audio_end_ms) == ("incomplete", 1_000)
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            await at.server.until(lambda: len(at.server.session.items) == 2)
            assert [item["content"][0]["text"] for item in at.server.session.items] == [
                "count",
                "one two three four five",
            ]

    run(main())


def test_a_message_may_interrupt_what_is_said(run):
    async def main():
        gate = Gate()
        async with desk(
            AGENT, Reply(Say("Let me tell you", ms=3_000), gate), Reply(Say("Yes?"))
        ) as at:
            await at.session.send_message("talk")
            await at.heard.until_shown("audio")
            await at.session.send_message("stop", interrupt=True)
            await at.heard.until_shown("agent_end", 2)
            assert len(at.heard.of("audio_interrupted")) == 1
            assert at.texts("assistant")[-1] == "Yes?"
            assert len(at.server.sent("response.cancel")) == 1

    run(main())
