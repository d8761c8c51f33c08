"""Models by names that say whose they are: `litellm/...`, `my-provider/...`.

Owns: `MultiProvider`, and the map of prefixes. It must never change a name that has no prefix.
"""

from __future__ import annotations

from typing import Any, Literal

from ..exceptions import UserError
from ..missing import refuse
from .interface import Model, ModelProvider
from .openai_provider import OpenAIProvider

__all__ = ["MultiProvider", "MultiProviderMap"]


class MultiProviderMap:
    """Providers by the prefixes of their models."""

    def __init__(self) -> None:
        self._mapping: dict[str, ModelProvider] = {}

    def has_prefix(self, prefix: str) -> bool:
        return prefix in self._mapping

    def get_mapping(self) -> dict[str, ModelProvider]:
        return self._mapping.copy()

    def set_mapping(self, mapping: dict[str, ModelProvider]) -> None:
        self._mapping = mapping

    def get_provider(self, prefix: str) -> ModelProvider | None:
        return self._mapping.get(prefix)

    def add_provider(self, prefix: str, provider: ModelProvider) -> None:
        self._mapping[prefix] = provider

    def remove_provider(self, prefix: str) -> None:
        del self._mapping[prefix]


class MultiProvider(ModelProvider):
    """Chooses the provider by the prefix of the name; without one, it is OpenAI."""

    def __init__(
        self,
        *,
        provider_map: MultiProviderMap | None = None,
        openai_prefix_mode: Literal["alias", "model_id"] = "alias",
        unknown_prefix_mode: Literal["error", "model_id"] = "error",
        **openai: Any,
    ) -> None:
        if openai_prefix_mode not in ("alias", "model_id"):
            msg = "MultiProvider openai_prefix_mode must be one of: 'alias', 'model_id'."
            raise UserError(msg)
        if unknown_prefix_mode not in ("error", "model_id"):
            msg = "MultiProvider unknown_prefix_mode must be one of: 'error', 'model_id'."
            raise UserError(msg)
        self.provider_map = provider_map
        named = {"openai_client": openai.pop("openai_client", None)}
        self.openai_provider = OpenAIProvider(**named, **{name.removeprefix("openai_"): value for name, value in openai.items()})
        self._keeps_openai = openai_prefix_mode == "model_id"
        self._keeps_unknown = unknown_prefix_mode == "model_id"

    def get_model(self, model_name: str | None) -> Model:
        prefix, slash, rest = (model_name or "").partition("/")
        if not slash:
            return self.openai_provider.get_model(model_name)
        provider = None if self.provider_map is None else self.provider_map.get_provider(prefix)
        if provider is not None:
            return provider.get_model(rest)
        if prefix in ("litellm", "any-llm"):
            refuse(f"The model prefix {prefix}/", "give the agent understudy's own model: Agent(model=...)")
        if prefix == "openai":
            return self.openai_provider.get_model(model_name if self._keeps_openai else rest)
        if self._keeps_unknown:
            return self.openai_provider.get_model(model_name)
        msg = f"Unknown prefix: {prefix}"
        raise UserError(msg)

    async def aclose(self) -> None:
        for provider in (self.openai_provider, *({} if self.provider_map is None else self.provider_map.get_mapping()).values()):
            await provider.aclose()
