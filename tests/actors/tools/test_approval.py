"""Calls that somebody has to approve first: what is asked, and what each answer does."""

import asyncio
import json

import pytest

from offbook.actors import ApprovalRequest, Approve, ChatModelAgent, Deny, ToolContext, tool
from offbook.runtime import Message, OffbookError, RunStatus, ScriptedModel, ToolCall, ToolCalls
from tests.doubles.waiting import Stage, chain, chat, ids, is_whole, told


class Till:
    """Pays, and notes what it has paid."""

    def __init__(self, kind="async def", **options):
        self.paid = []
        options.setdefault("needs_approval", True)

        async def pay(amount: int, to: str = "Ada") -> str:
            self.paid.append((amount, to))
            return f"paid {amount} to {to}"

        def pay_in_a_thread(amount: int, to: str = "Ada") -> str:
            self.paid.append((amount, to))
            return f"paid {amount} to {to}"

        self.tool = tool(name="pay", **options)(pay if kind == "async def" else pay_in_a_thread)

    def agent(self, *script, tools=(), **options):
        return chat(
            "a",
            *(script or (ToolCalls(pay={"amount": 5}), "end")),
            tools=[self.tool, *tools],
            **options,
        )


@pytest.fixture(params=["async def", "def"])
def till(request):
    return Till(request.param)


# --- what is asked ---


def test_the_interrupt_says_which_call_and_nothing_is_called(lines, till):
    result = Stage(till.agent()).start()
    assert lines(result) == ['a [a] assistant "" tc(pay {"amount":5})', "a [a] {Interrupted 1}"]
    (context,) = result.interrupts
    assert context.info == ApprovalRequest(tool_name="pay", arguments='{"amount":5}')
    assert chain(context)[0].startswith("agent:a/tool:pay ApprovalRequest(")
    assert till.paid == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_request_is_the_same_when_it_comes_from_a_store(store_of, kind, till):
    stage = Stage(
        till.agent(ToolCalls(("pay", {"amount": 1}), ("pay", {"amount": 2})), "end"),
        store=store_of(kind),
    )
    first = stage.start()
    targets = {
        context.id: True for context in first.interrupts if context.info.arguments == '{"amount":1}'
    }
    (again,) = stage.go_on(targets).interrupts
    assert again.info == ApprovalRequest("pay", '{"amount":2}')
    assert till.paid == [(1, "Ada")]


# --- each answer ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("data", [True, Approve()], ids=repr)
def test_an_approved_call_is_made_once_as_the_model_wanted_it(lines, till, data, durability):
    agent = till.agent()
    stage = Stage(agent, durability=durability)
    stage.start()
    result = stage.go_on(data=data)
    assert lines(result) == ['a [a] tool(pay) "paid 5 to Ada"', 'a [a] assistant "end"']
    assert result.status is RunStatus.COMPLETED
    assert till.paid == [(5, "Ada")]
    assert told(agent.model) == [("pay", "paid 5 to Ada")]
    agent.model.assert_done()


@pytest.mark.parametrize(
    "arguments", [{"amount": 3, "to": "Bob"}, '{"amount":3,"to":"Bob"}'], ids=["mapping", "json"]
)
def test_a_call_may_be_approved_with_other_arguments(lines, till, arguments):
    agent = till.agent()
    stage = Stage(agent)
    stage.start()
    result = stage.go_on(data=Approve(arguments=arguments))
    assert lines(result)[0] == 'a [a] tool(pay) "paid 3 to Bob"'
    assert till.paid == [(3, "Bob")]
    assert is_whole(agent.model.requests[-1].messages)


