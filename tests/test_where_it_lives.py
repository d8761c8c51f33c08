"""The programs of docs/guides/web-services.md and where-it-lives.md, each with its real server:
start, inspect, approve; a reload; a process that is killed while a tool runs."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from offbook import ResumeError
from tests import pages
from tests.doubles.notebook import notebook
from tests.programs.servers import free_port

GUIDES = pages.ROOT / "docs" / "guides"
PAGE = GUIDES / "where-it-lives.md"
FILES = pages.files_of(GUIDES / "web-services.md") | pages.files_of(PAGE)
PATIENCE = 60
TOOL = "0.8"  # seconds that the tool takes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

UVICORN = (
    "-m",
    "uvicorn",
    "--workers",
    "2",
    "--port",
    "{port}",
    "--log-level",
    "warning",
    "--timeout-graceful-shutdown",
    "15",
)
GUNICORN = (
    "-m",
    "gunicorn",
    "--workers",
    "2",
    "--bind",
    "127.0.0.1:{port}",
    "--log-level",
    "warning",
    "--graceful-timeout",
    "30",
)
HYPERCORN = (
    "-m",
    "hypercorn",
    "--workers",
    "2",
    "--bind",
    "127.0.0.1:{port}",
    "--log-level",
    "warning",
)
SERVERS = {
    "fastapi": (("fastapi", "uvicorn"), (*UVICORN, "fastapi_app:app")),
    "fastapi on hypercorn": (("fastapi", "hypercorn"), (*HYPERCORN, "fastapi_app:app")),
    "fastapi on gunicorn": (
        ("fastapi", "gunicorn", "uvicorn_worker"),
        (*GUNICORN, "-k", "uvicorn_worker.UvicornWorker", "fastapi_app:app"),
    ),
    "starlette": (("starlette", "uvicorn"), (*UVICORN, "starlette_app:app")),
    "aiohttp": (("aiohttp",), ("aiohttp_app.py", "{port}")),
    "flask": (("flask", "gunicorn"), (*GUNICORN, "--threads", "8", "flask_app:app")),
    "flask, sync workers": (("flask", "gunicorn"), (*GUNICORN, "flask_app:app")),
    "django asgi": (("django", "uvicorn"), (*UVICORN, "django_asgi:app")),
    "django wsgi": (("django", "gunicorn"), (*GUNICORN, "--threads", "8", "django_wsgi:app")),
}


def need(modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def write_files(folder, recipe=None):
    for name, code in FILES.items():
        changed = code
        if recipe is not None and name == "desk.py":
            kind, arguments, options = recipe
            changed = code.replace(
                'SQLiteStore("desk.db")', f"{kind}(*{arguments!r}, **{options!r})"
            ).replace("SQLiteStore", kind)
        (folder / name).write_text(changed)


class Server:
    """One server of a page's program, with all its processes."""

    def __init__(self, folder, command, **more):
        self.folder, self.port = folder, free_port()
        self.command = [sys.executable, *(part.format(port=self.port) for part in command)]
        self.environment = pages.environment(REFUND_SECONDS=TOOL, PYTHONPATH=str(folder), **more)
        self.process = None

    def start(self):
        with (self.folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.environment,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )
        self.wait_until_ready()

    def wait_until_ready(self):
        until = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"http://127.0.0.1:{self.port}/", timeout=5)
                return
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < until, self.errors
            time.sleep(0.05)

    def kill(self):
        """All processes of it, as the end of its container does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def end(self):
        """As a deploy does."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    @property
    def errors(self):
        return (self.folder / "errors").read_text()

    def reply(self, method, path):
        return httpx.request(method, f"http://127.0.0.1:{self.port}{path}", timeout=30)

    def ask(self, method, path):
        reply = self.reply(method, path)
        assert reply.is_success, (reply.status_code, reply.text, self.errors)
        return reply

    def begin(self, run_id):
        self.ask("POST", f"/runs/{run_id}")

    def look(self, run_id):
        return self.ask("GET", f"/runs/{run_id}").json()

    def approve(self, interrupt):
        self.ask("POST", f"/approve/{interrupt}")

    def refuses(self, interrupt):
        """What the server says to an answer that it refuses."""
        reply = self.reply("POST", f"/approve/{interrupt}")
        assert reply.status_code == 409, (reply.status_code, reply.text, self.errors)
        return reply.text


def wait_for(server, run_id, status):
    until = time.monotonic() + PATIENCE
    while (info := server.look(run_id))["status"] != status:
        assert info["status"] not in ("failed", "stuck", "cancelled"), info
        assert time.monotonic() < until, (info, server.errors)
        time.sleep(0.05)
    return info


