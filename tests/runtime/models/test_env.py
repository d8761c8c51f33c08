"""The model that the environment names."""

import os

import pytest

from understudy.runtime.errors import UsageError
from understudy.runtime.models import OpenAIEmbeddingModel, model_from_env


@pytest.fixture
def environment(monkeypatch):
    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


def test_openai(environment):
    environment(OPENAI_API_KEY="k", OPENAI_MODEL="gpt", OPENAI_BASE_URL="http://x/v1")
    model = model_from_env()
    assert (model.model, model._api_key, model._base_url, model._azure) == ("gpt", "k", "http://x/v1", False)


def test_openai_by_azure(environment):
    environment(OPENAI_API_KEY="k", OPENAI_MODEL="gpt", OPENAI_BASE_URL="http://x", OPENAI_BY_AZURE="true", OPENAI_API_VERSION="2024-10-21")
    model = model_from_env()
    assert (model._azure, model._api_version) == (True, "2024-10-21")


def test_ark_has_an_address_of_its_own(environment):
    environment(ARK_API_KEY="k", ARK_CHAT_MODEL="doubao")
    assert model_from_env()._base_url == "https://ark.cn-beijing.volces.com/api/v3/"
    environment(ARK_BASE_URL="http://y")
    assert (model_from_env().model, model_from_env()._base_url) == ("doubao", "http://y")


def test_of_both_openai_goes_first_unless_it_is_said_otherwise(environment):
    environment(OPENAI_API_KEY="k", OPENAI_MODEL="gpt", ARK_API_KEY="a", ARK_CHAT_MODEL="doubao")
    assert model_from_env().model == "gpt"
    environment(MODEL_TYPE="ark")
    assert model_from_env().model == "doubao"
    environment(MODEL_TYPE="llama")
    with pytest.raises(UsageError, match="'openai' or 'ark'"):
        model_from_env()


def test_a_half_set_one_does_not_stand_in_the_way_of_a_whole_one(environment):
    environment(OPENAI_API_KEY="k", ARK_API_KEY="a", ARK_CHAT_MODEL="doubao")
    assert model_from_env().model == "doubao"


def test_a_file_in_a_folder_above_is_read_and_the_environment_wins(environment, tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-file\nOPENAI_MODEL='file model'\n# OPENAI_BASE_URL=x\nEMPTY\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    before = dict(os.environ)
    assert (model_from_env().model, model_from_env()._api_key) == ("file model", "from-file")
    assert dict(os.environ) == before
    environment(OPENAI_MODEL="gpt")
    assert model_from_env().model == "gpt"


def test_a_model_for_embeddings_has_a_variable_of_its_own(environment):
    environment(ARK_API_KEY="k", ARK_CHAT_MODEL="doubao", ARK_EMBEDDING_MODEL="doubao-embedding", ARK_BASE_URL="http://y")
    model = model_from_env(kind="embedding")
    assert isinstance(model, OpenAIEmbeddingModel)
    assert (model.model, model._api_key, model._base_url) == ("doubao-embedding", "k", "http://y")
    environment(OPENAI_API_KEY="o", OPENAI_MODEL="gpt")
    assert model_from_env("embedding").model == "doubao-embedding", "of OpenAI's, the name is missing"
    environment(OPENAI_EMBEDDING_MODEL="small")
    assert (model_from_env("embedding").model, model_from_env().model) == ("small", "gpt")


def test_what_is_missing_for_embeddings_is_said(environment):
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY and OPENAI_EMBEDDING_MODEL.*ARK_API_KEY and ARK_EMBEDDING_MODEL"):
        model_from_env("embedding")
    environment(ARK_API_KEY="k", ARK_CHAT_MODEL="doubao")
    with pytest.raises(UsageError, match="ARK_EMBEDDING_MODEL is not set"):
        model_from_env("embedding")
    with pytest.raises(UsageError, match="give 'chat' or 'embedding'"):
        model_from_env("image")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "OPENAI_API_KEY and OPENAI_MODEL.*ARK_API_KEY and ARK_CHAT_MODEL"),
        ({"OPENAI_API_KEY": "k"}, "OPENAI_MODEL is not set"),
        ({"ARK_CHAT_MODEL": "m"}, "ARK_API_KEY is not set"),
        ({"MODEL_TYPE": "ark"}, "ARK_API_KEY and ARK_CHAT_MODEL are not set"),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "OPENAI_BY_AZURE": "perhaps"}, "neither true nor false"),
    ],
)
def test_what_is_missing_is_said(environment, variables, says):
    environment(**variables)
    with pytest.raises(UsageError, match=says):
        model_from_env()
