"""The SDK's models of OpenAI over real HTTP: what is sent, what comes back, and what is done when a request fails."""

import asyncio

import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.responses import ResponseTextDeltaEvent

from tests.programs import openai_wire as wire
from understudy.actors.agents_sdk import (
    Agent,
    MaxTurnsExceeded,
    ModelRetrySettings,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    retry_policies,
)

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "because"}], "encrypted_content": "sealed"}


@function_tool
def weather(city: str) -> str:
    """Say how the weather is."""
    return f"Sunny in {city}"


def client(server, **options):
    return AsyncOpenAI(api_key="k", base_url=server.url, **options)


def says(text):
    return wire.saying(wire.response(wire.output_text(text)))


def calls(name, arguments, *before):
    return wire.saying(wire.response(*before, wire.output_call(name, arguments)))


def test_a_run_over_the_responses_api():
    async def main():
        async with wire.WireServer(calls("weather", '{"city": "Paris"}', REASONING), says("It is sunny.")) as server, client(server) as api:
            model = OpenAIResponsesModel("gpt-x", api)
            settings = ModelSettings(temperature=0.5, response_include=["reasoning.encrypted_content"], extra_headers={"x-mine": "yes"})
            result = await Runner.run(Agent("a", instructions="Be brief.", tools=[weather], model=model, model_settings=settings), "How is it?")
        return server.seen, result

    (first, second), result = asyncio.run(main())
    assert result.final_output == "It is sunny."
    assert [type(item).__name__ for item in result.new_items] == ["ReasoningItem", "ToolCallItem", "ToolCallOutputItem", "MessageOutputItem"]
    assert (result.context_wrapper.usage.requests, result.context_wrapper.usage.input_tokens) == (2, 14)
    assert first.path == "/v1/responses"
    assert first.headers["x-mine"] == "yes"
    assert first.body["input"] == [{"content": "How is it?", "role": "user"}]
    assert (first.body["model"], first.body["instructions"], first.body["temperature"]) == ("gpt-x", "Be brief.", 0.5)
    assert first.body["include"] == ["reasoning.encrypted_content"]
    assert [(tool["name"], tool["strict"], tool["parameters"]["required"]) for tool in first.body["tools"]] == [("weather", True, ["city"])]
    asked, thought, call, output = second.body["input"]
    assert asked["role"] == "user"
    assert (thought["id"], thought["encrypted_content"]) == ("rs_1", "sealed")
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "weather", '{"city": "Paris"}')
    assert output == {"call_id": call["call_id"], "output": "Sunny in Paris", "type": "function_call_output"}


def test_a_handoff_over_the_responses_api_is_a_tool_and_the_next_agent_is_given_the_history():
    async def main():
        async with wire.WireServer(calls("transfer_to_clerk", "{}"), says("Done.")) as server, client(server) as api:
            model = OpenAIResponsesModel("gpt-x", api)
            clerk = Agent("clerk", instructions="I am the clerk.", model=model)
            result = await Runner.run(Agent("front", model=model, handoffs=[clerk]), "Help")
        return server.seen, result

    (first, second), result = asyncio.run(main())
    assert result.last_agent.name == "clerk"
    assert [tool["name"] for tool in first.body["tools"]] == ["transfer_to_clerk"]
    assert second.body["instructions"] == "I am the clerk."
    assert [item.get("type", item.get("role")) for item in second.body["input"]] == ["user", "function_call", "function_call_output"]
    assert second.body["input"][-1]["output"] == '{"assistant": "clerk"}'


def test_a_streamed_run_shows_the_events_of_the_responses_api_as_they_are():
    async def main():
        async with wire.WireServer(says("It is sunny today.")) as server, client(server) as api:
            result = Runner.run_streamed(Agent("a", model=OpenAIResponsesModel("gpt-x", api)), "How is it?")
            raw = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
        return server.seen[0].body, raw, result

    body, raw, result = asyncio.run(main())
    assert body["stream"] is True
    assert "".join(event.delta for event in raw if isinstance(event, ResponseTextDeltaEvent)) == "It is sunny today."
    assert raw[-1].type == "response.completed"
    assert result.final_output == "It is sunny today."


