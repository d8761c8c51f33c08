"""Who may ask the console: tokens, origins, names of hosts, and the headers of its answers."""

import json
import logging

import httpx
import pytest
from starlette.applications import Starlette

from offbook.runtime import Runner, UsageError
from offbook.runtime.console import console_app, serve_console
from tests.doubles.console import ORIGIN, TOKEN, Asking, desk, runner_of


def asked(run, requests, auth=TOKEN, **options):
    """The answers to requests, each (method, path, headers, body), by one browser without a token
    of its own.
    """

    async def main():
        app = console_app(runner_of(desk()), auth=auth, **options)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            found = []
            for method, path, *rest in requests:
                headers, body = (*rest, *({}, None)[len(rest) :])
                found.append(await client.request(method, path, headers=headers, content=body))
        await app.aclose()
        return found

    return run(main())


JSON = {"Content-Type": "application/json"}
LOGIN = ("POST", "/login", {**JSON, "Origin": ORIGIN}, json.dumps({"token": TOKEN}).encode())
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/now",
        "/api/runs",
        "/api/stats",
        "/nothing",
        "/api/now?token=",
        f"/api/now?token={TOKEN}",
    ],
)
def test_without_its_token_nothing_is_shown(run, path):
    (answer,) = asked(run, [("GET", path)])
    assert answer.status_code == 401
    assert "Desk" not in answer.text
    assert "set-cookie" not in answer.headers


def test_the_page_posts_the_token_and_its_cookie_is_enough_from_then_on(run):
    page, login, now, script = asked(
        run, [("GET", "/"), LOGIN, ("GET", "/api/now"), ("GET", "/static/app.js")]
    )
    assert (page.status_code, login.status_code, now.status_code, script.status_code) == (
        200,
        204,
        200,
        200,
    )
    assert "Desk" not in page.text
    assert "set-cookie" not in page.headers
    cookie = login.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, b'{"token": "wrong"}', 401),
        ({}, b'{"token": 1}', 400),
        ({}, b"[]", 400),
        ({}, b"\xff", 400),
        ({}, b'{"token": "' + b"x" * 20_000 + b'"}', 413),
        ({"Origin": "http://evil.test"}, LOGIN[3], 403),
        ({"Origin": "http://["}, LOGIN[3], 400),
        ({"Origin": "console.test"}, LOGIN[3], 400),
        ({"Content-Type": "text/plain"}, LOGIN[3], 415),
    ],
)
def test_whoever_has_not_the_token_or_is_another_page_gets_no_cookie(run, headers, body, status):
    login, now = asked(
        run, [("POST", "/login", {**LOGIN[2], **headers}, body), ("GET", "/api/now")]
    )
    assert (login.status_code, now.status_code) == (status, 401)
    assert "set-cookie" not in login.headers


def test_the_cookie_is_no_token(run):
    login, *_ = asked(run, [LOGIN])
    value = login.headers["set-cookie"].split(";")[0].split("=", 1)[1]
    answers = asked(
        run,
        [
            ("POST", "/login", LOGIN[2], json.dumps({"token": value}).encode()),
            ("GET", "/api/now", {"Authorization": f"Bearer {value}"}),
        ],
    )
    assert [answer.status_code for answer in answers] == [401, 401]


def test_mounted_in_a_service_it_keeps_to_its_own_path(run):
    async def main():
        service = Starlette()
        service.mount("/console", console_app(runner_of(desk()), auth=TOKEN))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(service), base_url=ORIGIN
        ) as client:
            page = await client.get("/console", follow_redirects=True)
            login = await client.post("/console/login", headers=LOGIN[2], content=LOGIN[3])
            paths = [
                "/console/api/now",
                "/console/static/app.js",
                "/console/static/nothing.js",
                "/console/nothing",
            ]
            return page, login, [(await client.get(path)).status_code for path in paths]

    page, login, found = run(main())
    assert str(page.url) == f"{ORIGIN}/console/"
    assert "Path=/console;" in login.headers["set-cookie"]
    assert found == [200, 200, 404, 404]


def test_programs_send_the_token_in_the_header(run):
    (answer,) = asked(run, [("GET", "/api/stats", BEARER)])
    assert set(answer.json()) >= {"system", "runs"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": ORIGIN}, 400),  # let in: the run that it names is missing
        ({"Sec-Fetch-Site": "same-origin"}, 400),
        (
            {"Sec-Fetch-Site": "same-origin", "Origin": "https://shop.example"},
            400,
        ),  # behind a proxy that has another host
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://console.test:9999"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "http://console.test:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({}, 403),
    ],
)
def test_only_its_own_page_changes_anything(run, headers, status):
    _, answer = asked(run, [LOGIN, ("POST", "/api/run/forget", {**JSON, **headers}, b"{}")])
    assert answer.status_code == status


def test_a_token_in_the_header_is_no_page_and_needs_no_origin(run):
    good, foreign = asked(
        run,
        [
            ("POST", "/api/run/forget", {**JSON, **BEARER}, b"{}"),
            ("POST", "/api/run/forget", {**JSON, **BEARER, "Origin": "http://evil.test"}, b"{}"),
        ],
    )
    assert (good.status_code, foreign.status_code) == (400, 403)