@pytest.mark.parametrize(
    "arguments",
    [{"amount": "many"}, {}, "no json", '["a list"]', {"amount": 1, "what": "is this"}],
    ids=repr,
)
def test_arguments_that_do_not_fit_are_not_called_with(till, arguments):
    """Whether that is said to whoever approves or to the model: the till stays shut, and the run is
    not lost.
    """
    agent = till.agent()
    stage = Stage(agent)
    stage.start()
    try:
        result = stage.go_on(data=Approve(arguments=arguments))
    except OffbookError:
        assert stage.go_on(data=True).status == "completed"
        assert till.paid == [(5, "Ada")]
    else:
        assert result.status == "completed"
        assert till.paid == []
        ((_, text),) = told(agent.model)
        assert "pay" in text


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize(
    "data", [False, Deny(), Deny("too much"), Deny(reason="too much")], ids=repr
)
def test_a_denied_call_is_not_made_and_the_model_is_told(lines, till, data, durability):
    agent = till.agent(ToolCalls(pay={"amount": 5}), "I am sorry")
    stage = Stage(agent, durability=durability)
    stage.start()
    result = stage.go_on(data=data)
    assert (result.status, result.final_output) == (RunStatus.COMPLETED, "I am sorry")
    assert till.paid == []
    ((name, text),) = told(agent.model)
    assert name == "pay"
    assert text
    assert "denied" in text.lower() or "not approved" in text.lower() or "refused" in text.lower()
    if isinstance(data, Deny) and data.reason:
        assert "too much" in text
    assert [line.split('"')[0] for line in lines(result)] == [
        "a [a] tool(pay) ",
        "a [a] assistant ",
    ]
    assert is_whole(agent.model.requests[-1].messages)


def test_a_denial_is_reported_also_where_errors_of_tools_end_the_run(till):
    agent = till.agent(on_tool_error="raise")
    stage = Stage(agent)
    stage.start()
    assert stage.go_on(data=Deny("no")).status == "completed"


@pytest.mark.parametrize(
    "data", [None, "yes", 1, 0, "", [], {"arguments": {}}, Approve, ("a", True)], ids=repr
)
def test_an_answer_that_is_none_is_refused_and_the_call_still_waits(till, data):
    stage = Stage(till.agent())
    waits = ids(stage.start())["pay"]
    for wrong in ({"data": data}, {"targets": {waits: data}}):
        with pytest.raises(OffbookError):
            stage.go_on(**wrong)
    assert till.paid == []
    assert stage.go_on(data=True).status == "completed"
    assert till.paid == [(5, "Ada")]


def test_an_answer_that_is_none_for_one_of_several_is_refused_before_anything_runs(till):
    stage = Stage(till.agent(ToolCalls(("pay", {"amount": 1}), ("pay", {"amount": 2})), "end"))
    first, second = stage.start().interrupts
    with pytest.raises(OffbookError):
        stage.go_on({first.id: True, second.id: "maybe"})
    assert till.paid == []
    assert stage.go_on({first.id: True, second.id: False}).status == "completed"
    assert len(till.paid) == 1


def test_a_call_that_is_approved_is_not_approved_for_the_next_time(till):
    stage = Stage(till.agent(ToolCalls(pay={"amount": 1}), ToolCalls(pay={"amount": 2}), "end"))
    stage.start()
    again = stage.go_on(data=True)
    assert again.interrupts[0].info == ApprovalRequest("pay", '{"amount":2}')
    assert stage.go_on(data=False).status == "completed"
    assert till.paid == [(1, "Ada")]


# --- which calls need it ---


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_whether_it_is_needed_may_be_asked_of_a_function(kind):
    asked = []

    def over_ten(context, arguments):
        asked.append((context.agent_name, arguments))
        return arguments["amount"] > 10

    async def over_ten_later(context, arguments):
        await asyncio.sleep(0)
        return over_ten(context, arguments)

    till = Till(needs_approval=over_ten if kind == "def" else over_ten_later)
    agent = till.agent(ToolCalls(("pay", {"amount": 5}), ("pay", {"amount": 50})), "end")
    stage = Stage(agent)
    result = stage.start()
    assert [context.info for context in result.interrupts] == [
        ApprovalRequest("pay", '{"amount":50}')
    ]
    assert till.paid == [(5, "Ada")]
    assert [name for name, _ in asked] == ["a", "a"]
    assert stage.go_on(data=True).status == "completed"
    assert sorted(till.paid) == [(5, "Ada"), (50, "Ada")]
    assert len(told(agent.model)) == 2


