"""The card: signed, with address; and the app mounted in FastAPI and Starlette, with their lifespan
and without.
"""

import contextlib

import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.routing import Mount

from offbook.runtime import UsageError
from offbook.runtime.a2a import AgentCardSettings, SkillSettings, a2a_app
from tests.doubles.a2a import ByHand, message, scripted, serving


async def says(input, context):
    yield "said"


def test_a_signed_card_verifies_with_the_public_key_and_not_when_changed(run):
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    card = AgentCardSettings(
        url="https://agents.example",
        signing_key=private,
        signing_key_id="k1",
        extended=AgentCardSettings(description="more"),
    )

    async def main():
        async with (
            serving(a2a_app(scripted(says), card=card)) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            verify = create_signature_verifier(lambda kid, _jku: {"k1": public}[kid], ["ES256"])
            await http.get("/.well-known/agent-card.json")
            for path in ("/.well-known/agent-card.json", "/a2a/extendedAgentCard"):
                found = ParseDict(
                    (await http.get(path, headers={"A2A-Version": "1.0"})).json(),
                    pb.AgentCard(),
                    ignore_unknown_fields=True,
                )
                verify(found)
                found.description = "changed on the way"
                with pytest.raises(InvalidSignaturesError):
                    verify(found)
        assert private.decode()[:40] not in repr(card)

    run(main())


def test_the_card_says_what_the_settings_say(run):
    settings = AgentCardSettings(
        name="Named",
        description="Described.",
        version="2.1",
        url="https://agents.example/base/",
        provider="Us",
        provider_url="https://us.example",
        documentation_url="https://docs.example",
        skills=(SkillSettings("s", "Skill", "Does.", ("tag",), ("example",), ("image/png",)),),
        streaming=False,
        input_modes=("text/plain", "image/*"),
    )

    async def main():
        app = a2a_app(scripted(says), card=settings, extensions=("https://x.example/ext",))
        async with serving(app) as url, ByHand(url) as client:
            card = (await client.http.get("/.well-known/agent-card.json")).json()
            assert (card["name"], card["version"], card["provider"]["organization"]) == (
                "Named",
                "2.1",
                "Us",
            )
            assert {one["url"] for one in card["supportedInterfaces"]} == {
                "https://agents.example/base/a2a"
            }
            assert card["skills"][0]["inputModes"] == ["image/png"]
            assert "https://x.example/ext" in [
                one["uri"] for one in card["capabilities"]["extensions"]
            ]
            assert (await client.call("SendStreamingMessage", {"message": message()}))["error"][
                "code"
            ] == -32004
            assert (await client.call("SubscribeToTask", {"id": "x"}))["error"]["code"] == -32004
            for media_type, taken in (
                ("image/png", True),
                ("image/gif", True),
                ("TEXT/PLAIN; charset=utf-8", True),
                ("audio/wav", False),
            ):
                answer = await client.send(parts=[{"text": "x", "mediaType": media_type}])
                assert ("error" not in answer) is taken, media_type
                if not taken:
                    assert answer["error"]["code"] == -32005

    run(main())


@pytest.mark.parametrize("framework", ["fastapi", "starlette"])
@pytest.mark.parametrize("with_lifespan", [True, False])
def test_the_app_mounts_in_another(run, framework, with_lifespan):
    async def main():
        agent_app = a2a_app(scripted(says), handler_path="/")
        lifespan = agent_app.lifespan if with_lifespan else None
        if framework == "fastapi":
            outer = FastAPI(lifespan=lifespan)
            outer.mount("/agents/one", agent_app)
        else:
            outer = Starlette(routes=[Mount("/agents/one", agent_app)], lifespan=lifespan)
        async with (
            serving(outer) as url,
            httpx.AsyncClient(
                base_url=f"{url}/agents/one", headers={"A2A-Version": "1.0"}, trust_env=False
            ) as http,
        ):
            card = (await http.get("/.well-known/agent-card.json")).json()
            address = card["supportedInterfaces"][0]["url"]
            assert address == f"{url}/agents/one"
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {"message": message()},
            }
            assert "result" in (await http.post(f"{address}/", json=body)).json()
            assert (
                await http.post(f"{address}/message:send", json={"message": message()})
            ).status_code == 200
            await agent_app.aclose()

    run(main())


def test_two_apps_live_on_one_loop_and_one_can_be_entered_again(run):
    async def main():
        one, two = a2a_app(scripted(says, name="one")), a2a_app(scripted(says, name="two"))
        for _ in range(2):
            async with contextlib.AsyncExitStack() as stack:
                for app in (one, two):
                    url = await stack.enter_async_context(serving(app))
                    client = await stack.enter_async_context(ByHand(url))
                    assert "artifacts" in await client.send()

    run(main())


def test_an_agent_without_description_is_refused_at_once():
    agent = scripted(says, description="")
    with pytest.raises(UsageError, match="no description"):
        a2a_app(agent)
    a2a_app(agent, card=AgentCardSettings(description="said here"))


@pytest.mark.parametrize("agent", [object(), "agent", 7])
def test_what_is_no_agent_is_refused_at_once(agent):
    with pytest.raises(UsageError, match="agent must be an agent, or a Runner of one"):
        a2a_app(agent)
