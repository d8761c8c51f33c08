"""Embeddings over real HTTP."""

import pytest

from offbook.runtime import (
    EmbeddingModel,
    ModelError,
    OpenAIEmbeddingModel,
    UsageError,
    model_from_env,
)
from tests.programs import openai_wire as wire


def at(server, **options):
    return OpenAIEmbeddingModel("m", api_key="secret-key", base_url=server.url, **options)


def test_each_text_has_a_point_in_the_order_of_the_texts(run):
    async def main():
        said = wire.embeddings([0.25, -1.0], [1.0, 2.0])
        said["data"].reverse()
        async with wire.WireServer(wire.saying(said)) as server:
            model = at(server)
            assert isinstance(model, EmbeddingModel)
            assert await model.embed(["to be", "or not"]) == [[0.25, -1.0], [1.0, 2.0]]
        assert server.seen[0].path == "/v1/embeddings"
        assert server.seen[0].headers["authorization"] == "Bearer secret-key"
        assert server.seen[0].body == {
            "model": "m",
            "input": ["to be", "or not"],
            "encoding_format": "float",
        }

    run(main())


def test_the_length_of_the_points_is_asked_for(run):
    async def main():
        async with wire.WireServer(wire.saying(wire.embeddings([0.5]))) as server:
            assert await at(server, dimensions=1).embed(("x",)) == [[0.5]]
        assert server.seen[0].body["dimensions"] == 1

    run(main())


def test_no_texts_are_no_request(run):
    async def main():
        async with wire.WireServer(wire.failing(500)) as server:
            assert await at(server).embed([]) == []
        assert server.seen == []

    run(main())


def test_the_environments_model_is_asked_where_the_environment_says(run, monkeypatch):
    async def main():
        async with wire.WireServer(wire.saying(wire.embeddings([1.0]))) as server:
            for name, value in {
                "ARK_API_KEY": "ark",
                "ARK_EMBEDDING_MODEL": "e",
                "ARK_BASE_URL": server.url,
            }.items():
                monkeypatch.setenv(name, value)
            assert await model_from_env(kind="embedding").embed(["x"]) == [[1.0]]
        assert (server.seen[0].body["model"], server.seen[0].headers["authorization"]) == (
            "e",
            "Bearer ark",
        )

    run(main())


def test_what_goes_wrong_is_a_model_error(run):
    async def main():
        async with wire.WireServer(
            wire.failing(401), wire.saying(wire.embeddings([1.0]))
        ) as server:
            with pytest.raises(ModelError) as refused:
                await at(server).embed(["x"])
            assert refused.value.kind == "auth"
            with pytest.raises(
                ModelError, match="2 texts, but returned those with the indexes \\[0\\]"
            ):
                await at(server).embed(["x", "y"])

    run(main())


@pytest.mark.parametrize("texts", ["one text", ["x", 1]])
def test_what_is_no_list_of_texts_is_refused(run, texts):
    async def main():
        with pytest.raises(UsageError, match="texts must be a list of strings"):
            await OpenAIEmbeddingModel("m", api_key="k").embed(texts)

    run(main())


def test_a_model_needs_a_name():
    with pytest.raises(UsageError, match="model must be the name of a model for embeddings"):
        OpenAIEmbeddingModel(None, api_key="k")
