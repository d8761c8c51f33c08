"""The model that the environment names."""

import os

import pytest

from offbook.runtime.environment import environment as variables
from offbook.runtime.errors import UsageError
from offbook.runtime.models import OpenAIEmbeddingModel, model_from_env
from offbook.runtime.observe.otlp_targets import targets_of


@pytest.fixture
def environment(monkeypatch):
    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


def test_openai(environment):
    environment(OPENAI_API_KEY="k", OPENAI_MODEL="gpt", OPENAI_BASE_URL="http://x/v1")
    model = model_from_env()
    assert (model.model, model._api_key, model._base_url, model._azure) == (
        "gpt",
        "k",
        "http://x/v1",
        False,
    )


def test_openai_by_azure(environment):
    environment(
        OPENAI_API_KEY="k",
        OPENAI_MODEL="gpt",
        OPENAI_BASE_URL="http://x",
        OPENAI_BY_AZURE="true",
        OPENAI_API_VERSION="2024-10-21",
    )
    model = model_from_env()
    assert (model._azure, model._api_version) == (True, "2024-10-21")


def test_ark_has_an_address_of_its_own(environment):
    environment(ARK_API_KEY="k", ARK_CHAT_MODEL="doubao")
    assert model_from_env()._base_url == "https://ark.cn-beijing.volces.com/api/v3/"
    environment(ARK_BASE_URL="http://y")
    assert (model_from_env().model, model_from_env()._base_url) == ("doubao", "http://y")


def test_of_both_one_must_be_chosen(environment):
    environment(OPENAI_API_KEY="k", OPENAI_MODEL="gpt", ARK_API_KEY="a", ARK_CHAT_MODEL="doubao")
    with pytest.raises(
        UsageError,
        match=(
            r"models of openai and ark, and MODEL_TYPE is not set. Set it to one of 'openai', "
            r"'ark'\."
        ),
    ):
        model_from_env()
    environment(MODEL_TYPE="ark")
    assert model_from_env().model == "doubao"
    environment(MODEL_TYPE="llama")
    with pytest.raises(UsageError, match="'openai' or 'ark'"):
        model_from_env()


def test_a_half_set_one_does_not_stand_in_the_way_of_a_whole_one(environment):
    environment(OPENAI_API_KEY="k", ARK_API_KEY="a", ARK_CHAT_MODEL="doubao")
    assert model_from_env().model == "doubao"


def test_a_file_in_a_folder_above_is_read_and_the_environment_wins(
    environment, tmp_path, monkeypatch
):
    (tmp_path / ".env").write_text(
        "OPENAI_API_KEY=from-file\nOPENAI_MODEL='file model'\n# OPENAI_BASE_URL=x\nEMPTY\n"
    )
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    before = dict(os.environ)
    assert (model_from_env().model, model_from_env()._api_key) == ("file model", "from-file")
    assert dict(os.environ) == before
    environment(OPENAI_MODEL="gpt")
    assert model_from_env().model == "gpt"


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_file_that_others_can_write_is_not_read(tmp_path, monkeypatch, caplog, what):
    file = tmp_path / ".env"
    file.write_text("OPENAI_API_KEY=k\nOPENAI_MODEL=m\n")
    (tmp_path if what == "folder" else file).chmod(0o777)
    (tmp_path / "a").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path / "a")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        model_from_env()
    assert f"{file} is not read" in caplog.text


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root can give a file to another user",
)
@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_file_of_another_user_is_not_read(tmp_path, monkeypatch, what):
    file = tmp_path / ".env"
    file.write_text("OPENAI_API_KEY=k\nOPENAI_MODEL=m\n")
    os.chown(tmp_path if what == "folder" else file, 12345, 12345)
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        model_from_env()


def test_a_folder_of_others_ends_the_search(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=k\nOPENAI_MODEL=m\n")
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.chdir(shared / "mine")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        model_from_env()


def test_the_address_of_a_file_is_not_sent_a_key_of_the_environment(
    environment, tmp_path, monkeypatch
):
    (tmp_path / ".env").write_text(
        "OPENAI_BASE_URL=http://elsewhere/v1\nLANGFUSE_HOST=http://elsewhere\nOPENAI_MODEL=m\n"
    )
    monkeypatch.chdir(tmp_path)
    environment(OPENAI_API_KEY="k", LANGFUSE_PUBLIC_KEY="p", LANGFUSE_SECRET_KEY="s")
    with pytest.raises(
        UsageError, match=r"OPENAI_BASE_URL is set in .*\.env and OPENAI_API_KEY in the environment"
    ):
        model_from_env()
    with pytest.raises(UsageError, match="LANGFUSE_HOST is set in"):
        targets_of(variables())
    with (tmp_path / ".env").open("a") as file:
        file.write("OPENAI_API_KEY=k\n")
    assert model_from_env()._base_url == "http://elsewhere/v1", "the key is the same"
    environment(OPENAI_BASE_URL="http://here/v1", LANGFUSE_HOST="http://here")
    assert model_from_env()._base_url == "http://here/v1"
    assert len(targets_of(variables())) == 1


def test_a_model_for_embeddings_has_a_variable_of_its_own(environment):
    environment(
        ARK_API_KEY="k",
        ARK_CHAT_MODEL="doubao",
        ARK_EMBEDDING_MODEL="doubao-embedding",
        ARK_BASE_URL="http://y",
    )
    model = model_from_env(kind="embedding")
    assert isinstance(model, OpenAIEmbeddingModel)
    assert (model.model, model._api_key, model._base_url) == ("doubao-embedding", "k", "http://y")
    environment(OPENAI_API_KEY="o", OPENAI_MODEL="gpt")
    assert model_from_env("embedding").model == "doubao-embedding", (
        "of OpenAI's, the name is missing"
    )
    environment(OPENAI_EMBEDDING_MODEL="small", MODEL_TYPE="openai")
    assert (model_from_env("embedding").model, model_from_env().model) == ("small", "gpt")


def test_what_is_missing_for_embeddings_is_said(environment):
    with pytest.raises(
        UsageError,
        match=r"OPENAI_API_KEY and OPENAI_EMBEDDING_MODEL.*ARK_API_KEY and ARK_EMBEDDING_MODEL",
    ):
        model_from_env("embedding")
    environment(ARK_API_KEY="k", ARK_CHAT_MODEL="doubao")
    with pytest.raises(UsageError, match="ARK_EMBEDDING_MODEL is not set"):
        model_from_env("embedding")
    with pytest.raises(UsageError, match="kind must be 'chat' or 'embedding'"):
        model_from_env("image")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "OPENAI_API_KEY and OPENAI_MODEL.*ARK_API_KEY and ARK_CHAT_MODEL"),
        ({"OPENAI_API_KEY": "k"}, "OPENAI_MODEL is not set"),
        ({"ARK_CHAT_MODEL": "m"}, "ARK_API_KEY is not set"),
        ({"MODEL_TYPE": "ark"}, "ARK_API_KEY and ARK_CHAT_MODEL are not set"),
        (
            {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "OPENAI_BY_AZURE": "perhaps"},
            "OPENAI_BY_AZURE must be true or false",
        ),
    ],
)
def test_what_is_missing_is_said(environment, variables, says):
    environment(**variables)
    with pytest.raises(UsageError, match=says):
        model_from_env()
