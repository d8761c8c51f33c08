"""The values that the agents of one run share."""

import asyncio
import threading
from collections.abc import MutableMapping

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    Runner,
    RunStatus,
    ScriptedModel,
    SessionValues,
    ToolCalls,
    UsageError,
    add_session_value,
    add_session_values,
    current_session,
    get_session_value,
    get_session_values,
)


class Does(Agent):
    """Calls a function of its context, and says what it returned."""

    def __init__(self, name, function):
        super().__init__(name=name)
        self.function = function

    async def run(self, input, context):
        made = self.function(context)
        if asyncio.iscoroutine(made):
            made = await made
        yield AgentEvent.of(custom_output=made)


def play(agent, **options):
    return Runner(agent).query("q", **options).result(10)


# --- the mapping ---


def test_it_is_a_mutable_mapping():
    values = SessionValues({"a": 1})
    assert isinstance(values, MutableMapping)
    values["b"] = 2
    values.update({"c": 3}, d=4)
    assert dict(values) == {"a": 1, "b": 2, "c": 3, "d": 4} == values.to_dict()
    assert values.pop("a") == 1
    assert values.pop("a", None) is None
    assert values.setdefault("b", 9) == 2
    assert values.setdefault("e", 5) == 5
    del values["b"]
    assert list(values) == ["c", "d", "e"]
    assert len(values) == 3
    assert "c" in values
    assert values.get("b") is None
    assert values == {"c": 3, "d": 4, "e": 5}
    values.clear()
    assert not values


@pytest.mark.parametrize(
    "wrong",
    [
        lambda values: values["x"],
        lambda values: values.pop("x"),
        lambda values: values.__delitem__("x"),
    ],
)
def test_what_is_not_there_is_a_key_error(wrong):
    with pytest.raises(KeyError):
        wrong(SessionValues())


@pytest.mark.parametrize("key", [1, None, b"x", ("a",)])
def test_keys_are_texts(key):
    values = SessionValues()
    for put in (
        lambda: values.__setitem__(key, 1),
        lambda: values.update({key: 1}),
        lambda: values.setdefault(key, 1),
        lambda: SessionValues({key: 1}),
    ):
        with pytest.raises(UsageError, match="the key of a session value must be a string"):
            put()
    assert not values


def test_an_update_with_a_bad_key_changes_nothing():
    values = SessionValues()
    with pytest.raises(UsageError):
        values.update({"good": 1, 2: "bad"})
    assert not values


def test_values_may_be_added_while_somebody_iterates():
    values = SessionValues({"a": 1, "b": 2})
    for key in values:
        values[key + key] = 0
    assert set(values) == {"a", "b", "aa", "bb"}


def test_a_value_is_never_copied():
    given = []
    values = SessionValues({"list": given})
    assert values["list"] is given
    assert values.to_dict()["list"] is given


def test_many_threads_may_put_and_take_at_once():
    values = SessionValues()

    def work(number):
        for place in range(100):
            values[f"{number}-{place}"] = place
            values.to_dict()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) == 800


# --- in a run ---


def test_all_agents_of_a_run_share_them():
    put = Does("A", lambda context: context.session.update(x=[1]))
    take = Does("B", lambda context: context.session["x"].append(2))
    assert play(Sequential(name="S", sub_agents=[put, take])).session_values == {"x": [1, 2]}


def test_those_given_to_the_run_are_there_and_the_mapping_is_not_changed():
    given = {"x": 1}
    result = play(
        Does("A", lambda context: context.session.update(y=context.session["x"] + 1)),
        session_values=given,
    )
    assert result.session_values == {"x": 1, "y": 2}
    assert given == {"x": 1}


def test_runs_at_once_do_not_share_them(run):
    async def main():
        async def work(context):
            context.session["mine"] = context.run_id
            for _ in range(3):
                await asyncio.sleep(0)
            return context.session["mine"] == context.run_id == get_session_value("mine")[0]

        runs = [Runner(Does("A", work)).query("q") for _ in range(10)]
        assert [(await one).final_output for one in runs] == [True] * 10

    run(main())


def test_a_second_run_of_a_runner_begins_without_them():
    runner = Runner(Does("A", lambda context: context.session.setdefault("n", context.run_id)))
    assert runner.query("q").result().final_output != runner.query("q").result().final_output


def test_the_four_functions_reach_those_of_the_run():
    def work(context):
        assert current_session() is context.session
        assert get_session_value("x") == (None, False)
        add_session_value("x", None)
        assert get_session_value("x") == (None, True)
        add_session_values({"y": 2, "z": 3})
        copy = get_session_values()
        copy["w"] = 4
        return dict(context.session) == {"x": None, "y": 2, "z": 3}

    assert play(Does("A", work)).final_output is True