def test_a_conversation_that_the_provider_keeps_is_sent_only_what_is_new():
    async def main():
        async with wire.WireServer(calls("weather", '{"city": "Rome"}'), says("Sunny.")) as server, client(server) as api:
            agent = Agent("a", tools=[weather], model=OpenAIResponsesModel("gpt-x", api))
            result = await Runner.run(agent, "And Rome?", previous_response_id="resp_0")
        return server.seen, result

    (first, second), result = asyncio.run(main())
    assert first.body["previous_response_id"] == "resp_0"
    assert second.body["previous_response_id"] == result.raw_responses[0].response_id
    assert [item["type"] for item in second.body["input"]] == ["function_call_output"]


def test_a_request_that_is_refused_is_openais_error_and_is_not_made_again():
    async def main():
        async with wire.WireServer(wire.failing(400, {"message": "no such model", "code": "model_not_found"})) as server, client(server) as api:
            with pytest.raises(BadRequestError, match="no such model"):
                await Runner.run(Agent("a", model=OpenAIResponsesModel("gpt-x", api)), "hi")
        return len(server.seen)

    assert asyncio.run(main()) == 1


def test_a_policy_has_a_failed_request_made_again_and_counts_it():
    async def main():
        async with wire.WireServer(wire.failing(503), says("At last.")) as server, client(server, max_retries=0) as api:
            retry = ModelRetrySettings(max_retries=2, policy=retry_policies.http_status([503]), backoff={"initial_delay": 0.0, "jitter": False})
            model = OpenAIResponsesModel("gpt-x", api)
            result = await Runner.run(Agent("a", model=model, model_settings=ModelSettings(retry=retry)), "hi")
        return len(server.seen), result

    made, result = asyncio.run(main())
    assert (made, result.final_output, result.context_wrapper.usage.requests) == (2, "At last.", 2)


def test_turns_that_never_end_are_as_many_requests_as_are_allowed():
    async def main():
        async with wire.WireServer(calls("weather", '{"city": "Oslo"}')) as server, client(server) as api:
            agent = Agent("a", tools=[weather], model=OpenAIResponsesModel("gpt-x", api))
            with pytest.raises(MaxTurnsExceeded):
                await Runner.run(agent, "hi", max_turns=1)
        return len(server.seen)

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize(("use_responses", "path"), [(True, "/v1/responses"), (False, "/v1/chat/completions")])
def test_a_provider_makes_models_of_the_api_that_it_is_told(use_responses, path):
    async def main():
        said = wire.response(wire.output_text("Hi")) if use_responses else wire.completion("Hi")
        async with wire.WireServer(wire.saying(said)) as server, client(server) as api:
            provider = OpenAIProvider(openai_client=api, use_responses=use_responses, strict_feature_validation=True)
            result = await Runner.run(Agent("a", model="gpt-x"), "hi", run_config=RunConfig(model_provider=provider))
        return server.seen[0], result

    seen, result = asyncio.run(main())
    assert (seen.path, seen.body["model"], result.final_output) == (path, "gpt-x", "Hi")


@pytest.mark.parametrize(("include_usage", "sent"), [(None, {"include_usage": True}), (True, {"include_usage": True}), (False, None)])
def test_a_stream_of_chat_completions_asks_for_its_usage_unless_it_is_told_not_to(include_usage, sent):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion("Hi"))) as server, client(server) as api:
            model = OpenAIChatCompletionsModel("gpt-x", api)
            result = Runner.run_streamed(Agent("a", model=model, model_settings=ModelSettings(include_usage=include_usage)), "hi")
            async for _ in result.stream_events():
                pass
        return server.seen[0].body, result.final_output

    body, output = asyncio.run(main())
    assert (body.get("stream_options"), output) == (sent, "Hi")
