"""Messages in the form of OpenTelemetry's semantic conventions for generative AI.

The module also provides the names of models. It is only used if the program wants content in its
spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ..data.chat import Message, Part, TextPart

if TYPE_CHECKING:
    from ..models.protocol import ModelRequest, ModelSettings, ToolSpec

__all__ = [
    "as_json",
    "model_name",
    "provider_name",
    "server_of",
    "settings_of_call",
    "text_of_messages",
    "tools_as_json",
]

_HOSTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "api.openai.com": "openai",
        "openai.azure.com": "azure.ai.openai",
        "services.ai.azure.com": "azure.ai.inference",
        "api.anthropic.com": "anthropic",
        "api.deepseek.com": "deepseek",
        "api.groq.com": "groq",
        "api.mistral.ai": "mistral_ai",
        "api.perplexity.ai": "perplexity",
        "api.x.ai": "x_ai",
        "api.cohere.ai": "cohere",
        "api.cohere.com": "cohere",
        "generativelanguage.googleapis.com": "gcp.gemini",
        "aiplatform.googleapis.com": "gcp.vertex_ai",
        "amazonaws.com": "aws.bedrock",
        "ml.cloud.ibm.com": "ibm.watsonx.ai",
    }
)
"""The providers' names in the conventions. Other providers are named by their host."""
_PORTS: Final[Mapping[str, int]] = MappingProxyType({"http": 80, "https": 443})
_DEEPEST: Final = 8


def as_json(messages: Iterable[Message]) -> str:
    """Return the value of `gen_ai.input.messages` and `gen_ai.output.messages`."""
    return json.dumps([_message(message) for message in messages], ensure_ascii=False)


def _message(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        parts.append(
            {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        )
    elif isinstance(message.content, str):
        if message.content:
            parts.append({"type": "text", "content": message.content})
    else:
        parts += map(_part, message.content)
    if message.reasoning:
        parts.append({"type": "reasoning", "content": message.reasoning})
    parts += (
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    )
    return {"role": message.role, "parts": parts}


def _part(part: Part) -> dict[str, Any]:
    """Describe a part. Only text has content: a picture or a file is too long for a span."""
    return (
        {"type": "text", "content": part.text}
        if isinstance(part, TextPart)
        else {"type": type(part).__name__.removesuffix("Part").lower()}
    )


def text_of_messages(messages: Iterable[Message]) -> str:
    """Return the text of the last user message."""
    found = [message.text for message in messages if message.role == "user"]
    return found[-1] if found else ""


def model_name(model: object) -> str:
    """Return the provider's name of the model; for a model around others, that of the first."""
    for _ in range(_DEEPEST):
        name = getattr(model, "model", None)
        if isinstance(name, str):
            return name
        inner = getattr(model, "inner", None)
        if inner is None:
            break
        model = inner
    return type(model).__name__


def provider_name(model: object) -> str:
    """Return the provider's name: by its address if that is known, otherwise by its class."""
    model = _innermost(model)
    if getattr(model, "is_azure", False):
        return "azure.ai.openai"
    address = server_of(model).get("server.address")
    if isinstance(address, str):
        return next(
            (
                name
                for host, name in _HOSTS.items()
                if address == host or address.endswith(f".{host}")
            ),
            address,
        )
    return type(model).__name__


def server_of(model: object) -> Mapping[str, str | int]:
    """Return the address of the model's server: `server.address` and `server.port`."""
    address = getattr(_innermost(model), "address", None)
    if not isinstance(address, str):
        return {}
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return {}
    if not parts.hostname:
        return {}
    return (
        {"server.address": parts.hostname}
        if port is None
        else {"server.address": parts.hostname, "server.port": port}
    )


def settings_of_call(model: object, request: ModelRequest) -> ModelSettings:
    """Return the settings of a request, completed by those of the model."""
    own = getattr(_innermost(model), "settings", None)
    merged = getattr(own, "merged", None)
    return request.settings if merged is None else merged(request.settings)


def tools_as_json(tools: Iterable[ToolSpec]) -> str:
    """Return the value of `gen_ai.tool.definitions`."""
    said = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        for tool in tools
    ]
    return json.dumps(said, ensure_ascii=False, default=str)


def _innermost(model: object) -> object:
    for _ in range(_DEEPEST):
        inner = getattr(model, "inner", None)
        if inner is None:
            break
        model = inner
    return model