def test_tools_reach_them_by_context_or_without_in_coroutines_and_threads():
    @tool
    def in_a_thread(context: ToolContext) -> str:
        assert context.session is current_session()
        add_session_value("thread", threading.current_thread() is not threading.main_thread())
        return "ok"

    @tool
    async def in_a_coroutine() -> str:
        add_session_value("coroutine", get_session_value("given")[0])
        return "ok"

    model = ScriptedModel([ToolCalls(in_a_thread={}, in_a_coroutine={}), "end"])
    result = play(
        ChatModelAgent(name="A", model=model, tools=[in_a_thread, in_a_coroutine]),
        session_values={"given": 7},
    )
    assert result.session_values == {"given": 7, "thread": True, "coroutine": 7}


def test_instructions_rewriters_and_models_reach_them():
    def rewrite(entries):
        add_session_value("rewriter", True)
        return [entry.message for entry in entries]

    def instruct(context):
        add_session_value("instruction", True)
        return ""

    def answer(_request):
        add_session_value("model", True)
        return "ok"

    agent = ChatModelAgent(
        name="A", instruction=instruct, history=rewrite, model=ScriptedModel([answer])
    )
    assert play(agent).session_values == {"rewriter": True, "instruction": True, "model": True}


def test_what_an_agent_starts_reaches_them_too():
    async def work(context):
        await asyncio.gather(*(asyncio.create_task(_put(number)) for number in range(3)))
        await context.run_blocking(add_session_value, "thread", True)

    async def _put(number):
        add_session_value(str(number), number)

    assert play(Does("A", work)).session_values == {"0": 0, "1": 1, "2": 2, "thread": True}


def test_an_agent_tool_shares_them_and_a_parallel_too():
    inner = Does("inner", lambda context: context.session.update(inner=context.session["given"]))
    outer = ChatModelAgent(
        name="outer",
        model=ScriptedModel([ToolCalls(inner={"request": "r"}), "end"]),
        tools=[inner.as_tool()],
    )
    side = Does("side", lambda context: add_session_value("side", 1))
    assert play(
        Parallel(name="P", sub_agents=[outer, side]), session_values={"given": 5}
    ).session_values == {"given": 5, "inner": 5, "side": 1}


def test_output_key_puts_the_last_text_in():
    first = ChatModelAgent(name="A", model=ScriptedModel(["gold"]), output_key="found")
    second = ChatModelAgent(name="B", instruction="You have {found}.", model=ScriptedModel(["ok"]))
    result = play(Sequential(name="S", sub_agents=[first, second]))
    assert result.session_values == {"found": "gold"}
    assert second.model.requests[0].messages[0].text == "You have gold."


def test_a_run_that_failed_still_tells_its_values():
    def work(context):
        context.session["x"] = 1
        raise ValueError("broken")

    result = play(Does("A", work))
    assert (result.status, result.session_values) == (RunStatus.FAILED, {"x": 1})


def test_what_was_put_in_later_is_not_in_a_result():
    kept = []
    result = play(Does("A", lambda context: kept.append(context.session)))
    kept[0]["later"] = 1
    assert result.session_values == {}


# --- outside of a run ---


def test_outside_of_a_run_there_are_none():
    assert len(current_session()) == 0
    assert get_session_value("x") == (None, False)
    assert get_session_values() == {}


@pytest.mark.parametrize(
    "add",
    [
        lambda: add_session_value("x", 1),
        lambda: add_session_values({"x": 1}),
        lambda: current_session().__setitem__("x", 1),
        lambda: current_session().update(x=1),
        lambda: current_session().setdefault("x", 1),
    ],
)
def test_outside_of_a_run_adding_is_an_error_that_says_so(add):
    with pytest.raises(UsageError, match="no run is active"):
        add()
    assert get_session_values() == {}


def test_whoever_started_a_run_is_outside_of_it(run):
    async def main():
        await Runner(Does("A", lambda context: context.session.update(x=1))).query("q")
        assert get_session_values() == {}
        with pytest.raises(UsageError):
            add_session_value("x", 1)

    run(main())


def test_a_run_within_a_run_has_its_own(run):
    async def main():
        inner = Runner(
            Does("B", lambda context: dict(context.session) | {"seen": get_session_values()})
        )

        async def work(context):
            context.session["outer"] = 1
            result = await inner.query("q", session_values={"inner": 2})
            assert get_session_values() == {"outer": 1}
            return result.final_output

        result = await Runner(Does("A", work)).query("q")
        assert result.final_output == {"inner": 2, "seen": {"inner": 2}}
        assert result.session_values == {"outer": 1}

    run(main())
