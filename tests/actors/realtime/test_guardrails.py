"""What is said is looked at: by the model, and by the user."""

import asyncio

import pytest

from offbook.actors import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail
from offbook.actors.realtime import RealtimeAgent
from offbook.actors.realtime.local import Gate, Reply, Say, silence, speech
from offbook.runtime import UsageError
from tests.doubles.realtime import desk, until


class Guard:
    """Trips at a word, and notes what it has seen."""

    def __init__(self, word, gate=None):
        self.word, self.seen, self.gate = word, [], gate
        self.__name__ = f"no_{word}"

    async def __call__(self, context, agent, text):
        self.seen.append(text)
        if self.gate is not None:
            await self.gate.wait()
        return GuardrailFunctionOutput(tripwire_triggered=self.word in text)


def agent_with(**options):
    return RealtimeAgent("desk", "Answer.", **options)


LONG = (
    "this is a long answer of more than one hundred characters in which the secret is said "
    "rather early on, and much more follows"
)


def test_case_45_an_output_guardrail_trips_once_for_a_response_and_the_model_is_told(run):
    async def main():
        guard, gate = Guard("secret"), Gate()
        agent = agent_with(output_guardrails=[OutputGuardrail(guard)])
        async with desk(
            agent,
            Reply(Say(LONG, ms=4_000), gate, Say("secret again")),
            Reply(Say("Sorry.")),
            config={"output_guardrails": agent.output_guardrails},
        ) as at:
            await at.session.send_message("tell me")
            (tripped,) = await at.heard.until_shown("guardrail_tripped")
            await at.heard.until_shown("agent_end", 2)
            assert len(guard.seen[0]) >= 100
            assert [one.guardrail.get_name() for one in tripped.guardrail_results] == ["no_secret"]
            assert len(at.heard.of("guardrail_tripped")) == 1
            assert len(at.server.sent("response.cancel")) == 1
            assert at.texts("user")[-1] == "guardrail triggered: no_secret"
            where = at.heard.events.index(at.heard.of("audio_interrupted")[0])
            assert [
                e
                for e in at.heard.events[where:]
                if e.type == "audio" and e.audio.response_id == at.server.responses[0][0]
            ] == []

    run(main())


def test_case_45_a_reply_that_is_shorter_is_looked_at_at_its_end_and_a_late_trip_touches_no_newer_response(
    run,
):
    async def main():
        held = asyncio.Event()
        guard, gate = Guard("secret", held), Gate()
        async with desk(
            agent_with(output_guardrails=[guard]),
            Reply(Say("a secret")),
            Reply(Say("newer"), gate),
            config={"guardrails_settings": {"debounce_text_length": 1_000}},
        ) as at:
            await at.ask("one")
            await until(lambda: guard.seen == ["a secret"])
            await at.session.send_message("two")
            await gate.reached.wait()
            held.set()
            await at.heard.until_shown("guardrail_tripped")
            gate.open()
            await at.heard.until_shown("agent_end", 2)
            assert at.server.sent("response.cancel") == []
            assert at.texts("assistant")[1] == "newer"
            assert len(at.server.responses) == 2

    run(main())


@pytest.mark.parametrize("rule", ["skip", "trip"])
def test_case_45_a_guardrail_that_raises_is_skipped_or_trips(run, rule):
    async def main():
        def broken(context, agent, text):
            raise ValueError("broken")

        config = {"guardrails_settings": {"on_error": rule, "feedback": None}}
        async with desk(
            agent_with(output_guardrails=[broken]), Reply(Say("fine")), config=config
        ) as at:
            await at.ask("one")
            await at.heard.until_shown("error")
            await at.heard.until(lambda: len(at.heard.of("guardrail_tripped")) == (rule == "trip"))
            assert at.heard.of("error")[0].code == "guardrail_error"

    run(main())


