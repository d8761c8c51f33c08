"""What is said when a Runner is made, because it would be silent later."""

import logging

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential, Supervisor, tool
from offbook.runtime import MemoryStore, Runner, ScriptedModel


@tool(needs_approval=True)
def pay(amount: int) -> str:
    return "paid"


@tool(needs_approval=lambda context, arguments: arguments["amount"] > 5)
def refund(amount: int) -> str:
    return "refunded"


def chat(name, **options):
    return ChatModelAgent(name=name, model=ScriptedModel([]), **options)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    "options", [{}, {"store": MemoryStore(), "durability": "none"}], ids=["no store", "not kept"]
)
def test_tools_that_need_approval_in_runs_that_cannot_go_on(caplog, options):
    Runner(Sequential(name="S", sub_agents=[chat("A", tools=[pay, refund])]), **options)
    (said,) = warnings(caplog)
    assert all(part in said for part in ("'A'", "pay, refund", "approval", "store="))


def test_the_same_of_a_supervisor(caplog):
    Runner(Supervisor(supervisor=chat("S", tools=[pay]), sub_agents=[chat("A")]))
    (said,) = warnings(caplog)
    assert "'S'" in said


def test_nothing_is_said_where_they_can(caplog):
    Runner(chat("A", tools=[pay]), store=MemoryStore())
    Runner(chat("A"))
    assert warnings(caplog) == []


@pytest.mark.parametrize("kind", [Sequential, Loop, Parallel])
def test_a_workflow_without_sub_agents(caplog, kind):
    Runner(kind(name="W", sub_agents=[]))
    (said,) = warnings(caplog)
    assert all(part in said for part in (kind.__name__, "'W'", "no sub-agents"))
