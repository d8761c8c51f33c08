"""Making a model, its client, and how long that lives."""

import asyncio
import dataclasses
import gc
import subprocess
import sys
import threading
from pathlib import Path

import openai
import pytest

from offbook.runtime.data.chat import Message
from offbook.runtime.errors import UsageError
from offbook.runtime.models import (
    ModelRequest,
    ModelSettings,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from offbook.runtime.models.protocol import SettingsFields
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

BOTH = pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])


@BOTH
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "the name of a model is missing"),
        ({"model": " "}, "the name of a model is missing"),
        (
            {"model": "m", "api_key": "k", "temperatur": 1},
            "unknown setting 'temperatur'.*temperature",
        ),
        ({"model": "m", "api_key": "k", "api_version": "1"}, "azure=True"),
        ({"model": "m", "api_key": ""}, "api_key must not be empty"),
        ({"model": "m", "api_key": "k", "client": object()}, "Omit api_key"),
    ],
)
def test_a_model_that_cannot_work_is_refused_when_it_is_made(kind, given, says):
    with pytest.raises(UsageError, match=says):
        kind(**given)


@BOTH
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "the API key is missing. Pass api_key=, or set OPENAI_API_KEY"),
        ({"api_key": "k", "azure": True}, "the endpoint is missing"),
        ({"api_key": "k", "azure": True, "base_url": "https://x"}, "the API version is missing"),
        ({"azure": True}, "AZURE_OPENAI_API_KEY"),
    ],
)
def test_what_is_needed_to_ask_is_said_when_a_model_is_first_asked(run, kind, given, says):
    with pytest.raises(UsageError, match=says):
        run(kind("m", **given).generate(ModelRequest((Message.user("hello"),))))


@BOTH
def test_key_and_name_may_come_from_the_environment(monkeypatch, kind):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_MODEL", "m")
    assert kind().model == "m"


@BOTH
def test_its_keyword_arguments_are_settings(kind):
    model = kind("m", api_key="k", stop=["x"], temperature=0.5, extra={"top_k": 3})
    assert model.settings == ModelSettings(stop=("x",), temperature=0.5, extra={"top_k": 3})
    assert kind("m", api_key="k").settings == ModelSettings()


def test_the_keyword_arguments_that_a_type_checker_sees_are_the_fields_of_the_settings():
    assert set(SettingsFields.__annotations__) == {
        field.name for field in dataclasses.fields(ModelSettings)
    }


def test_settings_over_settings_keep_what_the_others_leave_open():
    first = ModelSettings(temperature=0.5, stop="x", extra={"a": 1})
    assert first.merged(None) is first
    assert first.merged(ModelSettings()) is first
    assert first.merged(ModelSettings(top_p=0.1)) == ModelSettings(
        temperature=0.5, top_p=0.1, stop="x", extra={"a": 1}
    )
    assert first.merged(ModelSettings(stop=("y",), extra={"b": 2})) == ModelSettings(
        temperature=0.5, stop=("y",), extra={"a": 1, "b": 2}
    )


@BOTH
def test_its_text_shows_no_secret(kind):
    text = repr(
        kind(
            "m", api_key="hidden", base_url="https://user:hidden@host/v1?key=hidden", temperature=1
        )
    )
    assert "hidden" not in text
    assert "m" in text
    assert "host/v1" in text


def test_openai_is_not_imported_before_a_model_is_asked():
    code = (
        "import sys; from offbook.runtime.models import OpenAIChatModel; "
        "OpenAIChatModel('m', api_key='k'); assert not {'openai', 'httpx2', 'httpx', "
        "'dotenv'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_one_model_serves_one_loop_after_another(run, ask, chat_at, keep):
    kept = []

    async def main(number):
        async with wire.WireServer(wire.echo) as server:
            model = kept[0] if kept else chat_at(server)
            if keep and not kept:
                kept.append(model)
            if number:
                model._base_url = server.url
                model._clients._make = model._maker()
            replies = await asyncio.gather(*(model.generate(ask(str(one))) for one in range(5)))
            assert [reply.text for reply in replies] == list("01234")

    for number in range(3):
        run(main(number if keep else 0))
        gc.collect()
    if keep:
        assert len(kept[0]._clients._held) == 0, "clients end with their loops"


def test_one_model_serves_the_loops_of_several_threads(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model, replies = chat_at(server), []

            def in_thread(number):
                async def two():
                    return [(await model.generate(ask(f"{number} {one}"))).text for one in range(2)]

                replies.extend(asyncio.run(two()))

            threads = [threading.Thread(target=in_thread, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))
            assert sorted(replies) == [f"{number} {one}" for number in range(4) for one in range(2)]

    run(main())
    gc.collect()


def test_connections_are_used_again_and_closed_on_request(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = chat_at(server)
            for _ in range(3):
                await model.generate(ask())
                async for _ in model.stream(ask()):
                    pass
            assert server.connections == 1
            await model.aclose()
            await model.aclose()
            assert (await model.generate(ask("again"))).text == "again"
            assert server.connections == 2

    run(main())


def test_a_client_of_the_users_is_used_as_it_is_and_not_closed(run, ask):
    async def main():
        async with (
            wire.WireServer(wire.echo) as server,
            openai.AsyncOpenAI(api_key="theirs", base_url=server.url, max_retries=0) as client,
        ):
            model = OpenAIChatModel("m", client=client)
            assert (await model.generate(ask("x"))).text == "x"
            await model.aclose()
            del model
            gc.collect()
            assert not client.is_closed()
            assert server.seen[0].headers["authorization"] == "Bearer theirs"

    run(main())


def test_the_server_runs_by_itself(run, ask):
    program = Path(wire.__file__)
    with subprocess.Popen(
        [sys.executable, program, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
            assert (
                run(OpenAIChatModel("m", api_key="k", base_url=url).generate(ask("ping"))).text
                == "ping"
            )
        finally:
            process.terminate()
