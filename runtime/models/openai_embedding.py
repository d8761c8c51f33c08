"""Embeddings: vectors for texts, such that texts of similar meaning are near each other.

This module has the protocol, and the call of OpenAI's API, which Ark and most providers support.
Splitting texts and caching vectors is up to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from ..errors import ModelError, UsageError
from .openai_errors import model_errors
from .openai_model import OpenAIModel
from .wire.client import WireClient

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["EmbeddingModel", "OpenAIEmbeddingModel"]


@runtime_checkable
class EmbeddingModel(Protocol):
    """A model that turns texts into vectors."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in their order."""
        ...


class OpenAIEmbeddingModel(OpenAIModel):
    """A model behind OpenAI's embeddings, or a compatible provider: pass its `base_url`.

        model = OpenAIEmbeddingModel("text-embedding-3-small")
        vectors = await model.embed(["to be", "or not to be"])

    Other arguments are those of `OpenAIChatModel`. `dimensions`: the length of each vector, if the
    model supports that. Nothing is retried here.
    """

    _is_wired: ClassVar[bool] = False

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: AsyncOpenAI | None = None,
        azure: bool = False,
        api_version: str | None = None,
        dimensions: int | None = None,
    ) -> None:
        if not isinstance(model, str):
            msg = (
                "OpenAIEmbeddingModel: model must be the name of a model for embeddings, "
                f"such as 'text-embedding-3-small', got {model!r}."
            )
            raise UsageError(msg)
        super().__init__(
            model,
            api_key=api_key,
            base_url=base_url,
            client=client,
            azure=azure,
            api_version=api_version,
        )
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            msg = f"embed: texts must be a list of strings, got {texts!r:.80}."
            raise UsageError(msg)
        if not texts:
            return []
        who = repr(self)
        with model_errors(who):
            client = await self._get_way()
            assert not isinstance(client, WireClient)  # embeddings never use it
            size = None if self.dimensions is None else {"dimensions": self.dimensions}
            # As numbers: the client would request base64, which not all compatible providers
            # support.
            reply = await client.embeddings.create(
                model=self.model, input=list(texts), encoding_format="float", extra_body=size
            )
        points = {one.index: one.embedding for one in reply.data}
        if points.keys() != set(range(len(texts))):
            msg = (
                f"{who} must return one embedding for each of {len(texts)} texts, but returned "
                f"those with the indexes {sorted(points)}. Check the base_url."
            )
            raise ModelError(msg, kind="malformed", retryable=True)
        return [points[index] for index in range(len(texts))]
