"""What a tool does once, however often it is called: `context.step`."""

import asyncio

import pytest

from offbook.actors import ToolContext, tool
from offbook.runtime import CheckpointError, Runner, ToolCall, ToolCalls
from tests.doubles.waiting import Stage, chat, told


class Bank:
    """Counts what it was asked to do."""

    def __init__(self):
        self.done = []

    def charge(self, what):
        async def make():
            await asyncio.sleep(0)
            self.done.append(what)
            return f"receipt {len(self.done)}"

        return make


def paying(bank):
    @tool
    async def pay(amount: int, context: ToolContext) -> str:
        receipt = await context.step("charge", bank.charge(amount))
        again = await context.step("charge", bank.charge(amount))
        mail = await context.step("mail", bank.charge("mail"))
        return f"{receipt}, {again}, {mail}; {context.interrupt('may it be kept?')}"

    return pay


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_step_is_not_done_again_when_the_call_goes_on(durability):
    bank = Bank()
    agent = chat("A", ToolCalls(pay={"amount": 3}), "end", tools=[paying(bank)])
    play = Stage(agent, durability=durability)
    play.start()
    play.go_on(data="yes")
    assert bank.done == [3, "mail"]
    assert told(agent.model) == [("pay", "receipt 1, receipt 1, receipt 2; yes")]


def test_two_calls_of_one_reply_have_steps_of_their_own():
    bank = Bank()
    calls = ToolCalls(
        ToolCall("c1", "pay", '{"amount": 1}'), ToolCall("c2", "pay", '{"amount": 2}')
    )
    agent = chat("A", calls, "end", tools=[paying(bank)])
    play = Stage(agent)
    assert len(play.start().interrupts) == 2
    play.go_on(data="yes")
    assert sorted(map(str, bank.done)) == ["1", "2", "mail", "mail"]


def test_another_attempt_finds_what_the_first_has_done():
    bank, attempts = Bank(), []

    @tool(retries=2)
    async def pay(context: ToolContext) -> str:
        receipt = await context.step("charge", bank.charge("it"))
        attempts.append(receipt)
        if len(attempts) < 3:
            raise ConnectionError("down")
        return receipt

    agent = chat("A", ToolCalls(pay={}), "end", tools=[pay])
    assert Runner(agent).query("go").result(10).final_output == "end"
    assert (attempts, bank.done) == (["receipt 1"] * 3, ["it"])


def test_a_step_that_fails_is_not_done():
    bank, tries = Bank(), []

    @tool(retries=1)
    async def pay(context: ToolContext) -> str:
        async def make():
            tries.append(1)
            if len(tries) == 1:
                raise ConnectionError("down")
            return await bank.charge("it")()

        return await context.step("charge", make)

    agent = chat("A", ToolCalls(pay={}), "end", tools=[pay])
    Runner(agent).query("go").result(10)
    assert told(agent.model) == [("pay", "receipt 1")]
    assert (tries, bank.done) == ([1, 1], ["it"])


def test_what_cannot_be_kept_is_refused_where_the_run_is_kept():
    seen = []

    @tool
    async def make(context: ToolContext) -> str:
        async def lock():
            return asyncio.Lock()

        try:
            await context.step("lock", lock)
        except CheckpointError as error:
            seen.append(str(error))
        return "made"

    Stage(chat("A", ToolCalls(make={}), "end", tools=[make]), durability="step").start()
    assert "the result of step(" in seen[0]
    assert "lock" in seen[0]