def test_a_form_of_another_page_is_no_json(run):
    _, answer = asked(
        run,
        [
            LOGIN,
            ("POST", "/api/run/forget", {"Origin": ORIGIN, "Content-Type": "text/plain"}, b"{}"),
        ],
    )
    assert answer.status_code == 415


def test_another_page_cannot_read_by_a_script_or_a_picture(run):
    _, answer, followed = asked(
        run,
        [
            LOGIN,
            ("GET", "/api/now", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
            ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
        ],
    )
    assert (answer.status_code, followed.status_code) == (403, 200)


def test_a_strangers_name_that_leads_to_this_machine_is_refused_where_only_this_machine_may_ask(
    run,
):
    names = [
        "evil.test",
        "localhost.evil.test",
        "127.0.0.1.evil.test",
        "",
        "127.0.0.1:8737",
        "localhost:8737",
        "[::1]:8737",
    ]
    answers = asked(
        run, [("GET", "/api/now", {**BEARER, "Host": name}) for name in names], only_loopback=True
    )
    assert [answer.status_code for answer in answers] == [403, 403, 403, 403, 200, 200, 200]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?token=x",
        "/api/now",
        "/static/app.js",
        "/static/nothing.js",
        "/nothing",
        "/api/run?id=x",
    ],
)
def test_every_answer_has_the_policy_that_lets_no_other_script_run(run, path):
    (answer,) = asked(run, [("GET", path)])
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] in ("no-store", "no-cache")


def test_a_function_says_who_asks(run):
    async def who(request):
        return {"k1": "ada", "k2": True, "k3": False, "k4": ""}.get(request.headers.get("x-key"))

    answers = asked(
        run,
        [("GET", "/api/me", {"X-Key": key}) for key in ("k1", "k2", "k3", "k4", "k5")],
        auth=who,
    )
    assert [answer.status_code for answer in answers] == [200, 200, 401, 401, 401]
    assert [answer.json()["name"] for answer in answers[:2]] == ["ada", None]


def test_programs_that_a_function_lets_in_by_a_header_need_no_origin(run):
    good, bad = asked(
        run,
        [
            ("POST", "/api/run/forget", {**JSON, **BEARER}, b"{}"),
            ("POST", "/api/run/forget", {**JSON, "Authorization": "Basic eDp5"}, b"{}"),
        ],
        auth=lambda _: "ada",
    )
    assert (good.status_code, bad.status_code) == (400, 403)


def test_odd_cookies_of_others_on_the_same_host_do_no_harm(run):
    async def main():
        app = console_app(runner_of(desk()), auth=TOKEN)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            login = await client.post("/login", headers=LOGIN[2], content=LOGIN[3])
            own = login.headers["set-cookie"].split(";")[0]
            client.cookies.clear()
            cookies = ['odd={"a": "b;c"}; ', "=; ", '"; ', "a b=c; "]
            return [
                (
                    await client.get("/api/me", headers={"Cookie": f"{odd}{own}; other=[1,2]"})
                ).status_code
                for odd in cookies
            ]

    assert run(main()) == [200] * 4


def test_a_function_that_raises_lets_no_one_in_and_its_words_are_not_logged(run, caplog):
    def who(request):
        raise RuntimeError("the-secret " + request.headers["x-key"])

    (answer,) = asked(run, [("GET", "/api/me", {"X-Key": "hidden"})], auth=who)
    assert answer.status_code == 401
    assert "RuntimeError" in caplog.text
    assert "hidden" not in caplog.text
    assert "the-secret" not in caplog.text


def test_neither_tokens_nor_what_is_said_come_into_the_log(run, caplog):
    caplog.set_level(logging.DEBUG)

    async def main():
        async with Asking(runner_of(desk(ValueError("no luck"), "the-answer"))) as ask:
            await ask.client.post("/login", headers=LOGIN[2], content=LOGIN[3])
            await ask.streamed("session/say", id="s", text="the-question")
            await ask.streamed("try", text="the-question", instructions={"Desk": "the-instruction"})
            await ask.get("session", id="s")

    run(main())
    ours = "\n".join(
        f"{record.name} {record.getMessage()} {record.exc_text}"
        for record in caplog.records
        if record.name.startswith("offbook")
    )
    for word in (TOKEN, "the-question", "the-answer", "the-instruction"):
        assert word not in ours


@pytest.mark.parametrize("auth", ["", "  ", None, 7, True, "two\nlines", str])
def test_who_may_ask_has_to_be_said(auth):
    with pytest.raises(UsageError, match=r"console_app\(auth=\) must be a token or a function"):
        console_app(Runner(desk()), auth=auth)


def test_a_console_of_what_is_no_runner_is_refused():
    with pytest.raises(UsageError, match=r"console_app\(\) needs a Runner"):
        console_app(desk(), auth=TOKEN)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "console.example"])
def test_on_an_address_that_others_reach_a_token_is_needed(host):
    with pytest.raises(UsageError, match="every client that reaches this address could use it"):
        serve_console(desk(), host=host, port=0)
