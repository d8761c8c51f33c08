"""The client of the examples for Swarm: OpenAI's if the environment names a model, otherwise one
with the replies in the example.
"""

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from dotenv import find_dotenv, load_dotenv
from models import real_model
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

Said = str | dict[str, dict[str, Any]]  # a string, or the arguments of each function to call


class ScriptedClient:
    """Has what Swarm needs of a client: `chat.completions.create`."""

    def __init__(self, replies: Iterable[Said]) -> None:
        self._replies = iter(replies)
        self.chat = self.completions = self

    def create(
        self, *, model: str, stream: bool, **_request: Any
    ) -> ChatCompletion | Iterator[ChatCompletionChunk]:
        said = next(self._replies)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": said if isinstance(said, str) else None,
        }
        if isinstance(said, dict):
            functions = [
                {"name": name, "arguments": json.dumps(arguments)}
                for name, arguments in said.items()
            ]
            message["tool_calls"] = [
                {"index": at, "id": f"call_{at}", "type": "function", "function": one}
                for at, one in enumerate(functions)
            ]
        head = {"id": "scripted", "created": 0, "model": model}
        choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": message}
        if stream:
            return iter(
                [
                    ChatCompletionChunk.model_validate(
                        {**head, "object": "chat.completion.chunk", "choices": [choice]}
                    )
                ]
            )
        return ChatCompletion.model_validate(
            {**head, "object": "chat.completion", "choices": [choice]}
        )


def client(*replies: Said) -> tuple[Any, str]:
    """A client, and the name of the model to ask it for."""
    load_dotenv(find_dotenv(usecwd=True))
    if real_model() is None or "OPENAI_API_KEY" not in os.environ:
        return ScriptedClient(replies), "scripted"
    return OpenAI(), os.environ["OPENAI_MODEL"]
