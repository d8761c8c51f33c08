"""G22 in a session that speaks: an answer belongs to one call and its arguments, and a call that
cannot be judged has to be approved.
"""

import logging

import pytest

from offbook.actors import tool
from offbook.actors.realtime import RealtimeAgent
from offbook.actors.realtime.local import Call, Reply, Say
from offbook.runtime import UsageError
from tests.doubles.realtime import desk


def payer(needs_approval):
    paid = []

    @tool(needs_approval=needs_approval)
    def pay(amount: int, urgent: bool = False, euros: int = 500) -> str:
        """Pay."""
        paid.append((amount, urgent, euros))
        return f"paid {amount}"

    return RealtimeAgent("desk", "Answer.", tools=[pay]), paid


def test_g22_an_answer_is_for_the_call_that_was_shown_and_for_no_other(run):
    async def main():
        agent, paid = payer(needs_approval=True)
        replies = (
            Reply(Call("pay", '{"amount": 10}', "a"), Say("One moment.")),
            Reply(Say("Paid.")),
            Reply(Call("pay", '{"amount": 10000}', "b"), Say("And?")),
        )
        async with desk(agent, *replies, otherwise=Reply(Say("Well."))) as at:
            await at.ask("pay")
            (asked,) = await at.heard.until_shown("tool_approval_required")
            assert (asked.call_id, asked.arguments) == ("a", '{"amount": 10}')
            await at.session.approve_tool_call("a")
            await at.heard.until_shown("agent_end", 2)
            await at.ask("again")
            await at.heard.until_shown("tool_approval_required", 2)
            await at.session.approve_tool_call("a")  # the second yes to the first call
            with pytest.raises(UsageError, match="does not wait for an approval"):
                await at.session.approve_tool_call("c")
            await at.session.reject_tool_call("b")
            await at.heard.until_shown("tool_end", 2)
            assert [amount for amount, *_ in paid] == [10]

    run(main())


def test_g22_an_answer_for_always_is_not_for_another_agents_tool_of_the_same_name(run):
    async def main():
        other, others = payer(needs_approval=True)
        other.name = "billing"
        agent, paid = payer(needs_approval=True)
        agent.handoffs = [other]
        replies = (
            Reply(Call("pay", '{"amount": 10}', "a"), Say("One moment.")),
            Reply(Say("Paid.")),
            Reply(Call("transfer_to_billing", "{}", "h")),
            Reply(Call("pay", '{"amount": 20}', "b"), Say("And?")),
        )
        async with desk(agent, *replies, otherwise=Reply(Say("Well."))) as at:
            await at.ask("pay")
            await at.heard.until_shown("tool_approval_required")
            await at.session.approve_tool_call("a", always=True)
            await at.heard.until_shown("agent_end", 2)
            await at.ask("to billing")
            asked = await at.heard.until_shown("tool_approval_required", 2)
            assert asked[-1].call_id == "b"
            assert ([amount for amount, *_ in paid], others) == ([10], [])

    run(main())


def test_g22_needs_approval_is_judged_by_the_values_of_the_call(run):
    async def main():
        judged = []
        agent, paid = payer(lambda context, values: bool(judged.append(values)))
        async with desk(
            agent,
            Reply(Call("pay", '{"amount": "42", "urgent": "false"}', "a")),
            Reply(Say("Paid.")),
        ) as at:
            await at.ask("pay", 2)
            assert judged == [{"amount": 42, "urgent": False, "euros": 500}]
            assert paid == [(42, False, 500)]

    run(main())


def test_g22_a_call_that_cannot_be_judged_has_to_be_approved(run, caplog):
    async def main():
        agent, paid = payer(lambda context, values: values["nothing"] > 5)
        async with desk(
            agent, Reply(Call("pay", '{"amount": 10}', "a"), Say("One moment.")), Reply(Say("No."))
        ) as at:
            await at.ask("pay")
            (asked,) = await at.heard.until_shown("tool_approval_required")
            assert (asked.call_id, paid) == ("a", [])
            await at.session.reject_tool_call("a")
            await at.heard.until_shown("agent_end", 2)
            assert paid == []

    with caplog.at_level(logging.WARNING, "offbook"):
        run(main())
    assert any("needs_approval of tool pay" in record.getMessage() for record in caplog.records)
