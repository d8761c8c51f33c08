"""One response at a time."""

from offbook.actors.realtime import RealtimeAgent, RealtimeModelSendRawMessage
from offbook.actors.realtime.local import Fault, Gate, Reply, Say, silence, speech
from tests.doubles.realtime import desk

AGENT = RealtimeAgent("desk", "Answer.")
CREATE = RealtimeModelSendRawMessage({"type": "response.create"})


def test_case_14_wishes_wait_automatic_ones_join_and_raw_ones_stay_single(run):
    async def main():
        gate = Gate()
        async with desk(AGENT, Reply(Say("First."), gate), otherwise=Reply(Say("Next."))) as at:
            await at.session.send_message("one")
            await gate.reached.wait()
            await at.session.send_message("two")
            await at.session.send_message("three")
            await at.session.model.send_event(CREATE)
            await at.session.model.send_event(CREATE)
            assert len(at.server.sent("response.create")) == 1
            gate.open()
            await at.heard.until_shown("agent_end", 4)
            # One for "one", one for "two" and "three", two raw ones.
            assert len(at.server.sent("response.create")) == 4
            assert len(at.server.responses[1][2]) == 4

    run(main())


def test_case_15_a_response_of_the_servers_own_comes_first_and_nothing_is_lost_or_doubled(run):
    async def main():
        gate = Gate()
        async with desk(
            AGENT,
            Reply(Say("To the speech."), gate),
            otherwise=Reply(Say("To the text.")),
            earned=["conversation_already_has_active_response"],
        ) as at:
            # The server's detection is faster than the text that is under way.
            async def first(peer, message):
                await at.server.session.respond({})
                await at.server.session.handle(message)

            at.server.faults.append(Fault(first, "conversation.item.create"))
            await at.session.send_message("and the text?")
            await gate.reached.wait()
            await at.server.until(lambda: at.server.errors)
            gate.open()
            await at.heard.until_shown("agent_end", 2)
            assert at.heard.of("error") == []
            assert len(at.server.responses) == 2

    run(main())


def test_case_15_a_wish_that_the_servers_own_response_has_answered_is_dropped(run):
    async def main():
        gate = Gate()
        async with desk(AGENT, Reply(Say("First."), gate), otherwise=Reply(Say("Both."))) as at:
            await at.session.send_message("one")
            await gate.reached.wait()
            await at.session.send_message("two")
            await at.server.until(lambda: len(at.server.session.items) == 3)
            await at.session.send_audio(speech("stop"))
            await at.heard.until_shown("agent_end")
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end", 2)
            assert len(at.server.responses) in (2, 3)
            assert at.heard.of("error") == []

    run(main())


def test_case_16_a_refused_response_is_one_error_and_the_next_wish_is_served(run):
    async def main():
        async with desk(AGENT, Reply(Say("Now.")), earned=["server_overloaded"]) as at:
            at.server.refusals["response.create"] = "server_overloaded"
            await at.session.send_message("one")
            (error,) = await at.heard.until_shown("error")
            assert error.code == "server_overloaded"
            await at.ask("two")

    run(main())


def test_case_16_the_end_of_an_old_response_frees_nothing(run):
    async def main():
        gate = Gate()
        async with desk(
            AGENT, Reply(Say("First.")), Reply(Say("Second."), gate), otherwise=Reply(Say("Third."))
        ) as at:
            await at.ask("one")
            old = at.server.responses[0][0]
            await at.session.send_message("two")
            await gate.reached.wait()
            await at.server.session.send(
                {"type": "response.done", "response": {"id": old, "status": "completed"}}
            )
            await at.session.send_message("three")
            await at.server.until(lambda: len(at.server.session.items) == 5)
            assert len(at.server.sent("response.create")) == 2
            gate.open()
            await at.server.until_sent("response.create", 3)

    run(main())


def test_case_17_a_response_outside_of_the_conversation_goes_at_once_and_a_failed_one_leaves_the_session_usable(
    run,
):
    async def main():
        gate = Gate()
        outside = RealtimeModelSendRawMessage(
            {"type": "response.create", "other_data": {"response": {"conversation": "none"}}}
        )
        async with desk(
            AGENT,
            Reply(Say("First."), gate),
            Reply(Say("Aside.")),
            Reply(status="failed", code="server_error"),
            Reply(Say("Fine.")),
        ) as at:
            await at.session.send_message("one")
            await gate.reached.wait()
            await at.session.model.send_event(outside)
            await at.server.until(lambda: len(at.server.responses) == 2)
            gate.open()
            await at.heard.until_shown("agent_end")
            assert at.texts("assistant") == ["First."]
            await at.ask("two")
            (error,) = await at.heard.until_shown("error")
            assert (error.code, error.fatal) == ("server_error", False)
            assert at.heard.of("agent_end")[-1].status == "failed"
            await at.ask("three")
            assert at.texts("assistant") == ["First.", "Fine."]

    run(main())
