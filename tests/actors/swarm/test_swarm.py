"""What a run of Swarm is asked, what it says, when it ends, and what a subclass may change."""

import copy
import json

import pytest
from openai import OpenAIError

from offbook.actors.swarm import Agent, Response, Result, Swarm
from offbook.actors.swarm.types import ChatCompletionMessageToolCall, Function
from tests.doubles.swarm_clients import (
    USER,
    AsyncScriptedClient,
    Exhausted,
    ScriptedClient,
    call,
    reply,
)


def ping():
    """Answer."""
    return "pong"


PING = reply("", call("ping"))


def test_the_client_is_asked_with_what_the_agent_says():
    client = ScriptedClient("done")
    agent = Agent(
        name="A",
        model="m",
        instructions="be brief",
        functions=[ping],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    Swarm(client).run(agent, USER)
    schema = {
        "name": "ping",
        "description": "Answer.",
        "parameters": {"type": "object", "properties": {}, "required": []},
    }
    assert client.requests == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, *USER],
            "tools": [{"type": "function", "function": schema}],
            "tool_choice": "required",
            "stream": False,
            "parallel_tool_calls": False,
        }
    ]


def test_the_model_may_be_overridden():
    client = ScriptedClient("done")
    Swarm(client).run(Agent(model="m"), USER, model_override="another")
    assert client.requests[0]["model"] == "another"


def test_a_conversation_goes_on_from_what_was_returned():
    client = ScriptedClient("one", "two")
    swarm, messages = Swarm(client), copy.deepcopy(USER)
    messages += swarm.run(Agent(), messages).messages
    messages.append({"role": "user", "content": "And?"})
    swarm.run(Agent(), messages)
    assert [message["role"] for message in client.requests[1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert len(messages) == 3


def test_messages_are_whatever_the_client_understands():
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
    ]
    given = (
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": parts, "name": "Ada"},
    )
    client = ScriptedClient("done")
    Swarm(client).run(Agent(), given)
    assert client.requests[0]["messages"][1:] == list(given)


@pytest.mark.parametrize(("most", "said"), [(0, 0), (1, 2), (2, 2), (3, 4), (4, 4), (5, 5)])
def test_max_turns_counts_messages(most, said):
    client = ScriptedClient(PING, PING, "done")
    response = Swarm(client).run(Agent(functions=[ping]), USER, max_turns=most)
    assert len(response.messages) == said
    assert response.agent.name == "Agent"


def test_the_agent_that_was_to_follow_is_active_also_if_there_is_no_turn_left():
    response = Swarm(ScriptedClient(reply("", call("go")))).run(
        Agent(functions=[go]), USER, max_turns=1
    )
    assert response.agent.name == "There"


def go():
    return Agent(name="There")


def test_hundreds_of_handovers_are_no_more_than_swarm_allows():
    agents = [Agent(name="A"), Agent(name="B")]

    def to_a():
        return agents[0]

    def to_b():
        return agents[1]

    agents[0].functions, agents[1].functions = [to_b], [to_a]
    client = ScriptedClient(
        *[reply("", call(f"to_{'ba'[turn % 2]}")) for turn in range(250)], "done"
    )
    response = Swarm(client).run(agents[0], USER)
    assert [
        message["sender"] for message in response.messages if message["role"] == "assistant"
    ] == ["A", "B"] * 125 + ["A"]


def test_agents_may_have_any_name():
    def there():
        return Agent(name="")

    response = Swarm(ScriptedClient(reply("", call("there")), "done")).run(
        Agent(name="x/y z", functions=[there]), USER
    )
    assert [message.get("sender") for message in response.messages] == ["x/y z", None, ""]


def test_without_an_agent_nothing_is_said():
    assert Swarm(ScriptedClient()).run(None, USER) == Response()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        Exhausted(),
        KeyboardInterrupt(),
        SystemExit(3),
        StopIteration(5),
        StopAsyncIteration(),
    ],
)
@pytest.mark.parametrize("kind", [ScriptedClient, AsyncScriptedClient])
def test_what_a_function_raises_reaches_the_caller_as_it_is(error, kind):
    def fail():
        raise error

    if kind is AsyncScriptedClient and not isinstance(error, StopIteration):

        async def fail():
            raise error

    with pytest.raises(type(error)) as caught:
        Swarm(kind(reply("", call("fail")))).run(Agent(functions=[fail]), USER)
    assert caught.value is error


def test_what_the_client_raises_reaches_the_caller_as_it_is():
    for kind in (ScriptedClient, AsyncScriptedClient):
        error = ConnectionError("gone")
        with pytest.raises(ConnectionError) as caught:
            Swarm(kind(error)).run(Agent(), USER)
        assert caught.value is error


