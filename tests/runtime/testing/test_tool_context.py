"""Tools in unit tests: `tool_context(...)`, a real `ToolContext` without a run."""

import asyncio
import subprocess
import sys

import pytest

from offbook.actors import ToolContext, tool
from offbook.actors.tools.tool_call_state import ToolInterrupted
from offbook.runtime import AgentEvent, Exit, UsageError
from offbook.runtime.testing import tool_context


@tool
def book(name: str, context: ToolContext) -> str:
    """Book a table."""
    context.session["booked"] = name
    if context.options.get("strict"):
        context.send_action(Exit())
    context.emit(AgentEvent.of(custom_output="booking"))
    return f"{name} for {context.agent_name}"


def test_a_tool_is_called_as_a_function_with_a_context():
    context = tool_context(agent_name="Concierge", options={"strict": True})
    assert isinstance(context, ToolContext)
    assert book("Chez Paul", context=context) == "Chez Paul for Concierge"
    assert context.session.to_dict() == {"booked": "Chez Paul"}
    assert context.action == Exit()
    assert [event.custom_output for event in context.emitted] == ["booking"]


def test_what_the_tool_sees_of_its_call_is_what_the_test_gives():
    context = tool_context(
        tool_name="pay",
        call_id="c7",
        arguments='{"a":1}',
        session_values={"user": "Ann"},
        context=object,
    )
    assert (context.tool_name, context.call_id, context.arguments, context.run_path) == (
        "pay",
        "c7",
        '{"a":1}',
        ("agent",),
    )
    assert context.session["user"] == "Ann"
    assert context.run.context is object
    assert context.idempotency_key.endswith(":c7")
    assert not context.cancelled.is_set()
    assert (context.is_resume, context.is_resume_target, context.fence) == (False, False, 0)


@tool
def ask(context: ToolContext) -> str:
    """Ask twice."""
    return f"{context.interrupt('first?')} {context.interrupt({'second': True})}"


def test_interrupts_are_answered_one_after_the_other():
    context = tool_context(answers=["yes", 2])
    assert ask(context=context) == "yes 2"
    assert context.asked == ["first?", {"second": True}]
    assert context.is_resume
    assert context.is_resume_target


def test_an_interrupt_without_an_answer_ends_the_call_as_in_a_run():
    context = tool_context(answers=["yes"])
    with pytest.raises(ToolInterrupted) as caught:
        ask(context=context)
    assert [one.info for one in caught.value.contexts] == [{"second": True}]
    assert context.asked == ["first?", {"second": True}]


def test_a_step_is_done_once_and_what_blocks_runs_in_a_thread():
    done = []

    async def charge():
        done.append("charged")
        return "receipt"

    async def main():
        context = tool_context()
        receipts = [await context.step("charge", charge) for _ in range(2)]
        return receipts, await context.run_blocking(sum, [1, 2])

    assert asyncio.run(main()) == (["receipt", "receipt"], 3)
    assert done == ["charged"]


def test_a_wrong_action_is_refused_as_in_a_run():
    with pytest.raises(UsageError, match="send_action"):
        tool_context().send_action("exit")


def test_without_the_package_of_tools_it_says_what_to_import():
    program = "from offbook.runtime.testing import tool_context\ntool_context()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=50
    )
    assert "import offbook.actors" in done.stderr.splitlines()[-1]
