"""G22: an answer is bound to what the person was shown, and a call that needs approval is not made
without one.
"""

import asyncio
import json
import logging
import pickle

import pytest
from pydantic import BaseModel

from offbook.actors import ApprovalRequest, ChatModelAgent, ToolContext, tool
from offbook.runtime import MemoryStore, ResumeError, Runner, ScriptedModel, ToolCalls, UsageError
from tests.doubles.waiting import Asker, Stage, chat

EACH = pytest.mark.parametrize("durability", ["interrupt", "step"])


class Bank:
    """Pays what its model wants: 10 first, then 10,000."""

    def __init__(self, *script, store=None, **options):
        self.paid = []

        @tool(needs_approval=options.pop("needs_approval", True))
        async def pay(euros: int) -> str:
            self.paid.append(euros)
            return f"paid {euros}"

        agent = chat(
            "a",
            *(script or (ToolCalls(pay={"euros": 10}), ToolCalls(pay={"euros": 10_000}), "end")),
            tools=[pay],
        )
        self.runner = Runner(agent, store=store or MemoryStore(), **options)


async def refused(run, match="It waits for|answered"):
    with pytest.raises(ResumeError, match=match):
        await run


# --- which call is answered ---


@EACH
def test_g22_the_second_yes_to_one_call_is_no_yes_to_the_next(run, durability):
    async def main():
        bank = Bank(durability=durability)
        first = bank.runner.query("go", run_id="r")
        (shown,) = (await first).interrupts
        (listed,), info = await bank.runner.pending(), await bank.runner.info("r")
        (next_one,) = (await bank.runner.resume(listed.checkpoint_id, data=True)).interrupts
        assert next_one.info == ApprovalRequest("pay", '{"euros":10000}')
        for late in (
            lambda: bank.runner.resume(listed.checkpoint_id, data=True),
            lambda: bank.runner.resume(info.checkpoint_id, data=True),
            lambda: bank.runner.resume(first.checkpoint_id, data=True),
            lambda: bank.runner.resume("r", {shown.id: True}),
            lambda: bank.runner.approve(shown),
            lambda: bank.runner.approve(shown.id),
            lambda: bank.runner.deny(shown.id),
        ):
            await refused(late(), "answered")
        assert bank.paid == [10]
        assert (await bank.runner.deny(next_one, "too much")).status == "completed"
        await refused(bank.runner.approve(next_one), "answered")
        assert bank.paid == [10]

    run(main())


@EACH
@pytest.mark.parametrize("form", ["context", "id", "text"])
def test_g22_a_call_is_approved_by_its_interrupt_in_any_process(run, store_of, durability, form):
    async def main():
        store = store_of("sqlite")
        first = Bank(durability=durability, store=store)
        (shown,) = (await first.runner.query("go", checkpoint_id="invoice 7/a@b")).interrupts
        other = Bank(ToolCalls(pay={"euros": 10_000}), "end", durability=durability, store=store)
        waits = {"context": shown, "id": shown.id, "text": json.loads(json.dumps(shown.id))}[form]
        (next_one,) = (await other.runner.approve(waits)).interrupts
        assert (await other.runner.approve(next_one.id, {"euros": 9})).final_output == "end"
        assert other.paid == [10, 9]

    run(main())


@pytest.mark.parametrize("answer", [True, False])
def test_g22_whatever_waits_is_no_approval(run, answer):
    async def main():
        bank = Bank()
        first = bank.runner.query("go", run_id="r")
        await first
        await refused(
            bank.runner.resume("r", data=answer), r"cannot approve .* Use approve\(interrupt\)"
        )
        await refused(
            bank.runner.resume(json.loads(json.dumps(first.checkpoint_id)), data=answer),
            "cannot approve",
        )
        assert bank.paid == []
        assert (await bank.runner.info("r")).waiting  # it still waits

    run(main())


