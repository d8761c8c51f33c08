"""Models of OpenAI, by their names.

Owns: `OpenAIProvider`. It must never make a client before there is a call for one.
"""

from __future__ import annotations

import os
from typing import Any

from ..exceptions import UserError
from ..missing import refuse
from .default_models import get_default_model
from .interface import Model, ModelProvider
from .settings import defaults

__all__ = ["OpenAIProvider"]


class OpenAIProvider(ModelProvider):
    """Makes models of OpenAI, or of a provider that speaks its API."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        websocket_base_url: str | None = None,
        openai_client: Any = None,
        organization: str | None = None,
        project: str | None = None,
        use_responses: bool | None = None,
        use_responses_websocket: bool | None = None,
        strict_feature_validation: bool = False,
        agent_registration: Any = None,
        responses_websocket_options: Any = None,
        buffer_streamed_tool_calls: bool = False,
    ) -> None:
        if openai_client is not None and any(one is not None for one in (api_key, base_url, websocket_base_url, organization, project)):
            msg = "Don't provide api_key, base_url, websocket_base_url, organization, or project if you provide openai_client"
            raise UserError(msg)
        if use_responses_websocket or websocket_base_url is not None or responses_websocket_options is not None:
            refuse("The Responses API by websocket", "leave use_responses_websocket, websocket_base_url and responses_websocket_options out")
        self._client = openai_client
        self._given = {"api_key": api_key, "base_url": base_url, "organization": organization, "project": project}
        self._uses_responses = use_responses
        self.agent_registration = agent_registration
        self.strict_feature_validation = strict_feature_validation
        self.buffer_streamed_tool_calls = buffer_streamed_tool_calls

    def get_model(self, model_name: str | None) -> Model:
        name = model_name
        if name is None:
            if not self._has_access():
                from ....runtime.models.env import model_from_env  # noqa: PLC0415 -- for programs that say nothing of models
                from .understudy_model import as_model  # noqa: PLC0415 -- as above

                return as_model(model_from_env())
            name = os.environ.get("OPENAI_MODEL") or get_default_model()
        client = self._get_client()
        if not self._speaks_responses(client):
            from .openai_chatcompletions import OpenAIChatCompletionsModel  # noqa: PLC0415 -- one of the two

            return OpenAIChatCompletionsModel(name, client, None, self.strict_feature_validation, self.buffer_streamed_tool_calls)
        from .openai_responses import OpenAIResponsesModel  # noqa: PLC0415 -- one of the two

        return OpenAIResponsesModel(name, client, model_is_explicit=model_name is not None)

    def _has_access(self) -> bool:
        """Whether there is a key for OpenAI, or for a provider that speaks its API."""
        known = (self._client, self._given["api_key"], defaults().client, defaults().key, os.environ.get("OPENAI_API_KEY"))
        return any(one is not None for one in known)

    def _speaks_responses(self, client: Any) -> bool:
        """Which API is used: what was said; or else chat completions for other providers than OpenAI, as nearly all of them want it."""
        said = self._uses_responses if self._uses_responses is not None else defaults().uses_responses
        if said is not None:
            return said
        if self._given["base_url"] is not None or not os.environ.get("OPENAI_BASE_URL"):
            return True
        host = getattr(getattr(client, "base_url", None), "host", "") or ""
        return host.endswith(("openai.com", "openai.azure.com"))

    def _get_client(self) -> Any:
        if self._client is None:
            self._client = defaults().client
        if self._client is None:
            from openai import AsyncOpenAI  # noqa: PLC0415 -- it takes its time

            given: dict[str, Any] = {name: value for name, value in self._given.items() if value is not None}
            given.setdefault("api_key", defaults().key)
            given.setdefault("base_url", os.environ.get("OPENAI_BASE_URL"))
            self._client = AsyncOpenAI(**given)
        return self._client
