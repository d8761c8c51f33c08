"""What the SDK has and this room has not is refused by name, with the page that says so; nothing that a program asks for is ignored."""

import asyncio
import importlib

import pytest
from openai import AsyncOpenAI

from understudy.actors.agents_sdk import ModelSettings, OpenAIChatCompletionsModel
from understudy.actors.agents_sdk.exceptions import UserError
from understudy.actors.agents_sdk.models.interface import ModelTracing
from understudy.runtime.models.openai_chat import OpenAIChatModel

PAGE = r"docs/from-agents-sdk\.md"
ROOM = "understudy.actors.agents_sdk"


def completions(**options):
    return OpenAIChatCompletionsModel("m", AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:9"), **options)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("extensions.memory", "SQLAlchemySession"),
        ("extensions.models", "LitellmModel"),
        ("extensions.models.litellm_model", "LitellmModel"),
        ("extensions.models.any_llm_model", "AnyLLMModel"),
        ("extensions.experimental", "codex"),
        ("extensions.sandbox", "E2BSandboxClient"),
        ("extensions.tool_output_trimmer", "ToolOutputTrimmer"),
        ("voice", "VoicePipeline"),
    ],
)
def test_a_name_of_a_module_that_is_missing_is_an_import_error_with_the_page(module, name):
    with pytest.raises(ImportError, match=PAGE):
        exec(f"from {ROOM}.{module} import {name}", {})
    assert not hasattr(importlib.import_module(f"{ROOM}.{module}"), "__wrapped__")


def test_reasoning_is_not_replayed_by_chat_completions():
    with pytest.raises(UserError, match=PAGE):
        completions(should_replay_reasoning_content=lambda _: True)


@pytest.mark.parametrize("option", ["strict_feature_validation", "buffer_streamed_tool_calls"])
def test_options_that_change_nothing_are_checked(option):
    with pytest.raises(TypeError, match=option):
        completions(**{option: "yes"})


def ask(model, settings=None, **named):
    return asyncio.run(model.get_response(None, "hi", settings or ModelSettings(), [], None, [], ModelTracing.DISABLED, **named))


@pytest.mark.parametrize("given", [{"mode": "pro"}, {"context": "all_turns"}])
def test_chat_completions_refuse_reasoning_that_only_responses_know(given):
    with pytest.raises(UserError, match=PAGE):
        ask(completions(), ModelSettings(reasoning=given))


def test_what_chat_completions_cannot_say_is_refused_by_name():
    model = completions(strict_feature_validation=True)
    for option in ("previous_response_id", "conversation_id"):
        with pytest.raises(UserError, match=f"{option}=.*{PAGE}"):
            ask(model, **{option: "x"})
    assert isinstance(model.model, OpenAIChatModel)