@pytest.mark.parametrize("arguments", ["no", "[1]", "3", 7, True])
def test_g22_arguments_that_no_call_can_have_are_refused_before_anything_is_answered(
    run, arguments
):
    async def main():
        bank = Bank()
        first = await bank.runner.query("go", run_id="r")
        with pytest.raises(UsageError, match=r"arguments must be .* deny\(interrupt\)"):
            bank.runner.approve(first.interrupts[0], arguments)
        assert bank.paid == []
        assert (await bank.runner.info("r")).waiting

    run(main())


@EACH
def test_g22_an_answer_to_an_older_question_is_no_answer_to_the_next(run, durability):
    async def main():
        runner = Runner(
            Asker("A", "how many?", "to whom?"), store=MemoryStore(), durability=durability
        )
        first = runner.query("q", run_id="r")
        await first
        second = runner.resume(first.checkpoint_id, data=3)
        assert (await second).status == "interrupted"
        await refused(runner.resume(first.checkpoint_id, data=3), "handed out at save 1")
        assert (
            await runner.resume(second.checkpoint_id, data="Ann")
        ).final_output == "A heard 3,Ann"

    run(main())


def test_g22_an_interrupt_is_only_approved_with_what_was_shown(run):
    async def main():
        bank = Bank()
        (shown,) = (await bank.runner.query("go")).interrupts
        forged = type(shown)(shown.id, shown.address, ApprovalRequest("pay", '{"euros":1}'))
        await refused(bank.runner.approve(forged), "was shown, and .* waits")
        assert bank.paid == []

    run(main())


def test_g22_a_question_is_neither_approved_nor_denied(run):
    async def main():
        runner = Runner(Asker("A"), store=MemoryStore())
        (asked,) = (await runner.query("q")).interrupts
        await refused(runner.approve(asked), "is a question")
        await refused(runner.deny(asked.id), "is a question")

    run(main())


@pytest.mark.parametrize("wrong", [None, 7, "", "nobody", ("a", "b")])
def test_g22_what_is_no_interrupt_is_an_error_at_once(wrong):
    with pytest.raises(UsageError, match=r"^(approve|deny): interrupt must be"):
        Bank().runner.approve(wrong)


def test_g22_what_else_waits_waits_on(run):
    async def main():
        bank = Bank(ToolCalls(("pay", {"euros": 1}), ("pay", {"euros": 2})), "end")
        one, two = (await bank.runner.query("go")).interrupts
        (left,) = (await bank.runner.approve(two)).interrupts
        assert (left.info, bank.paid) == (one.info, [2])
        await refused(bank.runner.approve(one))
        assert (await bank.runner.deny(left)).status == "completed"
        assert bank.paid == [2]

    run(main())


def test_g22_of_many_answers_at_once_one_counts(run):
    async def main():
        bank = Bank(ToolCalls(pay={"euros": 10}), "end")
        (shown,) = (await bank.runner.query("go")).interrupts
        found = await asyncio.gather(
            *(bank.runner.approve(shown) for _ in range(8)), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in found) == ["ResumeError"] * 7 + ["RunResult"]
        assert bank.paid == [10]

    run(main())


def test_a_checkpoint_id_that_was_handed_out_is_the_same_text(run):
    async def main():
        bank = Bank()
        first = bank.runner.query("go", run_id="r")
        await first
        handed_out = first.checkpoint_id
        assert (handed_out, handed_out.save, json.dumps(handed_out)) == ("r", 1, '"r"')
        assert pickle.loads(pickle.dumps(handed_out)).save == 1
        assert await bank.runner.store.get(handed_out) is not None

    run(main())


# --- what is asked the second time ---


@EACH
def test_g22_a_tool_that_asks_something_else_is_not_given_the_old_answer(durability):
    payments = [("Bob", 10)]
    done = []

    @tool
    def pay_all(context: ToolContext) -> str:
        for name, euros in tuple(payments):
            if context.interrupt({"pay": name, "euros": euros}) == "yes":
                done.append((name, euros))
        return "over"

    stage = Stage(chat("a", ToolCalls(pay_all={}), "end", tools=[pay_all]), durability=durability)
    (first,) = stage.start().interrupts
    payments[:] = [("Mallory", 9999), ("Bob", 10)]
    (second,) = stage.go_on({first.id: "yes"}).interrupts
    assert (second.info, done) == ({"pay": "Mallory", "euros": 9999}, [])
    assert stage.go_on({second.id: "no"}).status == "completed"
    assert done == [("Bob", 10)]  # which was answered before, and is what was asked


