"""`transcript`: a run as text that is the same each time."""

import pytest

from offbook.actors import ChatModelAgent, Parallel, tool
from offbook.runtime import MemoryStore, Runner, ScriptedModel, ToolCalls, UsageError
from offbook.runtime.testing import transcript


def get_weather(city: str) -> str:
    """Look."""
    return f"{city}: sunny"


def team():
    weather = ChatModelAgent(
        name="Weather",
        model=ScriptedModel([ToolCalls(get_weather={"city": "Rome"}), "Sunny.\nAll day."]),
        tools=[get_weather],
    )
    return ChatModelAgent(
        name="Router",
        model=ScriptedModel([ToolCalls(transfer_to_agent={"agent_name": "Weather"})]),
        sub_agents=[weather],
    )


def test_each_event_is_a_line_and_the_last_one_says_how_the_run_has_ended():
    assert transcript(Runner(team(), streaming=True).query("q").result()).splitlines() == [
        '[Router] calls transfer_to_agent({"agent_name":"Weather"})',
        "[Router] transfer_to_agent -> successfully transferred to agent [Weather] | "
        "transfers to Weather",
        '[Weather] calls get_weather({"city":"Rome"})',
        "[Weather] get_weather -> Rome: sunny",
        "[Weather] Sunny. All day.",
        "= completed",
    ]


def test_it_is_the_same_for_each_run():
    assert len({transcript(Runner(team()).query("q").result()) for _ in range(5)}) == 1


def test_events_by_themselves_will_do():
    assert transcript(Runner(team()).query("q")).splitlines()[-1] == "[Weather] Sunny. All day."


def test_interrupts_and_failures_hold_no_ids():
    @tool
    def odd(x: int) -> object:
        """Odd."""
        raise ValueError(object())

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return str(amount)

    def once():
        first = ChatModelAgent(
            name="A", model=ScriptedModel([ToolCalls(odd={"x": 1}), "ok"]), tools=[odd]
        )
        second = ChatModelAgent(
            name="B", model=ScriptedModel([ToolCalls(pay={"amount": 1})]), tools=[pay]
        )
        return transcript(
            Runner(
                Parallel(name="P", sub_agents=[first, second], max_concurrency=1),
                store=MemoryStore(),
            )
            .query("q")
            .result()
        )

    assert once() == once()
    assert "<object object>" in once()
    assert once().endswith("= interrupted")


@pytest.mark.parametrize("given", [3, None, ScriptedModel(["x"])])
def test_what_is_no_run_is_refused_with_what_to_give(given):
    with pytest.raises(UsageError, match=r"must be the result of a run or its events"):
        transcript(given)
