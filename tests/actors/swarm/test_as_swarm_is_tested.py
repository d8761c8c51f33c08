"""What Swarm's own tests ask of it, in their manner: with a client that is a mock, and nothing of
this runtime in sight.
"""

import json
from unittest.mock import Mock

import pytest

from offbook.actors.swarm import Agent, Swarm
from offbook.actors.swarm.util import function_to_json
from tests.doubles.swarm_clients import MockOpenAIClient, create_mock_response

CONTENT = "sample response content"
LAST = create_mock_response({"role": "assistant", "content": CONTENT})
MESSAGES = [{"role": "user", "content": "What's the weather like in San Francisco?"}]
WEATHER_CALL = create_mock_response(
    {"role": "assistant", "content": ""},
    [{"name": "get_weather", "args": {"location": "San Francisco"}}],
)


@pytest.fixture
def client():
    mock = MockOpenAIClient()
    mock.set_response(LAST)
    return mock


@pytest.fixture
def weather():
    """A mock that notes the calls, and an agent with a function that calls it."""
    noted = Mock()

    def get_weather(location):
        noted(location=location)
        return "It's sunny today."

    return noted, Agent(name="Test Agent", functions=[get_weather])


def test_a_simple_message_is_answered(client):
    response = Swarm(client=client).run(
        agent=Agent(), messages=[{"role": "user", "content": "Hello, how are you?"}]
    )
    assert response.messages[-1]["role"] == "assistant"
    assert response.messages[-1]["content"] == CONTENT
    client.assert_create_called_with(
        model="gpt-4o",
        messages=[
            {"role": "system", "content": "You are a helpful agent."},
            {"role": "user", "content": "Hello, how are you?"},
        ],
        tools=None,
        tool_choice=None,
        stream=False,
    )


def test_a_tool_is_called(client, weather):
    noted, agent = weather
    client.set_sequential_responses([WEATHER_CALL, LAST])
    response = Swarm(client=client).run(agent=agent, messages=MESSAGES)
    noted.assert_called_once_with(location="San Francisco")
    assert response.messages[-1]["role"] == "assistant"
    assert response.messages[-1]["content"] == CONTENT


def test_tools_are_not_executed_if_they_are_not_to_be(client, weather):
    noted, agent = weather
    client.set_sequential_responses([WEATHER_CALL, LAST])
    response = Swarm(client=client).run(agent=agent, messages=MESSAGES, execute_tools=False)
    noted.assert_not_called()
    (wanted,) = response.messages[-1].get("tool_calls")
    assert wanted["function"]["name"] == "get_weather"
    assert json.loads(wanted["function"]["arguments"]) == {"location": "San Francisco"}


def test_an_agent_hands_over(client):
    def transfer_to_agent2():
        return agent2

    agent1 = Agent(name="Test Agent 1", functions=[transfer_to_agent2])
    agent2 = Agent(name="Test Agent 2")
    client.set_sequential_responses(
        [create_mock_response({"content": ""}, [{"name": "transfer_to_agent2"}]), LAST]
    )
    response = Swarm(client=client).run(
        agent=agent1, messages=[{"role": "user", "content": "I want to talk to agent 2"}]
    )
    assert response.agent == agent2
    assert response.messages[-1]["role"] == "assistant"
    assert response.messages[-1]["content"] == CONTENT


def test_a_mock_that_has_no_more_responses_says_so_as_it_does_to_swarm(client, weather):
    client.set_sequential_responses([WEATHER_CALL])
    with pytest.raises(StopIteration):
        Swarm(client=client).run(agent=weather[1], messages=MESSAGES)


def test_the_schema_of_a_function_without_annotations():
    def basic_function(arg1, arg2):
        return arg1 + arg2

    properties = {"arg1": {"type": "string"}, "arg2": {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": ["arg1", "arg2"]}
    assert function_to_json(basic_function) == {
        "type": "function",
        "function": {"name": "basic_function", "description": "", "parameters": parameters},
    }


def test_the_schema_of_a_function_with_types_defaults_and_a_docstring():
    def complex_function(arg1: int, arg2: str, arg3: float = 3.14, arg4: bool = False):
        """This is a complex function with a docstring."""

    properties = {
        "arg1": {"type": "integer"},
        "arg2": {"type": "string"},
        "arg3": {"type": "number"},
        "arg4": {"type": "boolean"},
    }
    assert function_to_json(complex_function) == {
        "type": "function",
        "function": {
            "name": "complex_function",
            "description": "This is a complex function with a docstring.",
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": ["arg1", "arg2"],
            },
        },
    }