@pytest.mark.parametrize(
    "info",
    [None, "sure?", {"a": (1, 2.5), "b": [b"x", None, True]}, ApprovalRequest("x", "{}")],
    ids=repr,
)
def test_a_question_that_is_the_same_is_not_asked_again(store_of, info):
    heard = []

    @tool
    def ask_twice(context: ToolContext) -> str:
        heard[:] = [context.interrupt(info), context.interrupt(info)]
        return "over"

    stage = Stage(
        chat("a", ToolCalls(ask_twice={}), "end", tools=[ask_twice]), store=store_of("sqlite")
    )
    (first,) = stage.start().interrupts
    (second,) = stage.go_on({first.id: True}).interrupts
    result = stage.go_on({second.id: False})
    assert (result.status, heard) == ("completed", [True, False])


# --- who judges, and by what ---


class Order(BaseModel):
    name: str
    count: int = 1


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (
            {"urgent": "false", "number": "42", "order": {"name": "x"}},
            {"urgent": False, "number": 42, "order": Order(name="x"), "euros": 500},
        ),
        (
            {"urgent": 1, "number": 4, "order": {"name": "x", "count": "3"}, "euros": "7"},
            {"urgent": True, "number": 4, "order": Order(name="x", count=3), "euros": 7},
        ),
    ],
)
def test_g22_needs_approval_is_judged_by_the_values_of_the_call(given, seen):
    judged = []

    @tool(needs_approval=lambda context, values: judged.append(values) or False)
    def pay(urgent: bool, number: int, order: Order, context: ToolContext, euros: int = 500) -> str:
        return f"{urgent} {number} {order} {euros}"

    result = Stage(chat("a", ToolCalls(pay=given), "end", tools=[pay])).start()
    assert judged == [seen]
    assert result.events[1].message.text == "{urgent} {number} {order} {euros}".format(**seen)


def test_g22_the_policy_cannot_change_the_call():
    def tampering(context, values):
        values["euros"] = 1
        return False

    bank = Bank(ToolCalls(pay={"euros": 10}), "end", needs_approval=tampering)
    bank.runner.query("go").result(20)
    assert bank.paid == [10]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_g22_a_call_that_cannot_be_judged_has_to_be_approved(kind, caplog):
    def fails(context, values):
        return values["euro"] > 5

    async def fails_later(context, values):
        return fails(context, values)

    bank = Bank(
        ToolCalls(pay={"euros": 10}), "end", needs_approval=fails if kind == "def" else fails_later
    )
    with caplog.at_level(logging.WARNING, "offbook"):
        (asked,) = bank.runner.query("go").result(20).interrupts
    assert (asked.info, bank.paid) == (ApprovalRequest("pay", '{"euros":10}'), [])
    assert any(
        "needs_approval of tool pay" in record.getMessage() and record.exc_info
        for record in caplog.records
    )
    assert bank.runner.approve(asked).result(20).status == "completed"
    assert bank.paid == [10]


def test_ids_of_interrupts_lead_to_their_run(run):
    async def main():
        without = Runner(Asker("A"))
        (asked,) = (await without.query("q")).interrupts
        with pytest.raises(UsageError, match="must be the id of an interrupt in a store"):
            without.approve(asked)

    run(main())


def test_g22_a_policy_that_forgets_to_return_asks_the_person(run, caplog):
    async def main():
        made = []

        def forgets(context, values):
            values["euros"] > 100  # noqa: B015 -- the return is missing

        @tool(needs_approval=forgets)
        def pay(euros: int) -> str:
            """Pay."""
            made.append(euros)
            return "paid"

        agent = ChatModelAgent(
            name="A", tools=[pay], model=ScriptedModel([ToolCalls(pay={"euros": 500}), "done"])
        )
        result = await Runner(agent, store=MemoryStore()).query("q")
        assert (result.status, made) == ("interrupted", [])
        assert "it must return True or False, got None" in caplog.text

    run(main())