def test_case_46_held_audio_is_delivered_when_it_was_checked_and_not_before(run):
    async def main():
        open_, gate = asyncio.Event(), Gate()
        guard = Guard("secret", open_)
        config = {"guardrails_settings": {"hold_audio": True, "debounce_text_length": 10}}
        reply = Reply(
            Say("all is well here and there", ms=400), gate, Say("and now the secret", ms=400)
        )
        async with desk(
            agent_with(output_guardrails=[guard]), reply, Reply(Say("Sorry.")), config=config
        ) as at:
            await at.session.send_message("tell me")
            await until(lambda: guard.seen)
            assert at.heard.of("audio") == []
            open_.set()
            await at.heard.until(lambda: len(at.heard.of("audio")) == 4)
            gate.open()
            await at.heard.until_shown("agent_end", 2)
            first = at.server.responses[0][0]
            heard = [event for event in at.heard.of("audio") if event.audio.response_id == first]
            secret = [
                item
                for item in at.session.history
                if item.type == "message" and item.role == "assistant"
            ][1].item_id
            # The piece with the secret in it is never heard.
            assert len([event for event in heard if event.item_id == secret]) < 4
            assert len(at.heard.of("guardrail_tripped")) == 1

    run(main())


def test_case_47_text_is_looked_at_before_it_is_sent(run):
    async def main():
        guard = Guard("forbidden")
        async with desk(
            agent_with(input_guardrails=[InputGuardrail(guard)]),
            otherwise=Reply(Say("Let us talk of something else.")),
        ) as at:
            await at.session.send_message("a forbidden thing")
            (tripped,) = await at.heard.until_shown("input_guardrail_tripped")
            await at.heard.until_shown("agent_end")
            assert tripped.message == "a forbidden thing"
            assert at.texts("user") == ["guardrail triggered: no_forbidden"]
            await at.ask("a good thing")
            assert at.texts("user")[-1] == "a good thing"

    run(main())


def test_case_47_speech_is_looked_at_beside_the_response(run):
    async def main():
        guard, gate = Guard("forbidden"), Gate()
        async with desk(
            agent_with(input_guardrails=[InputGuardrail(guard)]),
            Reply(Say("Well, you see", ms=2_000), gate),
            Reply(Say("Something else?")),
        ) as at:
            held = []
            at.server.transcriptions = lambda *args: held.append(args)
            await at.session.send_audio(speech("a forbidden thing"))
            await at.session.send_audio(silence())
            await gate.reached.wait()
            await at.heard.until_shown("audio")
            await held[0][0].transcribed(held[0][1], held[0][2])
            (tripped,) = await at.heard.until_shown("input_guardrail_tripped")
            await at.heard.until_shown("agent_end", 2)
            (blocked,) = [item for item in at.session.history if getattr(item, "blocked", False)]
            assert blocked.item_id == tripped.item_id
            assert at.server.session.find(blocked.item_id) is None
            assert len(at.server.sent("response.cancel")) == 1

    run(main())


def test_case_47_strict_guardrails_let_nothing_be_answered_that_was_not_looked_at(run):
    async def main():
        strict = InputGuardrail(Guard("forbidden"), run_in_parallel=False)
        agent = agent_with(input_guardrails=[strict])
        async with desk(agent, Reply(Say("Good day.")), otherwise=Reply(Say("No."))) as at:
            assert (
                at.server.session.settings["audio"]["input"]["turn_detection"]["create_response"]
                is False
            )
            await at.session.send_audio(speech("good morning"))
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end")
            await at.session.send_audio(speech("a forbidden thing"))
            await at.session.send_audio(silence())
            await at.heard.until_shown("input_guardrail_tripped")
            await at.heard.until_shown("agent_end", 2)
            assert "a forbidden thing" not in str(at.server.responses[1][2])
            at.server.transcriptions = lambda session, item, text: (
                asyncio.get_running_loop().create_task(session.transcribed(item, text, failed=True))
            )
            await at.session.send_audio(speech("mumble"))
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end", 3)  # on_error="skip": it is answered
            assert [event.code for event in at.heard.of("error")] == ["transcription_failed"]
        with pytest.raises(UsageError, match="transcription"):
            async with desk(agent, config={"model_settings": {"input_audio_transcription": None}}):
                pass

    run(main())
