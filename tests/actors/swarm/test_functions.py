"""What functions are given, what they may return, and what becomes of that."""

import asyncio
import contextvars
import functools

import pytest

from offbook.actors.swarm import Agent, Response, Result, Swarm
from offbook.runtime import get_session_value
from tests.doubles.swarm_clients import USER, AsyncScriptedClient, ScriptedClient, call, reply


def play(functions, *replies, variables=None, **options):
    """Run an agent with these functions. Returns the response, and what its client was asked."""
    client = ScriptedClient(*replies, "done")
    return Swarm(client).run(
        Agent(functions=functions), USER, variables or {}, **options
    ), client.requests


def told(response):
    return [message["content"] for message in response.messages if message["role"] == "tool"]


def test_agents_are_compared_by_value():
    def function():
        pass

    assert Agent(functions=[function]) == Agent(functions=[function])
    assert Agent(name="A") != Agent(name="B")
    assert Agent().functions is not Agent().functions


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("text", "text"),
        (7, "7"),
        (None, "None"),
        ({"a": 1}, "{'a': 1}"),
        ("", ""),
        (Result(value="v"), "v"),
    ],
)
def test_the_model_is_told_what_a_function_returns(returned, expected):
    def function():
        return returned

    response, _ = play([function], reply("", call("function")))
    assert response.messages[1] == {
        "role": "tool",
        "tool_call_id": "call_function",
        "tool_name": "function",
        "content": expected,
    }


def test_an_agent_is_told_by_its_name_and_follows():
    sales = Agent(name="Sales")

    def transfer():
        return sales

    response, _ = play([transfer], reply("", call("transfer")))
    assert told(response) == ['{"assistant": "Sales"}']
    assert response.agent is sales
    assert response.messages[-1]["sender"] == "Sales"


def test_of_several_agents_in_one_reply_the_last_one_is_next():
    def one():
        return Agent(name="One")

    def two():
        return Result(value="to two", agent=Agent(name="Two"))

    def text():
        return "nobody"

    for first, last in (("one", "two"), ("two", "one")):
        response, requests = play(
            [one, two, text], reply("", call(first), call(last), call("text"))
        )
        assert response.agent.name == response.messages[-1]["sender"] == last.title()
        assert sorted(told(response)) == ["nobody", "to two", '{"assistant": "One"}']
        assert len(requests) == 2


def test_an_agent_may_hand_over_to_itself_again_and_again():
    def again():
        return agent

    agent = Agent(name="A", functions=[again])
    client = ScriptedClient(*[reply("", call("again"))] * 150, "done")
    response = Swarm(client).run(agent, USER)
    assert response.agent is agent
    assert len(response.messages) == 301


def test_an_unknown_function_is_told_to_the_model():
    def known():
        return "known"

    response, _ = play([known], reply("", call("nobody"), call("known")))
    assert told(response) == ["Error: Tool nobody not found.", "known"]


def test_context_variables_are_filled_in_and_the_model_is_not_asked_for_them():
    def greet(context_variables, language: str):
        return f"{context_variables['name']} in {language}"

    response, requests = play(
        [greet], reply("", call("greet", language="French")), variables={"name": "Ada"}
    )
    assert told(response) == ["Ada in French"]
    parameters = {
        "type": "object",
        "properties": {"language": {"type": "string"}},
        "required": ["language"],
    }
    assert requests[0]["tools"] == [
        {
            "type": "function",
            "function": {"name": "greet", "description": "", "parameters": parameters},
        }
    ]


def test_functions_change_the_context_variables_at_once_and_results_after_the_reply():
    def put(context_variables):
        context_variables["put"] = 1
        del context_variables["old"]
        return Result(value="", context_variables={"returned": 2, 3: [4]})

    def look(context_variables):
        return sorted(context_variables)

    given = {"old": {"deep": []}}
    response, _ = play([put, look], reply("", call("put"), call("look")), variables=given)
    assert told(response)[1] == "['put']"
    assert response.context_variables == {"put": 1, "returned": 2, 3: [4]}
    assert given == {"old": {"deep": []}}


