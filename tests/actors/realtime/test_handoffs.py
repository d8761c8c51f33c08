"""One agent hands over to another in mid call."""

import asyncio

import pytest
from pydantic import BaseModel

from offbook.actors import ChatModelAgent, Handoff, tool
from offbook.actors.realtime import RealtimeAgent, realtime_handoff
from offbook.actors.realtime.local import Call, Fault, Gate, Reply, Say
from offbook.runtime import AgentError, ModelError, RunHooks, ScriptedModel
from tests.doubles.realtime import desk, until


def agents(**options):
    billing = RealtimeAgent("billing", "Talk of bills.", handoff_description="about bills")
    triage = RealtimeAgent("triage", "Find out what it is about.", handoffs=[billing], **options)
    return triage, billing


TO_BILLING = Call("transfer_to_billing", "{}", "h")


def test_case_35_a_handoff_is_made_in_eight_steps(run):
    async def main():
        order = []
        billing = RealtimeAgent("billing", "Talk of bills.")
        triage = RealtimeAgent(
            "triage",
            "Ask.",
            handoffs=[
                realtime_handoff(billing, on_handoff=lambda context: order.append("callback"))
            ],
        )

        class Hooks(RunHooks):
            def on_handoff(self, context, from_agent, to_agent):
                order.append(f"{from_agent.name} to {to_agent.name}")

        async with desk(
            triage, Reply(TO_BILLING), Reply(Say("Billing here.")), hooks=Hooks()
        ) as at:
            assert at.server.session.settings["instructions"] == "Ask."
            assert [one["name"] for one in at.server.session.settings["tools"]] == [
                "transfer_to_billing"
            ]
            await at.ask("my bill", 2)
            (event,) = at.heard.of("handoff")
            assert (event.from_agent, event.to_agent, event.reverted) == (triage, billing, False)
            assert order == ["callback", "triage to billing"]
            assert at.sent()[3:] == [
                "session.update",
                "conversation.item.create",
                "response.create",
            ]
            assert at.outputs() == [("h", '{"assistant": "billing"}')]
            assert [one.agent.name for one in at.heard.of("agent_start")] == ["triage", "billing"]
            assert at.session.current_agent is billing
            kinds = at.heard.kinds("history_added", "audio_end")
            assert kinds.index("handoff") < len(kinds) - 1

    run(main())


def test_case_36_an_update_names_only_what_differs(run):
    async def main():
        triage, _ = agents()
        settings = {
            "audio": {
                "input": {
                    "format": "g711_ulaw",
                    "turn_detection": {"type": "server_vad"},
                    "transcription": {"model": "whisper-1"},
                },
                "output": {"format": "g711_ulaw", "voice": "ash"},
            }
        }
        async with desk(
            triage, Reply(TO_BILLING), Reply(Say("Here.")), config={"model_settings": settings}
        ) as at:
            before = {
                name: dict(part) for name, part in at.server.session.settings["audio"].items()
            }
            assert before["output"]["format"] == {"type": "audio/pcmu"}
            await at.ask("my bill", 2)
            (_, update) = at.server.sent("session.update")
            assert set(update["session"]) == {"type", "instructions", "tools"}
            assert at.server.session.settings["audio"] == before

    run(main())


class Details(BaseModel):
    amount: int


def _raises(context):
    raise ValueError("not now")


def _odd(name, target):
    async def invoke(context, arguments):
        return target

    return Handoff(
        tool_name=name,
        tool_description="",
        input_json_schema={},
        on_invoke_handoff=invoke,
        agent_name="odd",
    )


def _failing(context, agent):
    raise ValueError("no instructions")


