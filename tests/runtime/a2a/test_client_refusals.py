"""What is wrong with an address, a card, a version, a transport or an installation is said by
`A2AClient` in one line, and at once where that is possible.
"""

import pytest

from offbook.runtime import UsageError
from offbook.runtime.a2a import (
    A2AClient,
    A2AConnectionError,
    A2AError,
    A2AProtocolError,
    ClientLimits,
)
from tests.doubles.a2a_servers import RawServer, json_card, send_json
from tests.programs.servers import free_port


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("agents.example",), "must be the address of a server"),
        (("ftp://agents.example",), "must be the address of a server"),
        (("http://[",), "must be the address of a server"),
        (
            (7,),
            "must be the address of a server, such as 'https://agents.example', or an AgentCard",
        ),
        (("http://me:pass@agents.example",), "Pass auth= instead"),
        (("http://agents.example", "a2a"), "handler_path must be a path such as '/a2a'"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(arguments, said):
    with pytest.raises(UsageError, match=said) as caught:
        A2AClient(*arguments)
    assert "\n" not in str(caught.value)


def test_a_transport_that_is_none_is_refused_at_once():
    with pytest.raises(UsageError, match="transport must be 'JSONRPC', 'HTTP\\+JSON', 'GRPC'"):
        A2AClient("http://agents.example", transport="SOAP")


def test_limits_that_are_none_are_refused_at_once():
    with pytest.raises(UsageError, match="must be a number above 0"):
        ClientLimits(response=0)


def refused(run, answer, said, kind=A2AError, **options):
    async def main():
        async with RawServer(answer) as server, A2AClient(server.url, **options) as client:
            with pytest.raises(kind, match=said) as caught:
                await client.card()
            assert "\n" not in str(caught.value)

    run(main())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "is not a valid agent card"),
        (b"[1, 2]", "is not a valid agent card"),
        (b"{}", "is not a valid agent card: it lacks a name"),
        (b'{"name": "x"}', "is not a valid agent card: it lacks an interface"),
        (b'{"name": 7, "supportedInterfaces": 8}', "is not a valid agent card"),
        (b"\xff\xfe", "is not a valid agent card"),
        (b"[" * 100_000, "is not a valid agent card"),
    ],
)
def test_a_card_that_is_none_is_said_to_be_none(run, body, said):
    async def answer(path, _body, writer):
        await send_json(writer, body)

    refused(run, answer, said, A2AProtocolError)


@pytest.mark.parametrize("version", ["0.1", "2.0", "nonsense"])
def test_a_server_of_another_version_is_said_to_be_one(run, version):
    async def answer(path, _body, writer):
        card = json_card(writer)
        card["supportedInterfaces"][0]["protocolVersion"] = version
        await send_json(writer, card)

    refused(
        run,
        answer,
        f"must support version 1.0, 0.3 or 0.2 of Agent2Agent, but its card lists {version}",
        A2AProtocolError,
    )


def test_a_server_of_version_0_1_is_said_to_be_one_by_its_old_card(run):
    async def answer(path, _body, writer):
        await send_json(
            writer,
            {
                "name": "Old",
                "description": "d",
                "url": "http://127.0.0.1/a2a",
                "protocolVersion": "0.1.0",
                "capabilities": {},
            },
        )

    refused(run, answer, "its card lists 0.1.0", A2AProtocolError)


def test_a_transport_that_the_card_does_not_name_is_refused(run):
    async def answer(path, _body, writer):
        await send_json(writer, json_card(writer))

    refused(
        run,
        answer,
        "must support HTTP\\+JSON, but its card lists JSONRPC",
        UsageError,
        transport="HTTP+JSON",
    )


def test_a_redirect_is_not_followed(run):
    async def answer(path, _body, writer):
        await send_json(writer, {}, 302, Location="http://127.0.0.1:1/elsewhere")

    refused(
        run,
        answer,
        "redirects to 'http://127.0.0.1:1/elsewhere', and redirects are not followed",
        A2AProtocolError,
    )


def test_a_server_that_is_not_there_is_said_not_to_be_there(run):
    async def main():
        async with A2AClient(f"http://127.0.0.1:{free_port()}") as client:
            with pytest.raises(A2AConnectionError, match="cannot be reached") as caught:
                await client.card()
            assert not caught.value.was_sent
            assert "\n" not in str(caught.value)

    run(main())


def test_a_missing_extra_is_named(monkeypatch):
    from offbook.actors import RemoteAgent
    from offbook.runtime.a2a import sdk

    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(sdk, "import_module", missing)
    for make in (lambda: A2AClient("http://x.test"), lambda: RemoteAgent("http://x.test")):
        with pytest.raises(
            UsageError,
            match=r"needs the package a2a-sdk, which is not installed: pip install 'offbook\[a2a\]'",
        ):
            make()