def test_arguments_that_are_no_json_are_an_error():
    with pytest.raises(json.JSONDecodeError):
        Swarm(ScriptedClient(reply("", call("ping", _raw="{")))).run(Agent(functions=[ping]), USER)


def test_without_a_client_it_is_openai_s(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the-key")
    assert Swarm().client.api_key == "the-key"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(OpenAIError):
        Swarm()


def test_a_subclass_may_ask_in_its_own_way_and_need_not_call_init():
    class Mine(Swarm):
        def __init__(self, client):
            self.mine = client

        def get_chat_completion(
            self, agent, history, context_variables, model_override, stream, debug
        ):
            self.client = self.mine
            return super().get_chat_completion(
                agent, history[-1:], context_variables, "mine", stream, debug
            )

        def handle_function_result(self, result, debug):
            return Result(value=f"<{result}>")

    client = ScriptedClient(PING, "done")
    response = Mine(client).run(Agent(functions=[ping]), USER)
    assert [request["model"] for request in client.requests] == ["mine", "mine"]
    assert [len(request["messages"]) for request in client.requests] == [2, 2]
    assert response.messages[1]["content"] == "<pong>"


def test_what_a_subclass_does_to_the_messages_is_not_done_to_those_of_the_caller():
    class Mine(Swarm):
        def get_chat_completion(self, history, **asked):
            history[0]["content"] = "Goodbye."
            return super().get_chat_completion(history=history, **asked)

    client, given = ScriptedClient("done"), copy.deepcopy(USER)
    Mine(client).run(Agent(), given)
    assert client.requests[0]["messages"][1]["content"] == "Goodbye."
    assert given == USER


def test_a_subclass_may_call_functions_in_its_own_way():
    async def slow():
        return "slow"

    class Mine(Swarm):
        def handle_tool_calls(self, tool_calls, functions, context_variables, debug):
            made = super().handle_tool_calls(tool_calls, functions, context_variables, debug)
            return Response(
                messages=[
                    {**message, "content": message["content"].upper()} for message in made.messages
                ],
                context_variables={"calls": len(tool_calls)},
            )

    response = Mine(ScriptedClient(reply("", call("ping"), call("slow")), "done")).run(
        Agent(functions=[ping, slow]), USER
    )
    assert [message["content"] for message in response.messages] == ["", "PONG", "SLOW", "done"]
    assert response.context_variables == {"calls": 2}


def test_the_parts_of_a_turn_can_be_called_by_hand():
    swarm = Swarm(ScriptedClient())
    wanted = [
        ChatCompletionMessageToolCall(
            id="1", type="function", function=Function(name=name, arguments="{}")
        )
        for name in ("ping", "go", "nobody")
    ]
    response = swarm.handle_tool_calls(wanted, [ping, go], {}, False)
    assert [message["content"] for message in response.messages] == [
        "pong",
        '{"assistant": "There"}',
        "Error: Tool nobody not found.",
    ]
    assert response.agent == Agent(name="There")
    assert swarm.handle_function_result(5, False) == Result(value="5")


def test_calls_of_another_kind_are_passed_on():
    custom = {"id": "c", "type": "custom", "custom": {"name": "write", "input": "x"}}
    client = ScriptedClient(reply("", custom))
    response = Swarm(client).run(Agent(), USER, execute_tools=False)
    assert response.messages[0]["tool_calls"] == [custom]


def test_a_swarm_can_be_copied_and_agents_can_be_context_variables():
    swarm = Swarm(ScriptedClient("one"))
    swarm.run(Agent(), USER)
    twin = copy.deepcopy(swarm)
    twin.client.left.append(reply("", call("hand_over")))
    twin.client.left.append("two")

    def hand_over(context_variables):
        return context_variables["next"]

    response = twin.run(
        Agent(functions=[hand_over]), USER, {"next": Agent(name="Next", functions=[ping])}
    )
    assert response.agent == Agent(name="Next", functions=[ping])
    assert response.agent.functions[0] is ping
    assert not swarm.client.left


def test_debug_prints_what_happens_in_swarms_words(capsys):
    Swarm(ScriptedClient(reply("", call("ping"), call("nobody")), "done")).run(
        Agent(functions=[ping]), USER, debug=True
    )
    lines = [
        line.split("\033[90m ", 1)[1].removesuffix("\033[0m")
        for line in capsys.readouterr().out.splitlines()
    ]
    assert [line.split(":")[0] for line in lines] == [
        "Getting chat completion for...",
        "Received completion",
        "Processing tool call",
        "Tool nobody not found in function map.",
        "Getting chat completion for...",
        "Received completion",
        "Ending turn.",
    ]
    assert lines[2] == "Processing tool call: ping with arguments {}"