@pytest.mark.parametrize(
    ("handoff", "arguments", "said"),
    [
        (
            realtime_handoff(
                RealtimeAgent("b"), on_handoff=lambda context, given: None, input_type=Details
            ),
            '{"amount": "25"}',
            "not valid",
        ),
        (
            realtime_handoff(
                RealtimeAgent("b"), on_handoff=lambda context, given: None, input_type=Details
            ),
            "{broken",
            "not valid",
        ),
        (realtime_handoff(RealtimeAgent("b"), on_handoff=_raises), "{}", "not now"),
        (
            _odd("transfer_to_b", ChatModelAgent(name="text", model=ScriptedModel([]))),
            "{}",
            "ChatModelAgent",
        ),
        (_odd("transfer_to_b", None), "{}", "NoneType"),
        (
            realtime_handoff(
                RealtimeAgent(
                    "b", tools=[tool(name="same")(lambda: ""), tool(name="same")(lambda: "")]
                )
            ),
            "{}",
            "named 'same'",
        ),
        (realtime_handoff(RealtimeAgent("b", _failing)), "{}", "no instructions"),
    ],
)
def test_case_37_a_handoff_that_fails_leaves_the_old_agent_in_charge(run, handoff, arguments, said):
    async def main():
        triage = RealtimeAgent("triage", handoffs=[handoff])
        async with desk(
            triage, Reply(Call("transfer_to_b", arguments, "h")), Reply(Say("I stay."))
        ) as at:
            await at.ask("hand over", 2)
            ((_, output),) = at.outputs()
            assert output.startswith("the handoff failed: ")
            assert said in output
            assert "\n" not in output
            (error,) = at.heard.of("error")
            assert (error.call_id, error.fatal) == ("h", False)
            assert at.session.current_agent is triage
            assert (len(at.server.sent("session.update")), at.heard.of("handoff")) == (1, [])
        async with desk(
            triage, Reply(Call("transfer_to_b", arguments, "h")), config={"on_tool_error": "raise"}
        ) as at:
            await at.session.send_message("hand over")
            await at.heard.task
            assert isinstance(at.heard.error, AgentError)
            assert at.outputs() == []

    run(main())


def test_case_38_a_refused_update_puts_the_old_agent_in_charge_again(run):
    async def main():
        triage, billing = agents()
        async with desk(
            triage, Reply(TO_BILLING), Reply(Say("I stay.")), earned=["server_error"]
        ) as at:
            at.server.refusals["session.update"] = "server_error"
            await at.ask("my bill", 2)
            there, back = at.heard.of("handoff")
            assert (there.to_agent, back.to_agent, back.reverted) == (billing, triage, True)
            assert "the handoff failed" in at.outputs()[0][1]
            assert at.session.current_agent is triage

    run(main())


def test_case_39_of_two_handoffs_in_one_response_the_first_is_followed(run):
    async def main():
        called = []
        billing, technical = RealtimeAgent("billing"), RealtimeAgent("technical")
        handoffs = [
            realtime_handoff(one, on_handoff=_note(called, one.name))
            for one in (billing, technical)
        ]
        triage = RealtimeAgent("triage", handoffs=handoffs)
        async with desk(
            triage,
            Reply(TO_BILLING, Call("transfer_to_technical", "{}", "t")),
            Reply(Say("Billing.")),
        ) as at:
            await at.ask("both", 2)
            assert called == ["billing"]
            assert dict(at.outputs()) == {
                "t": "Multiple handoffs detected, ignoring this one.",
                "h": '{"assistant": "billing"}',
            }
            assert at.session.current_agent is billing

    run(main())


def _note(called, name):
    def on_handoff(context):
        called.append(name)

    return on_handoff


def test_case_40_the_same_handoff_call_is_carried_out_once_also_across_a_reconnect(run):
    async def main():
        called = []
        billing = RealtimeAgent("billing")
        triage = RealtimeAgent(
            "triage", handoffs=[realtime_handoff(billing, on_handoff=_note(called, "billing"))]
        )
        done = Fault("double", "response.output_item.done", "server")
        async with desk(
            triage, Reply(TO_BILLING), otherwise=Reply(Say("Here.")), faults=[done]
        ) as at:
            await at.ask("my bill", 2)
            at.server.session.peer.abort()
            await at.heard.until_shown("reconnected")
            await at.server.session.send(
                {
                    "type": "response.output_item.done",
                    "response_id": "r",
                    "item": {
                        "id": "x",
                        "type": "function_call",
                        "call_id": "h",
                        "name": "transfer_to_billing",
                        "arguments": "{}",
                    },
                }
            )
            await at.ask("and?")
            assert called == ["billing"]
            assert at.session.current_agent is billing

    run(main())


def test_case_41_calls_of_the_old_agent_are_its_own_also_behind_the_handoff(run):
    async def main():
        go, ran = asyncio.Event(), []

        @tool(name="look")
        async def old_look() -> str:
            """Look."""
            ran.append("old")
            await go.wait()
            return "found"

        @tool(name="look")
        def new_look() -> str:
            """Look."""
            ran.append("new")
            return "found anew"

        billing = RealtimeAgent("billing", tools=[new_look])
        triage = RealtimeAgent("triage", tools=[old_look], handoffs=[billing])
        gate = Gate()
        reply = Reply(Call("look", call_id="l"), TO_BILLING, gate, Call("look", call_id="m"))
        async with desk(triage, reply, otherwise=Reply(Say("Here."))) as at:
            await at.session.send_message("look, and hand over")
            await at.heard.until_shown("handoff")
            await until(lambda: ("h", '{"assistant": "billing"}') in at.outputs())
            # The response was created before the update: its call goes to the old agent's tool.
            gate.open()
            await until(lambda: ran == ["old", "old"])
            go.set()
            await until(lambda: {call for call, _ in at.outputs()} == {"h", "l", "m"})
            assert dict(at.outputs())["m"] == "found"
            await at.server.until(
                lambda: at.server.session.active is None and len(at.heard.of("agent_end")) >= 2
            )

    run(main())


