"""Who may ask, and what belongs to whom: another's task, context and configuration are not
found.
"""

import time

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from offbook.runtime import UsageError
from offbook.runtime.a2a import (
    AgentCardSettings,
    ApiKeys,
    Authenticator,
    BearerTokens,
    Principal,
    WebhookPolicy,
    a2a_app,
)
from tests.doubles.a2a import ByHand, message, scripted, serving, state_of

TOKENS = BearerTokens(
    {"alices": "alice", "bobs": "bob", "fixed": Principal("alice", tenant="acme")}
)


async def asks(input, context):
    if context.resume is not None and context.resume.was_interrupted:
        yield "done"
    else:
        yield context.interrupt("?")


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def webhooks():
    return WebhookPolicy(allow_http=True, allow_private=True, secret_key="k")


def test_a_request_without_credentials_is_refused_and_told_how(run):
    async def main():
        async with (
            serving(a2a_app(scripted(asks), auth=TOKENS)) as url,
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            for path, method in (
                ("/a2a", "POST"),
                ("/a2a/", "POST"),
                ("/a2a/tasks", "GET"),
                ("/a2a/message:send", "POST"),
                ("/a2a/extendedAgentCard", "GET"),
            ):
                for headers in (
                    {},
                    bearer("wrong"),
                    {"Authorization": "Basic YTpi"},
                    {"Authorization": "Bearer"},
                ):
                    answer = await http.request(
                        method,
                        path,
                        headers={"A2A-Version": "1.0", **headers},
                        json={} if method == "POST" else None,
                    )
                    assert answer.status_code == 401, (path, headers)
                    assert answer.headers["www-authenticate"].startswith("Bearer")
            assert (await http.get("/.well-known/agent-card.json")).status_code == 200

    run(main())


def test_the_card_says_who_may_ask_and_the_extended_card_is_not_public(run):
    card = AgentCardSettings(extended=AgentCardSettings(description="for those who know"))

    async def main():
        async with (
            serving(a2a_app(scripted(asks), auth=TOKENS, card=card)) as url,
            ByHand(url, bearer("alices")) as client,
        ):
            public = (
                await client.http.get("/.well-known/agent-card.json", headers={"Authorization": ""})
            ).json()
            assert public["securitySchemes"] == {
                "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}
            }
            assert public["securityRequirements"] == [{"schemes": {"bearer": {}}}]
            assert public["capabilities"]["extendedAgentCard"] is True
            assert public["description"] != "for those who know"
            assert (
                await client.http.get("/a2a/extendedAgentCard", headers={"Authorization": ""})
            ).status_code == 401
            assert (await client.http.get("/a2a/extendedAgentCard")).json()[
                "description"
            ] == "for those who know"
            assert (await client.call("GetExtendedAgentCard", {}))["result"][
                "description"
            ] == "for those who know"

    run(main())


def test_api_keys_and_a_function_of_the_users_own(run):
    async def check(headers):
        return {"door": "carol"}.get(headers.get("x-knock"))

    async def main():
        for auth, good, scheme in (
            (ApiKeys({"key": "alice"}), {"X-API-Key": "key"}, "apiKey"),
            (ApiKeys({"key": "alice"}, header="X-Own"), {"X-Own": "key"}, "apiKey"),
            (check, {"X-Knock": "door"}, "bearer"),
        ):
            async with serving(a2a_app(scripted(asks), auth=auth)) as url, ByHand(url) as client:
                refused = await client.http.post("/a2a", json={})
                assert refused.status_code == 401
                assert "www-authenticate" in refused.headers
                async with ByHand(url, good) as known:
                    assert state_of(await known.send()) == "INPUT_REQUIRED"
                card = (await client.http.get("/.well-known/agent-card.json")).json()
                assert list(card["securitySchemes"]) == [scheme]

    run(main())


def test_an_authenticator_that_fails_lets_nobody_in_and_says_nothing(run):
    def check(headers):
        raise OSError("ldap://swordfish is down")

    async def main():
        async with serving(a2a_app(scripted(asks), auth=check)) as url, ByHand(url) as client:
            answer = await client.http.post("/a2a", json={})
            assert answer.status_code == 503
            assert "swordfish" not in answer.text

    run(main())


def test_signed_tokens_are_taken_if_all_of_them_is_right(run):
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    auth = Authenticator.jwt(
        public,
        audience="us",
        issuer="them",
        algorithms=("ES256",),
        tenant_claim="org",
        openid_url="https://them/.well-known/openid-configuration",
    )
    now = int(time.time())
    right = {
        "sub": "dora",
        "aud": "us",
        "iss": "them",
        "exp": now + 600,
        "org": "acme",
        "scope": "a b",
    }

    def signed(with_key=key, algorithm="ES256", **changes):
        claims = {name: value for name, value in {**right, **changes}.items() if value is not None}
        return {"authorization": f"Bearer {jwt.encode(claims, with_key, algorithm=algorithm)}"}

    async def main():
        assert await auth.authenticate(signed()) == Principal("dora", "acme", frozenset("ab"))
        for wrong in (
            signed(exp=now - 600),
            signed(exp=None),
            signed(aud="others"),
            signed(iss="others"),
            signed(sub=None),
            signed(org=None),
            signed(with_key=other),
            signed(with_key="secret" * 8, algorithm="HS256"),
            {"authorization": "Bearer x.y.z"},
            {"authorization": f"Bearer {jwt.encode(right, None, algorithm='none')}"},
            {},
        ):
            assert await auth.authenticate(wrong) is None
        assert "openIdConnectSecurityScheme" in auth.schemes["openid"]

    run(main())


def test_what_belongs_to_another_owner_is_not_found(run):
    async def main():
        app = a2a_app(scripted(asks), auth=TOKENS, webhooks=webhooks())
        async with (
            serving(app) as url,
            ByHand(url, bearer("alices")) as alice,
            ByHand(url, bearer("bobs")) as bob,
        ):
            task = await alice.send()
            config = (
                await alice.call(
                    "CreateTaskPushNotificationConfig",
                    {"taskId": task["id"], "id": "c", "url": "http://127.0.0.1:9/x"},
                )
            )["result"]
            for method, params in (
                ("GetTask", {"id": task["id"]}),
                ("CancelTask", {"id": task["id"]}),
                ("SubscribeToTask", {"id": task["id"]}),
                ("SendMessage", {"message": message(taskId=task["id"])}),
                ("SendStreamingMessage", {"message": message(taskId=task["id"])}),
                (
                    "CreateTaskPushNotificationConfig",
                    {"taskId": task["id"], "url": "http://127.0.0.1:9/x"},
                ),
                ("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": config["id"]}),
                ("ListTaskPushNotificationConfigs", {"taskId": task["id"]}),
                ("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": config["id"]}),
            ):
                theirs = (await bob.call(method, params))["error"]
                assert theirs["code"] == -32001, method
                if method != "SendMessage":
                    missing = (
                        await bob.call(
                            method,
                            {
                                **params,
                                **(
                                    {"id": "none"}
                                    if "id" in params and "taskId" not in params
                                    else {}
                                ),
                            },
                        )
                    ).get("error", {})
                    assert missing.get("code") == -32001
            assert (await bob.call("ListTasks", {}))["result"]["totalSize"] == 0
            assert (await bob.call("ListTasks", {"contextId": task["contextId"]}))["result"][
                "totalSize"
            ] == 0
            assert state_of(await alice.get(task["id"])) == "INPUT_REQUIRED"
            assert state_of(await alice.send("x", taskId=task["id"])) == "COMPLETED"
            assert "error" not in await alice.send(contextId=task["contextId"])

    run(main())


