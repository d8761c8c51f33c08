"""To which addresses webhooks are sent: what is refused at registration, and again at sending,
whatever a name leads to by then.
"""

import asyncio
import datetime as dt
import ssl

import pytest
from a2a.types import a2a_pb2 as pb
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from offbook.runtime.a2a import WebhookPolicy, a2a_app
from offbook.runtime.a2a.push.configs import Hook, Secrets
from offbook.runtime.a2a.push.policy import WebhookRefused
from offbook.runtime.a2a.push.sender import WebhookSender
from tests.doubles.a2a import ByHand, scripted, serving, state_of
from tests.doubles.webhooks import Webhook

PRIVATE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.254",
    "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "2002:7f00:1::", "2002:808:808::",
    "64:ff9b::8.8.8.8", "2001:0:1::1", "::8.8.8.8", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "not an address",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111"]


def leads_to(*addresses):
    async def resolve(host, port):
        return addresses

    return resolve


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(run, address):
    async def main():
        for addresses in ([address], ["8.8.8.8", address], [address, "8.8.8.8"]):
            with pytest.raises(WebhookRefused, match="public address"):
                await WebhookPolicy(resolve=leads_to(*addresses)).check("https://hooks.example/x")

    run(main())


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_taken(run, address):
    target = run(WebhookPolicy(resolve=leads_to(address)).check("https://hooks.example/x?y=1"))
    assert (target.address, target.port, target.path, target.host) == (
        address,
        443,
        "/x?y=1",
        "hooks.example",
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/x", "ftp://hooks.example/x", "file:///etc/passwd", "gopher://x", "//hooks.example", "hooks.example", "",
        "https://user@hooks.example/", "https://user:secret@hooks.example/", "https://@hooks.example/", "https://hooks.example:22/", "https://hooks.example:0/",
        "https://hooks.example:99999/", "https://hooks.example:8443/", "https://", "https:///x", "https://hooks.example\\@evil/", "https://hooks.example/ x",
        "https://hooks.example/\r\nX: y", "https://" + "x" * 3_000,
    ],
)  # fmt: skip
def test_a_form_that_is_not_allowed_is_refused(run, url):
    async def main():
        with pytest.raises(WebhookRefused):
            await WebhookPolicy(resolve=leads_to("8.8.8.8")).check(url)

    run(main())


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://[::1]/",
        "https://localhost/",
    ],
)
def test_ways_to_write_this_machine_are_refused(run, url):
    async def main():
        with pytest.raises(WebhookRefused):
            await WebhookPolicy().check(url)

    run(main())


def test_a_name_that_cannot_be_found_is_refused(run):
    async def fails(host, port):
        raise OSError("no such host")

    async def nothing(host, port):
        return []

    async def never(host, port):
        await asyncio.Event().wait()

    async def main():
        for resolve in (fails, nothing, never):
            with pytest.raises(WebhookRefused, match="a name that DNS can resolve"):
                await WebhookPolicy(resolve=resolve, timeout=0.05).check("https://hooks.example/x")

    run(main())


def test_a_registration_is_refused_in_words_that_say_why(run):
    async def quiet(input, context):
        return
        yield

    async def main():
        app = a2a_app(scripted(quiet), webhooks=WebhookPolicy(resolve=leads_to("10.0.0.1")))
        async with serving(app) as url, ByHand(url) as client:
            task = await client.send()
            answer = await client.call(
                "CreateTaskPushNotificationConfig",
                {"taskId": task["id"], "url": "https://hooks.example/x"},
            )
            assert answer["error"]["code"] == -32602
            assert "public address" in answer["error"]["message"]
            with_config = await client.send(
                configuration={"taskPushNotificationConfig": {"url": "http://127.0.0.1/"}}
            )
            assert with_config["error"]["code"] == -32602
            assert (await client.call("ListTasks", {}))["result"]["totalSize"] == 1, (
                "a refused message leaves no task"
            )

    run(main())


def certificate(tmp_path, name):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return {"ssl_certfile": str(tmp_path / "cert.pem"), "ssl_keyfile": str(tmp_path / "key.pem")}


UPDATE = pb.StreamResponse(
    status_update=pb.TaskStatusUpdateEvent(
        task_id="t", status=pb.TaskStatus(state=pb.TASK_STATE_WORKING)
    )
)