def test_what_was_approved_is_made_whatever_the_function_says_the_second_time():
    answers = iter([True, False, False])
    till = Till(needs_approval=lambda context, arguments: next(answers))
    stage = Stage(till.agent())
    stage.start()
    assert stage.go_on(data=False).status == "completed"
    assert till.paid == [], "it was denied"


def test_other_arguments_are_approved_too_whatever_the_function_says_of_them():
    till = Till(needs_approval=lambda context, arguments: True)
    stage = Stage(till.agent())
    stage.start()
    assert stage.go_on(data=Approve(arguments={"amount": 500})).status == "completed"
    assert till.paid == [(500, "Ada")]


def test_a_call_whose_arguments_do_not_validate_is_not_shown_to_anybody_for_approval(till):
    agent = till.agent(ToolCalls(pay={"amount": "many"}), "end")
    result = Stage(agent).start()
    assert result.status == "completed", "nobody can judge it: the model is told"
    ((_, text),) = told(agent.model)
    assert "amount" in text


# --- beside other calls ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_the_others_of_the_reply_are_called_at_once_and_only_once(lines, till, durability):
    looked = []

    @tool
    def look(where: str) -> str:
        looked.append(where)
        return f"seen {where}"

    agent = till.agent(
        ToolCalls(("look", {"where": "1"}), ("pay", {"amount": 5}), ("look", {"where": "2"})),
        "end",
        tools=[look],
    )
    stage = Stage(agent, durability=durability)
    assert sorted(lines(stage.start())[1:]) == [
        'a [a] tool(look) "seen 1"',
        'a [a] tool(look) "seen 2"',
        "a [a] {Interrupted 1}",
    ]
    assert lines(stage.go_on(data=True)) == [
        'a [a] tool(pay) "paid 5 to Ada"',
        'a [a] assistant "end"',
    ]
    assert sorted(looked) == ["1", "2"]
    assert told(agent.model) == [("look", "seen 1"), ("pay", "paid 5 to Ada"), ("look", "seen 2")]
    assert is_whole(agent.model.requests[-1].messages)


def test_each_of_several_may_be_answered_in_its_own_way_and_time(till):
    script = ToolCalls(*(("pay", {"amount": amount}) for amount in (1, 2, 3, 4)))
    agent = till.agent(script, "end")
    stage = Stage(agent)

    def waiting(result):
        return {
            json.loads(context.info.arguments)["amount"]: context.id
            for context in result.interrupts
        }

    found = waiting(stage.start())
    assert sorted(found) == [1, 2, 3, 4]
    found = waiting(stage.go_on({found[2]: False, found[4]: Approve({"amount": 40})}))
    assert sorted(found) == [1, 3]
    assert stage.go_on({found[1]: True, found[3]: Deny("three")}).status == "completed"
    assert sorted(till.paid) == [(1, "Ada"), (40, "Ada")]
    texts = [text for _, text in told(agent.model)]
    assert (texts[0], texts[3]) == ("paid 1 to Ada", "paid 40 to Ada")
    assert "three" in texts[2]


def test_one_by_one_each_is_asked_for_when_its_turn_has_come(till):
    agent = till.agent(
        ToolCalls(("pay", {"amount": 1}), ("pay", {"amount": 2})), "end", parallel_tool_calls=False
    )
    stage = Stage(agent)
    assert [context.info.arguments for context in stage.start().interrupts] == ['{"amount":1}']
    assert [context.info.arguments for context in stage.go_on(data=False).interrupts] == [
        '{"amount":2}'
    ]
    assert stage.go_on(data=True).status == "completed"
    assert till.paid == [(2, "Ada")]


