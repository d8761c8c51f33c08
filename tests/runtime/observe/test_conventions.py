"""The spans of model calls by the published rules of the conventions for generative AI: which
names, and where the values come from.
"""

import json

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    LimitedModel,
    Message,
    OpenAIChatModel,
    OpenAIResponsesModel,
    RetryModel,
    Runner,
    ScriptedModel,
)
from offbook.runtime.telemetry.content import provider_name, server_of
from tests.doubles.spans import Spans
from tests.programs import openai_wire as wire


@pytest.fixture
def spans(monkeypatch):
    made = Spans(monkeypatch)
    yield made
    made.provider.shutdown()


@pytest.mark.parametrize(
    ("base_url", "provider", "address", "port"),
    [
        (None, "openai", "api.openai.com", 443),
        ("https://api.deepseek.com/v1", "deepseek", "api.deepseek.com", 443),
        ("https://name.openai.azure.com", "azure.ai.openai", "name.openai.azure.com", 443),
        ("https://user:secret@gateway.example:8443/v1", "gateway.example", "gateway.example", 8443),
        ("http://127.0.0.1:8000/v1", "127.0.0.1", "127.0.0.1", 8000),
    ],
)
def test_the_provider_and_the_server_are_those_behind_the_address(
    base_url, provider, address, port
):
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model = RetryModel(
            LimitedModel(kind("m", api_key="k", base_url=base_url), max_concurrency=1)
        )
        assert provider_name(model) == provider
        assert server_of(model) == {"server.address": address, "server.port": port}


def test_a_model_without_an_address_is_called_by_its_class():
    assert (provider_name(ScriptedModel([])), server_of(ScriptedModel([]))) == ("ScriptedModel", {})


@tool
def look_up(city: str) -> str:
    """Look it up."""
    return city


@pytest.mark.parametrize("streaming", [False, True])
def test_a_call_says_what_was_asked_and_what_the_provider_answered(
    run, spans, monkeypatch, streaming
):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")

    async def main():
        async with wire.WireServer(wire.saying(wire.completion("Hi"))) as server:
            model = OpenAIChatModel(
                "gpt-4o", api_key="k", base_url=server.url, temperature=0.5, stop=["END"], seed=7
            )
            agent = ChatModelAgent(name="A", model=model, tools=[look_up])
            result = await Runner(agent).query("hello", streaming=streaming)
            await model.aclose()
            return result, server.url

    result, _ = run(main())
    result.raise_for_error()
    (span,) = [one for one in spans.all() if one.name == "chat gpt-4o"]
    said = span.attributes
    assert said["gen_ai.request.temperature"] == 0.5
    assert said["gen_ai.request.stop_sequences"] == ("END",)
    assert said["gen_ai.request.seed"] == 7
    assert said["gen_ai.output.type"] == "text"
    assert said["server.address"] == "127.0.0.1"
    assert said["gen_ai.response.finish_reasons"] == (result.final_message.finish_reason,)
    assert said["gen_ai.response.id"]
    assert json.loads(said["gen_ai.tool.definitions"])[0]["name"] == "look_up"


def test_a_reason_to_finish_that_no_provider_gave_is_not_made_up(run, spans):
    async def main():
        await Runner(
            ChatModelAgent(
                name="A",
                model=ScriptedModel(["one", Message("assistant", "two", finish_reason="length")]),
            )
        ).query("x")

    run(main())
    assert "gen_ai.response.finish_reasons" not in spans.one("chat ScriptedModel").attributes
