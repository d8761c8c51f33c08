"""docs/guides/where-it-lives.md, for longer: workers that are recycled, thousands of requests,
forks before and after the first use, and a plain script. On each store.
"""

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
import redis

from tests import pages
from tests.programs.servers import complaints
from tests.test_where_it_lives import (
    PATIENCE,
    SERVERS,
    UVICORN,
    Server,
    Workers,
    need,
    wait_for,
    write_files,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

STORES = pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
CLIENTS = 4
RECYCLED = {
    "fastapi": (*SERVERS["fastapi"][1][:-1], "--limit-max-requests", "60", "fastapi_app:app"),
    "flask": (*SERVERS["flask"][1][:-1], "--max-requests", "40", "flask_app:app"),
    "django wsgi": (*SERVERS["django wsgi"][1][:-1], "--max-requests", "40", "django_wsgi:app"),
    "django asgi": (*UVICORN, "--limit-max-requests", "60", "django_asgi:app"),
}


def steps(server, http, run_id):
    """Take one run from its start to its end, as a client does that asks again when its worker
    goes away. Returns how many requests that took.
    """
    asked = 0

    def ask(method, path):
        nonlocal asked
        until = time.monotonic() + PATIENCE
        while True:
            asked += 1
            with contextlib.suppress(httpx.TransportError):
                reply = http.request(method, f"http://127.0.0.1:{server.port}{path}")
                if reply.is_success or reply.status_code == 409:
                    return reply
                assert reply.status_code == 503, (reply.status_code, reply.text, server.errors)
            assert time.monotonic() < until, server.errors
            time.sleep(0.02)

    def until_is(status):
        until = time.monotonic() + PATIENCE
        while (info := ask("GET", f"/runs/{run_id}").json())["status"] != status:
            assert info["status"] not in ("failed", "stuck", "cancelled"), info
            assert time.monotonic() < until, (info, server.errors)
        return info

    ask("POST", f"/runs/{run_id}")
    ask("POST", f"/approve/{until_is('interrupted')['waiting'][0]}")
    until_is("completed")
    return asked


def many(server, runs, name):
    """So many runs, by some clients at once. Returns how many requests they took."""

    def some(number):
        with httpx.Client(timeout=30) as http:
            mine = range(number, runs, CLIENTS)
            return sum(steps(server, http, f"{name}-{one}") for one in mine)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(some, range(CLIENTS)))


def is_clean(server):
    for word in ("Traceback", "never awaited", "was destroyed", "stuck"):
        assert word not in server.errors, server.errors


@STORES
@pytest.mark.parametrize("name", RECYCLED)
def test_workers_that_are_recycled_under_load_lose_no_run(name, kind, tmp_path, store_recipe):
    need(SERVERS[name][0])
    write_files(tmp_path, store_recipe(kind, "lives"))
    server = Server(tmp_path, RECYCLED[name])
    server.environment["REFUND_SECONDS"] = "0.02"
    server.start()
    try:
        before = workers_of(server)
        assert many(server, 60, "r") >= 180
        assert len(before - workers_of(server)) >= 2  # both workers are others by now
        server.end()
    finally:
        server.kill()
    is_clean(server)


@STORES
def test_workers_of_celery_that_are_recycled_lose_no_run(kind, tmp_path, store_recipe):
    need(["celery", "redis"])
    _, (broker,), _ = store_recipe("redis", "broker")
    write_files(tmp_path, store_recipe(kind, "lives"))
    workers = Workers(tmp_path, "prefork", broker, "--max-tasks-per-child", "10")
    workers.start()
    try:
        for number in range(8):
            workers.begin(f"r{number}")
        for number in range(8):
            workers.approve(wait_for(workers, f"r{number}", "interrupted")["waiting"][0])
        for number in range(8):
            wait_for(workers, f"r{number}", "completed")
        workers.end()
    finally:
        workers.kill()
        workers.app.close()
    is_clean(workers)


def workers_of(server):
    """The process ids of its workers."""
    return {child.pid for child in psutil.Process(server.process.pid).children(recursive=True)}


def held_by(server, recipe):
    """What the server's processes hold: descriptors, threads, and what they have in the store."""
    processes = [psutil.Process(pid) for pid in workers_of(server)]
    found = {
        "descriptors": sum(process.num_fds() for process in processes),
        "threads": sum(process.num_threads() for process in processes),
    }
    kind, arguments, options = recipe
    if kind == "PostgresStore":
        with psycopg.connect(arguments[0]) as connection:
            ask = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            found["locks"] = connection.execute(ask).fetchone()[0]
            ask = f"SELECT count(*) FROM {options['prefix']}owners"
            found["owners"] = connection.execute(ask).fetchone()[0]
    elif kind == "RedisStore":
        with redis.Redis.from_url(arguments[0]) as client:
            found["owners"] = len(list(client.scan_iter(f"{options['prefix']}\0o:*")))
            found["connections"] = len(client.client_list())
    else:
        path = Path(arguments[0])
        found["files"] = len(list(path.parent.glob(f"{path.name}*")))
    return found