def test_a_function_finds_a_missing_variable_missing_and_instructions_read_it_as_nothing():
    def read(context_variables):
        return context_variables["missing"]

    agent = Agent(
        instructions=lambda context_variables: f"[{context_variables['missing']}]", functions=[read]
    )
    client = ScriptedClient(reply("", call("read")))
    with pytest.raises(KeyError, match="missing"):
        Swarm(client).run(agent, USER)
    assert client.requests[0]["messages"][0] == {"role": "system", "content": "[]"}


def test_instructions_may_be_a_function_of_nothing():
    client = ScriptedClient("done")
    Swarm(client).run(Agent(instructions=lambda: "be brief"), USER)
    assert client.requests[0]["messages"][0]["content"] == "be brief"


@pytest.mark.parametrize("text", [1, None])
def test_instructions_that_fail_do_so_with_their_own_error(text):
    def instructions(context_variables):
        return text + context_variables["number"]

    with pytest.raises(TypeError, match="unsupported operand"):
        Swarm(ScriptedClient("done")).run(Agent(instructions=instructions), USER)


def test_who_takes_context_variables_is_told_by_the_parameters_and_not_by_what_is_inside():
    def inside():
        context_variables = "mine"
        return context_variables

    def wanted(*, context_variables=None):
        return context_variables["a"]

    @functools.wraps(wanted)
    def wrapped(*args, **kwargs):
        return wanted(*args, **kwargs)

    wrapped.__name__ = "wrapped"

    class Desk:
        def method(self, context_variables):
            return context_variables["a"]

    functions = [inside, wanted, wrapped, Desk().method]
    response, _ = play(
        functions,
        reply("", *(call(function.__name__) for function in functions)),
        variables={"a": 1},
    )
    assert told(response) == ["mine", "1", "1", "1"]


def test_a_coroutine_function_is_awaited():
    async def slow(context_variables):
        await asyncio.sleep(0)
        context_variables["seen"] = get_session_value("context_variables")[0] is context_variables
        return Agent(name="Next")

    response, _ = play([slow], reply("", call("slow")))
    assert response.agent.name == "Next"
    assert response.context_variables == {"seen": True}


def test_a_function_runs_where_swarm_was_called_with_the_values_of_its_run():
    color = contextvars.ContextVar("color")

    def function():
        before = color.get()
        color.set("red")
        variables, found = get_session_value("context_variables")
        return before, variables, found

    color.set("blue")
    response, _ = play([function], reply("", call("function")), variables={"a": 1})
    assert told(response) == ["('blue', {'a': 1}, True)"]
    assert color.get() == "red"
    assert get_session_value("context_variables") == (None, False)


def test_what_cannot_be_told_is_an_error():
    class Silent:
        def __str__(self):
            raise ValueError("no")

        def __format__(self, spec):
            return "Silent"

    def function():
        return Silent()

    with pytest.raises(TypeError, match="Failed to cast response to string: Silent"):
        play([function], reply("", call("function")))


def test_results_and_responses_have_swarms_fields():
    assert Result().model_dump() == {"value": "", "agent": None, "context_variables": {}}
    assert Response().model_dump() == {"messages": [], "agent": None, "context_variables": {}}
    assert Agent().model_dump() == {
        "name": "Agent",
        "model": "gpt-4o",
        "instructions": "You are a helpful agent.",
        "functions": [],
        "tool_choice": None,
        "parallel_tool_calls": True,
    }


def test_arun_gives_the_same(run):
    async def add(one: int, context_variables):
        context_variables["sum"] = context_variables.get("sum", 0) + one
        return str(context_variables["sum"])

    def plain(context_variables):
        return get_session_value("context_variables")[0] is context_variables

    async def main():
        client = AsyncScriptedClient(
            reply("", call("add", one=2), call("plain"), call("add", one=3)), "done"
        )
        return await Swarm(client).arun(Agent(functions=[add, plain]), USER, {"sum": 1})

    response = run(main())
    assert told(response) == ["3", "True", "6"]
    assert response.context_variables == {"sum": 6}
