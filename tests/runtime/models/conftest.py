"""What the tests of models share: an environment without keys, requests, and a collected stream."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from offbook.runtime.data.chat import Message, MessageDelta
from offbook.runtime.models import ModelRequest, OpenAIChatModel, OpenAIResponsesModel
from offbook.runtime.models.openai_model import OpenAIModel


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment of whoever runs the tests says nothing about models, and neither does the
    folder.
    """
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_MODEL",
        "OPENAI_BASE_URL",
        "OPENAI_BY_AZURE",
        "OPENAI_API_VERSION",
        "ARK_API_KEY",
        "ARK_CHAT_MODEL",
        "ARK_BASE_URL",
        "OPENAI_EMBEDDING_MODEL",
        "ARK_EMBEDDING_MODEL",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in (
        "MODEL_TYPE",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_AD_TOKEN",
        "AZURE_OPENAI_API_VERSION",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["wire", "client"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How models reach their provider: over the wire, or through the `openai` client, as they do
    where one is given. Both keep to the same.
    """
    monkeypatch.setattr(OpenAIModel, "_is_wired", request.param == "wire")
    way: str = request.param
    return way


@pytest.fixture
def ask() -> Callable[..., ModelRequest]:
    """A request: of texts, which are the user's, or messages."""

    def make(*messages: str | Message, **fields: Any) -> ModelRequest:
        return ModelRequest(
            tuple(
                Message.user(message) if isinstance(message, str) else message
                for message in messages or ("hi",)
            ),
            **fields,
        )

    return make


@pytest.fixture
def collect() -> Callable[[AsyncIterator[Any]], Any]:
    """All items of a stream."""

    async def items_of(stream: Any) -> list[Any]:
        async with aclosing(stream) as items:
            return [item async for item in items]

    return items_of


@pytest.fixture
def shown() -> Callable[[list[Any]], str]:
    """The text that the deltas show."""
    return lambda items: "".join(item.content for item in items if isinstance(item, MessageDelta))


@pytest.fixture
def chat_at() -> Callable[..., OpenAIChatModel]:
    return lambda server, **settings: OpenAIChatModel(
        "m", api_key="secret-key", base_url=server.url, **settings
    )


@pytest.fixture
def responses_at() -> Callable[..., OpenAIResponsesModel]:
    return lambda server, **settings: OpenAIResponsesModel(
        "m", api_key="secret-key", base_url=server.url, **settings
    )