# --- with what else a tool can do ---


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_approved_call_may_ask_something_itself(kind):
    notes = []

    def body(context):
        notes.append((context.is_resume, context.interrupt_state))
        return f"{context.interrupt('sure?', state='s')} {context.interrupt('really?')}"

    @tool(name="fire", needs_approval=True)
    def fire_in_a_thread(context: ToolContext) -> str:
        return body(context)

    @tool(name="fire", needs_approval=True)
    async def fire(context: ToolContext) -> str:
        return body(context)

    agent = chat(
        "a", ToolCalls(fire={}), "end", tools=[fire if kind == "async def" else fire_in_a_thread]
    )
    stage = Stage(agent)
    infos = [
        result.interrupts[0].info
        for result in (stage.start(), stage.go_on(data=True), stage.go_on(data=False))
    ]
    assert infos == [ApprovalRequest("fire", "{}"), "sure?", "really?"]
    assert stage.go_on(data="r").status == "completed"
    assert told(agent.model) == [("fire", "False r")], (
        "what follows the approval is no answer to it"
    )
    assert [state for _, state in notes] == [None, "s", None]


def test_the_time_that_somebody_thinks_about_it_does_not_count(till):
    quick = Till(timeout=5)
    stage = Stage(quick.agent())
    stage.start(timeout=30)
    assert stage.go_on(data=True).status == "completed"
    assert quick.paid == [(5, "Ada")]


def test_an_approved_call_that_fails_is_tried_again_without_asking_again():
    tries = []

    @tool(needs_approval=True, retries=2)
    async def pay(amount: int) -> str:
        tries.append(amount)
        if len(tries) < 3:
            raise ConnectionError("busy")
        return "paid"

    agent = chat("a", ToolCalls(pay={"amount": 5}), "end", tools=[pay])
    stage = Stage(agent)
    stage.start()
    assert stage.go_on(data=Approve({"amount": 7})).status == "completed"
    assert tries == [7, 7, 7]
    assert told(agent.model) == [("pay", "paid")]


def test_an_approved_call_that_returns_directly_ends_its_agent(lines):
    till = Till(return_directly=True)
    stage = Stage(till.agent(ToolCalls(pay={"amount": 5})))
    stage.start()
    assert lines(stage.go_on(data=True)) == ['a [a] tool(pay) "paid 5 to Ada"']


def test_a_denied_call_of_a_tool_that_returns_directly_says_so(lines):
    """Whether the model is asked once more is open; that nothing was paid is not."""
    till = Till(return_directly=True)
    stage = Stage(till.agent(ToolCalls(pay={"amount": 5}), "end"))
    stage.start()
    assert stage.go_on(data=False).status == "completed"
    assert till.paid == []


def test_a_streamed_call_is_approved_like_any_other(till):
    agent = ChatModelAgent(
        name="a",
        model=ScriptedModel([ToolCalls(pay={"amount": 5}), "two words"]),
        tools=[till.tool],
    )
    stage = Stage(agent, streaming=True)
    stage.start()
    events = list(stage.runner.resume(stage.id, data=True))
    assert [event.message.text for event in events if event.message] == [
        "paid 5 to Ada",
        "two words",
    ]
    assert [event.delta.content for event in events if event.delta] == ["two", " words"]


@pytest.mark.parametrize("call_id", ["same", ""])
def test_twins_are_approved_one_by_one(till, call_id):
    twins = Message.assistant(
        "", (ToolCall(call_id, "pay", '{"amount":1}'), ToolCall(call_id, "pay", '{"amount":2}'))
    )
    stage = Stage(till.agent(twins, "end"))
    waits = {context.info.arguments: context.id for context in stage.start().interrupts}
    assert (
        stage.go_on({waits['{"amount":1}']: False, waits['{"amount":2}']: True}).status
        == "completed"
    )
    assert till.paid == [(2, "Ada")]
