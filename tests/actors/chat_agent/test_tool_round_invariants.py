"""Rounds of tool calls of every kind, mixed at random and cut short: what holds of all of them."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import CustomAction, Message, Runner, ScriptedModel, ToolCall, ToolError


@tool
async def fine(context: ToolContext, number: int) -> str:
    for _ in range(number % 3):
        await asyncio.sleep(0)
    context.send_action(CustomAction(number))
    return f"fine {number}"


@tool
def threaded(number: int) -> str:
    return f"threaded {number}"


@tool
async def failing(number: int) -> str:
    for _ in range(number % 2):
        await asyncio.sleep(0)
    raise ValueError(number)


@tool(return_directly=True)
async def direct(number: int) -> str:
    return f"direct {number}"


@tool
async def asking(context: ToolContext, number: int) -> str:
    return context.interrupt(number)


TOOLS = [fine, threaded, failing, direct, asking]
KINDS = ["fine", "threaded", "failing", "direct", "asking", "unknown", "broken"]
ROUNDS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.sampled_from(["", "same", "own"])),
        min_size=1,
        max_size=5,
    ),
    max_size=3,
)


def reply(kinds):
    calls = []
    for number, (kind, call_id) in enumerate(kinds):
        name = "fine" if kind == "broken" else kind
        calls.append(
            ToolCall(
                f"own{number}" if call_id == "own" else call_id,
                name,
                "{" if kind == "broken" else f'{{"number":{number}}}',
            )
        )
    return Message.assistant("", tuple(calls))


def check_history(messages):
    """Each call has its result, right behind it, in the order of the calls; there is no other
    result.
    """
    waiting = []
    for message in messages:
        if message.role == "tool":
            call = waiting.pop(0)
            assert (message.tool_call_id, message.tool_name) == (call.id, call.name)
        else:
            assert not waiting
            waiting = list(message.tool_calls)
            assert len({call.id for call in waiting}) == len(waiting)
            assert all(call.id for call in waiting)
    assert not waiting


def end_of(rounds, mode, parallel):
    """How the run ends, and after how many replies."""
    for number, kinds in enumerate(rounds, 1):
        names = [kind for kind, _ in kinds]
        if not parallel and "asking" in names:
            names = names[: names.index("asking") + 1]  # those behind it are not made
        if mode == "raise" and {"failing", "unknown", "broken"} & set(names):
            return "failed", number
        if "asking" in names:
            return "interrupted", number
        if "direct" in names:
            return "completed", number
    return "completed", len(rounds) + 1


@settings(max_examples=80, deadline=None)
@given(ROUNDS, st.sampled_from(["report", "raise"]), st.booleans(), st.booleans())
def test_every_call_has_one_result_and_the_model_is_shown_them_in_order(
    rounds, mode, parallel, streaming
):
    model = ScriptedModel([*map(reply, rounds), "done"])
    agent = ChatModelAgent(
        name="a", model=model, tools=TOOLS, on_tool_error=mode, parallel_tool_calls=parallel
    )
    result = Runner(agent).query("go", streaming=streaming).result(20)
    status, replies = end_of(rounds, mode, parallel)
    assert (result.status, len(model.requests)) == (status, replies)
    for request in model.requests:
        check_history(request.messages)
    said = [event.message for event in result.events if event.message is not None]
    assert sum(message.role == "assistant" for message in said) == replies
    answers = [message for message in said if message.role == "tool"]
    for kinds, last in zip(
        rounds[:replies], [False] * (replies - 1) + [status != "completed"], strict=False
    ):
        expected = [
            kind
            for kind, _ in kinds
            if kind != "asking"
            and not (mode == "raise" and kind in {"failing", "unknown", "broken"})
        ]
        if last and status == "interrupted":
            made = [kind for kind, _ in kinds]
            if "direct" in made:
                del made[
                    len(made) - 1 - made[::-1].index("direct")
                ]  # its result comes behind those that are waited for
            if not parallel:
                made = made[: made.index("asking")]
            expected = [
                kind
                for kind in made
                if kind != "asking"
                and not (mode == "raise" and kind in {"failing", "unknown", "broken"})
            ]
        found, answers = answers[: len(expected)], answers[len(expected) :]
        if last and not parallel and mode == "raise":
            # An interrupt may have come before the error: then the calls behind it were not made.
            break
        assert sorted(message.tool_name for message in found) == sorted(
            "fine" if kind == "broken" else kind for kind in expected
        )
    calls = {}
    for event in result.events:
        message = event.message
        if message is not None and message.role == "assistant":
            calls = {call.id: call for call in message.tool_calls}
        elif message is not None and message.text.startswith(("fine", "threaded", "direct")):
            number = calls[message.tool_call_id].arguments.split(":")[1].strip("}")
            assert message.text == f"{message.tool_name} {number}", "a result goes to its own call"
            assert event.action == (
                CustomAction(int(number)) if message.tool_name == "fine" else None
            )
    if status == "completed" and replies <= len(rounds):
        last_direct = next(
            number
            for number, (kind, _) in reversed(list(enumerate(rounds[replies - 1])))
            if kind == "direct"
        )
        assert result.final_output == f"direct {last_direct}"
    if status == "interrupted":
        assert result.interrupts
        assert {context.info for context in result.interrupts} <= {
            number for number, (kind, _) in enumerate(rounds[replies - 1]) if kind == "asking"
        }
    assert (result.error is not None) == (status == "failed")


# --- cut short ---


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("how", ["cancel", "leave", "timeout"])
@pytest.mark.parametrize("parallel", [True, False])
def test_tools_under_way_are_ended_with_their_run(run, count, how, parallel):
    async def main():
        started, ended = [], []
        all_started = asyncio.Event()

        @tool
        async def wait(number: int) -> str:
            started.append(number)
            if len(started) == (count if parallel else 1):
                all_started.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(number)
            return "never"

        reply_ = Message.assistant(
            "",
            tuple(
                ToolCall(f"{number}", "wait", f'{{"number":{number}}}') for number in range(count)
            ),
        )
        agent = ChatModelAgent(
            name="a", model=ScriptedModel([reply_]), tools=[wait], parallel_tool_calls=parallel
        )
        handle = Runner(agent).query("go", timeout=0.05 if how == "timeout" else None)
        if how == "leave":
            async for _ in handle:
                await all_started.wait()
                break
        else:
            await all_started.wait()
            if how == "cancel":
                handle.cancel()
        result = await handle
        return result, started, ended

    result, started, ended = run(main())
    assert sorted(ended) == started
    assert result.status == "cancelled"
    assert [event.message.role for event in result.events if event.message] == ["assistant"]


def test_a_tool_that_does_not_let_itself_be_cancelled_is_not_shown_after_the_end(run):
    async def main():
        started = asyncio.Event()

        @tool
        async def stubborn() -> str:
            started.set()
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                return "still here"

        model = ScriptedModel([Message.assistant("", (ToolCall("1", "stubborn", "{}"),)), "again"])
        handle = Runner(ChatModelAgent(name="a", model=model, tools=[stubborn])).query("go")
        await started.wait()
        handle.cancel()
        return await handle, len(model.requests)

    result, asked = run(main())
    assert result.status == "cancelled"
    assert asked == 1
    assert [event.message.role for event in result.events if event.message] == ["assistant"]


def test_of_several_errors_the_first_is_shown_and_only_that():
    model = ScriptedModel(
        [
            Message.assistant(
                "",
                tuple(
                    ToolCall(str(number), "failing", f'{{"number":{number}}}')
                    for number in range(4)
                ),
            )
        ]
    )
    result = (
        Runner(ChatModelAgent(name="a", model=model, tools=[failing], on_tool_error="raise"))
        .query("go")
        .result(20)
    )
    assert [event.error is None for event in result.events] == [True, False]
    assert isinstance(result.error, ToolError)
    assert isinstance(result.error.__cause__, ValueError)