def go_through(server):
    server.start()
    try:
        for run_id in ("a", "killed", "reloaded"):
            server.begin(run_id)
            wait_for(server, run_id, "interrupted")
        (interrupt,) = wait_for(server, "a", "interrupted")["waiting"]
        server.approve(interrupt)
        wait_for(server, "a", "completed")
        assert "already answered" in server.refuses(interrupt)

        server.approve(wait_for(server, "killed", "interrupted")["waiting"][0])
        server.kill()  # the tool is under way
        server.start()
        wait_for(server, "killed", "completed")

        server.approve(wait_for(server, "reloaded", "interrupted")["waiting"][0])
        server.end()
        server.start()
        wait_for(server, "reloaded", "completed")
        server.end()
    finally:
        server.kill()
    for word in ("Traceback", "never awaited", "was destroyed", "stuck"):
        assert word not in server.errors, server.errors


@pytest.mark.parametrize("name", SERVERS)
def test_each_framework_starts_follows_approves_and_recovers(name, tmp_path):
    modules, command = SERVERS[name]
    need(modules)
    write_files(tmp_path)
    go_through(Server(tmp_path, command))


@pytest.mark.parametrize("kind", ["postgres", "redis"])
@pytest.mark.parametrize("name", ["fastapi", "flask", "django asgi", "django wsgi"])
def test_the_same_on_a_server_store(name, kind, tmp_path, store_recipe):
    modules, command = SERVERS[name]
    need(modules)
    write_files(tmp_path, store_recipe(kind, "lives"))
    go_through(Server(tmp_path, command))


class Workers(Server):
    """Workers of Celery, asked by tasks."""

    def __init__(self, folder, pool, broker, *options):
        super().__init__(
            folder,
            (
                "-m",
                "celery",
                "-A",
                "celery_app",
                "worker",
                "--concurrency",
                "2",
                "--pool",
                pool,
                "--loglevel",
                "WARNING",
                *options,
            ),
            BROKER=broker,
        )
        from celery import Celery

        self.app = Celery("desk", broker=broker, backend=broker)

    def wait_until_ready(self):
        until = time.monotonic() + PATIENCE
        while not self.app.control.ping(timeout=0.5):
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < until, self.errors

    def call(self, task, *arguments):
        return self.app.send_task(f"celery_app.{task}", args=arguments).get(timeout=PATIENCE)

    def begin(self, run_id):
        self.call("start", run_id)

    def look(self, run_id):
        return self.call("look", run_id)

    def approve(self, interrupt):
        self.call("approve", interrupt)

    def refuses(self, interrupt):
        with pytest.raises(ResumeError) as refused:
            self.approve(interrupt)
        return str(refused.value)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_workers_of_celery_start_follow_approve_and_recover(kind, tmp_path, store_recipe):
    need(["celery", "redis"])
    _, (broker,), _ = store_recipe("redis", "broker")
    write_files(tmp_path, store_recipe(kind, "lives"))
    workers = Workers(tmp_path, "prefork", broker)
    try:
        go_through(workers)
    finally:
        workers.app.close()


def test_a_notebook(tmp_path):
    need(["ipykernel"])
    write_files(tmp_path)
    (cell,) = (block.code for block in pages.blocks_of(PAGE) if "AsyncExitStack" in block.code)
    shown = notebook(
        [
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from desk import desk",
            cell,
            "await stack.aclose()",
        ],
        tmp_path,
    )
    assert "INTERRUPTED" in shown[1].upper(), shown
    assert shown[0] == shown[2] == ""


def test_a_test_with_pytest_asyncio(tmp_path):
    need(["pytest_asyncio"])
    write_files(tmp_path)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_desk.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_forks(tmp_path):
    write_files(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "forks.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{['interrupted'] * 4}\n"), done.stderr
    assert "Traceback" not in done.stderr, done.stderr


def test_events_are_streamed_to_the_end(tmp_path):
    """The page's one stream: it shows that the run waits, stays open, and ends with the run."""
    need(["fastapi", "uvicorn"])
    write_files(tmp_path)
    server = Server(tmp_path, SERVERS["fastapi"][1])
    server.start()
    try:
        server.begin("a")
        with httpx.stream(
            "GET", f"http://127.0.0.1:{server.port}/runs/a/events", timeout=30
        ) as stream:
            kinds = []
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    kinds.append(line.removeprefix("event: "))
                    if kinds[-1] == "interrupted":
                        server.approve(wait_for(server, "a", "interrupted")["waiting"][0])
        assert kinds == ["interrupted", "message", "end"]
    finally:
        server.end()
