"""Calls that wait for an answer, guardrails of tools, and their bounds."""

import pytest

from offbook.actors import ToolContext, ToolGuardrailFunctionOutput, tool
from offbook.actors.realtime import RealtimeAgent
from offbook.actors.realtime.local import Call, Reply, Say
from offbook.runtime import UsageError
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import desk


def agent_with(*tools):
    return RealtimeAgent("desk", "Answer.", tools=list(tools))


def paying():
    paid = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    return pay, paid


def test_case_32_a_call_waits_for_approval_while_audio_flows(run):
    async def main():
        clock = ManualClock()
        pay, paid = paying()

        def asks(call_id):
            return Reply(Call("pay", '{"amount": 10}', call_id), Say("One moment."))

        replies = (
            asks("a"),
            Reply(Say("Paid.")),
            asks("b"),
            Reply(Say("No.")),
            asks("c"),
            Reply(Say("Less.")),
            asks("d"),
            Reply(Say("Late.")),
            asks("e"),
        )
        async with desk(
            agent_with(pay),
            *replies,
            otherwise=Reply(Say("Well.")),
            clock=clock,
            config={"approval_timeout": 30},
        ) as at:
            await at.ask("pay")
            (asked,) = await at.heard.until_shown("tool_approval_required")
            assert (asked.call_id, asked.arguments, paid) == ("a", '{"amount": 10}', [])
            assert [one.call_id for one in at.session.pending_approvals] == ["a"]
            assert at.heard.of("audio")
            await at.session.approve_tool_call("a")
            # The first answer counts.
            await at.session.approve_tool_call("a", arguments={"amount": 999})
            await at.heard.until_shown("agent_end", 2)
            with pytest.raises(UsageError, match="does not wait for an approval"):
                await at.session.approve_tool_call("x")
            await at.ask("again")
            await at.heard.until_shown("tool_approval_required", 2)
            await at.session.reject_tool_call("b", rejection_message="too much")
            await at.heard.until_shown("agent_end", 4)
            await at.ask("again")
            await at.heard.until_shown("tool_approval_required", 3)
            await at.session.approve_tool_call("c", arguments={"amount": 3})
            await at.heard.until_shown("agent_end", 6)
            await at.ask("again")
            await at.heard.until_shown("tool_approval_required", 4)
            clock.advance(30)
            await at.heard.until_shown("agent_end", 8)
            await at.ask("again")
            await at.heard.until_shown("tool_approval_required", 5)
            await at.session.approve_tool_call("e", always=True)
            await at.heard.until_shown("agent_end", 10)
            at.server.replies.append(Reply(Call("pay", '{"amount": 7}', "f")))
            await at.ask("and without asking", 2)
            assert paid == [10, 3, 10, 7]
            assert [one for _, one in at.outputs()] == [
                "paid 10",
                "too much",
                "paid 3",
                "the call was not approved in time",
                "paid 10",
                "paid 7",
            ]

    run(main())


def test_case_33_guardrails_of_tools_run_behind_the_approval_and_before_it_if_asked_for(run):
    async def main():
        seen = []

        def guard(data):
            seen.append(data.call.id)
            return ToolGuardrailFunctionOutput.reject_content("not that")

        @tool(needs_approval=True, input_guardrails=[guard])
        def pay() -> str:
            """Pay."""
            return "paid"

        async with desk(agent_with(pay), Reply(Call("pay", call_id="a")), Reply(Say("No."))) as at:
            await at.ask("pay")
            await at.heard.until_shown("tool_approval_required")
            assert seen == []
            await at.session.approve_tool_call("a")
            await at.heard.until_shown("agent_end", 2)
            assert at.outputs() == [("a", "not that")]
        config = {"tool_execution": {"pre_approval_tool_input_guardrails": True}}
        async with desk(
            agent_with(pay), Reply(Call("pay", call_id="b")), Reply(Say("No.")), config=config
        ) as at:
            await at.ask("pay", 2)
            assert at.outputs() == [("b", "not that")]
            assert at.heard.of("tool_approval_required") == []

    run(main())


def test_case_34_a_model_that_calls_without_end_is_asked_once_without_tools(run):
    async def main():
        @tool
        def again() -> str:
            """Again."""
            return "and again"

        def reply(session, options):
            return (
                Reply(Say("Enough."))
                if options.get("tool_choice") == "none"
                else Reply(Call("again"))
            )

        async with desk(agent_with(again), otherwise=reply, config={"max_tool_rounds": 3}) as at:
            await at.session.send_message("go")
            await at.heard.until(
                lambda: "Enough." in at.texts("assistant") and len(at.heard.of("agent_end")) == 4
            )
            assert [
                one.get("response", {}).get("tool_choice")
                for one in at.server.sent("response.create")
            ] == [None, None, None, "none"]

    run(main())


def test_a_response_that_calls_several_tools_is_one_round_and_the_users_audio_begins_anew(run):
    async def main():
        @tool
        def again() -> str:
            """Again."""
            return "and again"

        def reply(session, options):
            return (
                Reply(Say("Enough."))
                if options.get("tool_choice") == "none"
                else Reply(Call("again"), Call("again"))
            )

        async with desk(agent_with(again), otherwise=reply, config={"max_tool_rounds": 2}) as at:
            await at.session.send_message("go")
            await at.heard.until(lambda: "Enough." in at.texts("assistant"))
            assert len(at.heard.of("tool_end")) == 4
            assert at.session._open_core().calls.rounds == 2
            await at.session.send_audio(bytes(4800), commit=True)
            assert at.session._open_core().calls.rounds == 0

    run(main())


def test_a_tool_that_was_rejected_for_always_is_not_asked_about_again(run):
    async def main():
        made = []

        @tool(needs_approval=True)
        def pay() -> str:
            """Pay."""
            made.append("paid")
            return "paid"

        replies = (
            Reply(Call("pay", call_id="a")),
            Reply(Say("Well.")),
            Reply(Call("pay", call_id="b")),
            Reply(Say("Again not.")),
        )
        async with desk(agent_with(pay), *replies) as at:
            await at.session.send_message("pay")
            await at.heard.until_shown("tool_approval_required")
            await at.session.reject_tool_call("a", always=True, rejection_message="never")
            await at.heard.until_shown("agent_end", 2)
            await at.ask("pay", 2)
            assert at.outputs() == [("a", "never"), ("b", "never")]
            assert len(at.heard.of("tool_approval_required")) == 1
            assert made == []

    run(main())


def test_a_tool_has_a_context_with_a_key_and_may_not_ask_in_the_middle(run):
    async def main():
        @tool
        def look(context: ToolContext) -> str:
            """Look."""
            context.session["seen"] = context.idempotency_key
            context.interrupt("may I?")
            return "never"

        async with desk(
            agent_with(look), Reply(Call("look", call_id="c")), Reply(Say("Hm.")), session_id="s1"
        ) as at:
            await at.ask("go", 2)
            assert "needs_approval" in at.outputs()[0][1]
            assert at.session.context.session["seen"] == "s1:realtime:c"

    run(main())
