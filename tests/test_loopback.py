"""Servers without authentication on an address of this machine: names and pages of strangers are
refused, alike by each of them.
"""

import contextlib

import httpx
import pytest

from offbook.runtime import ActorSystem, UsageError
from offbook.runtime.a2a import AgentCardSettings, BearerTokens, a2a_app
from offbook.runtime.loopback import is_loopback, is_loopback_host
from offbook.runtime.mcp.serving import mcp_app, mcp_server
from offbook.runtime.observe import prometheus_app
from tests.doubles.a2a import message, scripted, serving

SEND = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message()}}
STRANGERS = [
    {"Host": "evil.example"},
    {"Host": "evil.example:9999"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "localhost.evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost:1"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
]
OWN = [
    {},
    {"Host": "localhost"},
    {"Host": "LocalHost:80"},
    {"Host": "[::1]:9"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


async def says(input, context):
    yield "said"


@contextlib.asynccontextmanager
async def each(**options):
    """The three servers: the name of each, its app, and a request that it answers."""
    agent = scripted(says)
    async with ActorSystem() as system:
        yield {
            "a2a": (a2a_app(agent, **options), ("POST", "/a2a", SEND)),
            "card": (a2a_app(agent, **options), ("GET", "/.well-known/agent-card.json", None)),
            "tasks": (a2a_app(agent, **options), ("GET", "/a2a/tasks", None)),
            "mcp": (
                mcp_app(mcp_server(agent), "127.0.0.1", **options),
                ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            ),
            "metrics": (prometheus_app(system, **options), ("GET", "/", None)),
        }


@pytest.mark.parametrize("which", ["a2a", "card", "tasks", "mcp", "metrics"])
def test_strangers_are_refused_and_programs_of_this_machine_are_not(run, which):
    async def main():
        async with each() as servers:
            app, (method, path, body) = servers[which]
            async with (
                serving(app) as url,
                httpx.AsyncClient(
                    base_url=url, headers={"A2A-Version": "1.0"}, trust_env=False
                ) as http,
            ):
                own = {"Origin": url}
                for headers in STRANGERS:
                    assert (
                        await http.request(method, path, json=body, headers=headers)
                    ).status_code == 403, headers
                for headers in [*OWN, own]:
                    assert (
                        await http.request(method, path, json=body, headers=headers)
                    ).status_code not in (403, 421), headers

    run(main())


def test_who_allows_all_answers_all(run):
    async def main():
        async with each(allow_anonymous=True) as servers:
            for app, (method, path, body) in servers.values():
                async with (
                    serving(app) as url,
                    httpx.AsyncClient(
                        base_url=url, headers={"A2A-Version": "1.0"}, trust_env=False
                    ) as http,
                ):
                    for headers in STRANGERS:
                        assert (
                            await http.request(method, path, json=body, headers=headers)
                        ).status_code not in (403, 421), headers

    run(main())


def test_with_authentication_any_name_is_answered(run):
    async def main():
        async with (
            serving(a2a_app(scripted(says), auth=BearerTokens({"t": "s"}))) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            headers = {"Host": "agents.example", "Authorization": "Bearer t", "A2A-Version": "1.0"}
            assert "result" in (await http.post("/a2a", json=SEND, headers=headers)).json()

    run(main())


def test_the_address_in_an_extended_card_does_not_come_from_a_request(run):
    async def main():
        card = AgentCardSettings(extended=AgentCardSettings(description="more"))
        app = a2a_app(scripted(says), card=card, auth=BearerTokens({"t": "s"}))
        async with (
            serving(app) as url,
            httpx.AsyncClient(
                base_url=url,
                headers={"A2A-Version": "1.0", "Authorization": "Bearer t"},
                trust_env=False,
            ) as http,
        ):
            evil = {"Host": "evil.example"}
            assert (
                "evil.example"
                in (await http.get("/.well-known/agent-card.json", headers=evil)).text
            ), "the public card is for who asks"
            body = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}}
            for headers in (evil, {}):
                found = (await http.post("/a2a", json=body, headers=headers)).json()["result"]
                assert {one["url"] for one in found["supportedInterfaces"]} == {f"{url}/a2a"}

    run(main())


def test_a_card_that_is_signed_needs_an_address_of_its_own():
    with pytest.raises(UsageError, match="a signed card needs a fixed address"):
        a2a_app(
            scripted(says), card=AgentCardSettings(signing_key="secret", signing_algorithm="HS256")
        )


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("", False),
        ("a.localhost", False),
    ],
)
def test_which_addresses_are_of_this_machine(host, is_here):
    assert is_loopback(host) is is_here
    assert is_loopback_host(f"[{host}]:1" if ":" in host else f"{host}:1") is is_here