def test_each_owner_has_contexts_of_its_own_whatever_others_call_theirs(run):
    heard = []

    async def play(input, context):
        heard.append([said.text for said in input.messages])
        yield "said"

    async def main():
        async with (
            serving(a2a_app(scripted(play), auth=TOKENS)) as url,
            ByHand(url, bearer("alices")) as alice,
            ByHand(url, bearer("bobs")) as bob,
        ):
            for client, text in ((alice, "one"), (bob, "two"), (alice, "three"), (bob, "four")):
                assert (await client.send(text, contextId="trip"))["contextId"] == "trip"
        assert heard == [["one"], ["two"], ["one", "said", "three"], ["two", "said", "four"]]

    run(main())


def test_tenants_are_apart_and_one_of_a_principals_own_is_fixed(run):
    async def main():
        async with (
            serving(a2a_app(scripted(asks), auth=TOKENS)) as url,
            ByHand(url, bearer("alices")) as alice,
            ByHand(url, bearer("fixed")) as fixed,
        ):
            params = {"message": message(), "tenant": "north"}
            task = (await alice.call("SendMessage", params))["result"]["task"]
            assert (await alice.get(task["id"]))["error"]["code"] == -32001
            assert (await alice.get(task["id"], tenant="south"))["error"]["code"] == -32001
            assert (await alice.get(task["id"], tenant="north"))["id"] == task["id"]
            assert (await alice.http.get(f"/a2a/north/tasks/{task['id']}")).status_code == 200
            assert (await alice.http.get(f"/a2a/south/tasks/{task['id']}")).status_code == 404
            own = await fixed.send()
            assert (await fixed.get(own["id"], tenant="acme"))["id"] == own["id"]
            assert (await fixed.get(own["id"], tenant="north"))["error"]["code"] == -32001
            assert (await alice.get(own["id"], tenant="acme"))["id"] == own["id"], (
                "a subject is the same in its tenant, whoever names that"
            )

    run(main())


@pytest.mark.parametrize(
    "make",
    [
        lambda: BearerTokens({}),
        lambda: BearerTokens({" ": "a"}),
        lambda: ApiKeys("key"),
        lambda: Authenticator("x"),
        lambda: Principal(""),
    ],
)
def test_what_can_let_nobody_in_is_refused_at_once(make):
    with pytest.raises(UsageError):
        make()


def test_tokens_are_kept_as_hashes_and_never_shown():
    auth = BearerTokens({"a-very-secret-token": "alice"})
    assert "a-very-secret-token" not in repr(auth)
    assert "a-very-secret-token" not in repr(
        getattr(auth, "_check", None).__closure__[0].cell_contents.__closure__[0].cell_contents
    )