def test_case_42_agents_hand_over_in_circles_and_only_while_it_is_enabled(run):
    async def main():
        one, two = RealtimeAgent("one"), RealtimeAgent("two")
        one.handoffs = [
            realtime_handoff(
                two, is_enabled=lambda context, agent: context.session.get("open", True)
            )
        ]
        two.handoffs = [one]

        def reply(session, options):
            return Reply(
                Say(
                    session.settings["tools"][0]["name"] if session.settings["tools"] else "nowhere"
                )
            )

        async with desk(
            one,
            Reply(Call("transfer_to_two")),
            reply,
            Reply(Call("transfer_to_one")),
            reply,
            Reply(Call("transfer_to_two", "{}", "x")),
            otherwise=reply,
        ) as at:
            await at.ask("over", 2)
            await at.ask("back", 2)
            assert at.texts("assistant") == ["transfer_to_one", "transfer_to_two"]
            at.session.context.session["open"] = False
            await at.ask("over", 2)
            assert at.session.current_agent is one
            assert "does not exist or is not enabled now" in dict(at.outputs())["x"]

    run(main())


def test_case_42_the_input_of_a_handoff_is_strict_and_one_made_by_hand_chooses_its_target(run):
    async def main():
        given = []
        billing = RealtimeAgent("billing")
        chosen = RealtimeAgent("chosen")

        async def invoke(context, arguments):
            return chosen

        by_hand = Handoff(
            tool_name="choose",
            tool_description="Choose.",
            input_json_schema={},
            on_invoke_handoff=invoke,
            agent_name="chosen",
        )
        billing.handoffs = [by_hand]
        triage = RealtimeAgent(
            "triage",
            handoffs=[
                realtime_handoff(
                    billing, on_handoff=lambda context, one: given.append(one), input_type=Details
                )
            ],
        )
        async with desk(
            triage,
            Reply(Call("transfer_to_billing", '{"amount": 25}')),
            Reply(Call("choose")),
            Reply(Say("Chosen.")),
        ) as at:
            await at.ask("go", 3)
            assert given == [Details(amount=25)]
            assert at.session.current_agent is chosen

    run(main())


@pytest.mark.parametrize("change", ["keep", "reconnect"])
def test_case_43_another_voice_after_speech_is_left_out_or_has_a_new_connection(run, change):
    async def main():
        billing = RealtimeAgent("billing", voice="cedar")
        triage = RealtimeAgent("triage", voice="ash", handoffs=[billing])
        async with desk(
            triage,
            Reply(Say("Hello.")),
            Reply(TO_BILLING),
            otherwise=Reply(Say("Here.")),
            config={"voice_change": change},
        ) as at:
            await at.ask("hi")
            await at.ask("my bill", 2)
            if change == "keep":
                assert [event.code for event in at.heard.of("error")] == ["voice_kept"]
                assert at.server.session.settings["audio"]["output"]["voice"] == "ash"
            else:
                assert len(at.server.sessions) == 2
                assert at.server.session.settings["audio"]["output"]["voice"] == "cedar"
                texts = [
                    item["content"][0].get("text")
                    for item in at.server.session.items
                    if item["type"] == "message" and item["role"] == "user"
                ]
                assert texts == ["hi", "my bill"]
            assert at.session.current_agent is billing
            assert dict(at.outputs())["h"] == '{"assistant": "billing"}'

    run(main())


def test_case_44_the_program_changes_the_agent_without_event_and_output(run):
    async def main():
        triage, billing = agents()
        async with desk(triage, Reply(Say("Billing.")), earned=["server_error"]) as at:
            await at.session.update_agent(billing)
            assert at.session.current_agent is billing
            assert at.server.session.settings["instructions"] == "Talk of bills."
            assert (at.heard.of("handoff"), at.outputs()) == ([], [])
            await at.ask("hi")
            at.server.refusals["session.update"] = "server_error"
            with pytest.raises(ModelError):
                await at.session.update_agent(triage)
            assert at.session.current_agent is billing

    run(main())