def test_a_name_that_leads_elsewhere_by_now_is_not_followed(run, monkeypatch):
    """DNS rebinding: the name is public when it is registered, and this machine a moment later."""
    answers = [["8.8.8.8"], ["127.0.0.1"], ["8.8.8.8", "127.0.0.1"]]
    asked = []

    async def rebinding(host, port):
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    async def main():
        async with Webhook() as hook:
            policy = WebhookPolicy(allow_http=True, ports=(hook.port,), resolve=rebinding)
            url = f"http://rebinding.example:{hook.port}/hook"
            await policy.check(url, registers=True)
            sender = WebhookSender(policy, Secrets("k", is_lasting=False))
            for _ in range(2):
                assert "public address" in await sender.send(Hook("h", url), UPDATE)
            assert hook.calls == []
            await sender.aclose()
        assert len(asked) == 3

    run(main())


def test_what_was_checked_is_what_is_connected_to(run, monkeypatch):
    """The name is looked up once for a call: not again by what connects."""
    lookups = []

    async def main():
        async with Webhook() as hook:
            policy = WebhookPolicy(
                allow_http=True,
                allow_hosts=("named.example",),
                ports=(hook.port,),
                resolve=leads_to("127.0.0.1"),
            )
            sender = WebhookSender(policy, Secrets("k", is_lasting=False))
            loop = asyncio.get_running_loop()
            original = loop.getaddrinfo

            async def watched(host, *args, **options):
                lookups.append(host)
                return await original(host, *args, **options)

            monkeypatch.setattr(loop, "getaddrinfo", watched)
            assert (
                await sender.send(Hook("h", f"http://named.example:{hook.port}/a/b?c=d"), UPDATE)
                == ""
            )
            assert hook.headers[0]["host"] == f"named.example:{hook.port}"
            assert hook.paths == ["/a/b"]
            await sender.aclose()
        assert "named.example" not in lookups

    run(main())


def test_the_certificate_is_that_of_the_name_and_not_of_the_address(run, tmp_path):
    async def main():
        files = certificate(tmp_path, "hooks.example")
        trusted = ssl.create_default_context(cafile=files["ssl_certfile"])
        async with Webhook(ssl=files) as hook:
            names = ("hooks.example", "other.example")
            policy = WebhookPolicy(
                allow_hosts=names, ports=(hook.port,), resolve=leads_to("127.0.0.1")
            )
            secrets = Secrets("k", is_lasting=False)
            sender = WebhookSender(policy, secrets, verify=trusted)
            assert (
                await sender.send(Hook("h", f"https://hooks.example:{hook.port}/x"), UPDATE) == ""
            )
            assert (
                await sender.send(Hook("h", f"https://other.example:{hook.port}/x"), UPDATE) != ""
            ), "it is another's certificate"
            await sender.aclose()
            strict = WebhookSender(policy, secrets)
            assert (
                await strict.send(Hook("h", f"https://hooks.example:{hook.port}/x"), UPDATE) != ""
            ), "nothing vouches for it"
            await strict.aclose()
            assert len(hook.calls) == 1

    run(main())


def test_redirects_are_not_followed_and_proxies_of_the_environment_not_used(run, monkeypatch):
    async def main():
        async with (
            Webhook() as inner,
            Webhook(answers=[302, 307], location=inner.url) as hook,
            Webhook() as proxy,
        ):
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            policy = WebhookPolicy(allow_http=True, allow_private=True)
            sender = WebhookSender(policy, Secrets("k", is_lasting=False))
            for status in (302, 307):
                assert await sender.send(Hook("h", hook.url), UPDATE) == f"it has answered {status}"
            assert await sender.send(Hook("h", hook.url), UPDATE) == ""
            assert (len(hook.calls), inner.calls, proxy.calls) == (3, [], [])
            await sender.aclose()

    run(main())


def test_a_webhook_that_does_not_answer_is_given_up_in_time(run):
    async def main():
        async with Webhook(hold=asyncio.Event()) as hook:
            sender = WebhookSender(
                WebhookPolicy(allow_http=True, allow_private=True, timeout=0.2),
                Secrets("k", is_lasting=False),
            )
            why = await sender.send(Hook("h", hook.url), UPDATE)
            assert "0.2 s" in why or "Timeout" in why
            assert state_of(hook.calls[0]) == "WORKING"
            await sender.aclose()

    run(main())