@STORES
@pytest.mark.parametrize("name", ["fastapi", "flask", "django wsgi"])
def test_two_thousand_requests_leave_nothing_behind(name, kind, tmp_path, store_recipe):
    modules, command = SERVERS[name]
    need(modules)
    recipe = store_recipe(kind, "lives")
    write_files(tmp_path, recipe)
    server = Server(tmp_path, command)
    server.environment["REFUND_SECONDS"] = "0"
    server.start()
    try:
        many(server, 40, "warm")
        before = held_by(server, recipe)
        asked, rounds = 0, 0
        while asked < 2000:
            rounds += 1
            asked += many(server, 100, f"round{rounds}")
        after = held_by(server, recipe)
        # Threads, and connections to clients and the store, come and go by a few. One of the two
        # workers may have had nothing to do for a while, and no owner.
        slack = {"descriptors": 16, "threads": 16, "connections": 4}
        slack |= {"locks": 1, "owners": 1, "files": 1}
        grown = {
            what: (before[what], count)
            for what, count in after.items()
            if count > before[what] + slack.get(what, 0)
        }
        assert not grown, grown
        server.end()
    finally:
        server.kill()
    is_clean(server)


FORKED = """
import json, os, signal, sys

from desk import desk


def begin(runner, run_id):
    assert runner.blocking.query("Refund order 7.", run_id=run_id).status == "interrupted"


def approve(runner, run_id):
    (interrupt,) = runner.blocking.info(run_id).waiting
    return runner.blocking.approve(interrupt).status.value


def fork(child):
    pid = os.fork()
    if pid == 0:
        signal.alarm(40)
        code = 1
        try:
            child()
            code = 0
        finally:
            os._exit(code)
    return pid


def code_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def lives():
    with desk() as runner:
        begin(runner, f"child-{os.getpid()}")
        assert approve(runner, f"child-{os.getpid()}") == "completed"


def dies():
    runner = desk().open()
    begin(runner, "killed")
    (interrupt,) = runner.blocking.info("killed").waiting
    runner.blocking.accepted(runner.approve(interrupt))
    os.kill(os.getpid(), signal.SIGKILL)  # while the tool runs


codes = [code_of(fork(lives))] if sys.argv[1] == "before" else []
with desk() as runner:
    begin(runner, "a")
    codes += [code_of(pid) for pid in [fork(lives), fork(lives), fork(dies)]]
    said = [approve(runner, "a")]
    while runner.blocking.info("killed").status != "completed":
        pass  # it is recovered here
codes.append(code_of(fork(lives)))
print(json.dumps([codes, said]))
"""


@STORES
@pytest.mark.parametrize("when", ["before", "after"])
def test_children_that_are_forked_before_and_after_the_first_use(
    when, kind, tmp_path, store_recipe
):
    write_files(tmp_path, store_recipe(kind, "lives"))
    (tmp_path / "forked.py").write_text(FORKED)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "forked.py", when],
        cwd=tmp_path,
        env=pages.environment(REFUND_SECONDS="0.2"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    codes, said = json.loads(done.stdout)
    assert codes == [0] * (when == "before") + [0, 0, -signal.SIGKILL, 0]
    assert said == ["completed"]


SCRIPT = """
import sys, time

from desk import desk

with desk() as runner:
    if sys.argv[1] == "ends":
        print(runner.attach("a", wait=True).result().status.value)
    else:
        (interrupt,) = runner.blocking.query("Refund order 7.", run_id="a").interrupts
        runner.blocking.accepted(runner.approve(interrupt))
        print("approved", flush=True)
        time.sleep(60)
"""


@STORES
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_script_that_is_ended_while_a_tool_runs_is_continued_by_the_next_one(
    number, kind, tmp_path, store_recipe
):
    write_files(tmp_path, store_recipe(kind, "lives"))
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = pages.environment(REFUND_SECONDS="0.5")
    command = [sys.executable, "script.py"]
    first = subprocess.Popen(
        [*command, "begins"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = threading.Timer(PATIENCE, first.kill)
    watch.start()
    assert first.stdout.readline() == "approved\n"
    first.send_signal(number)
    _, errors = first.communicate(timeout=PATIENCE)
    watch.cancel()
    assert "was destroyed" not in errors
    done = subprocess.run(
        [*command, "ends"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    said = (done.returncode, done.stdout, complaints(done.stderr))
    assert said == (0, "completed\n", "")
