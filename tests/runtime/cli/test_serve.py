"""`offbook serve`, as a process of its own: what it serves, and one line for whatever is wrong."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from offbook.runtime import UsageError
from offbook.runtime.a2a import a2a_app
from offbook.runtime.cli.commands import app
from tests.doubles.a2a import ByHand, state_of, text_of
from tests.doubles.agents import PlannedAgent

AGENTS = """
from offbook.actors import Agent, ChatModelAgent
from offbook.runtime import AgentEvent, ScriptedModel
from offbook.runtime.a2a import a2a_app

class Says(Agent):
    async def run(self, input, context):
        yield AgentEvent.say("said " + input.messages[-1].text)

agent = Says(name="says", description="Says it.")
quiet = Says(name="quiet")
app = a2a_app(agent)
number = 7
"""


@pytest.fixture
def agents(tmp_path):
    (tmp_path / "agents.py").write_text(AGENTS)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "raises.py").write_text("raise ValueError('gone\\nwrong')\n")
    return tmp_path


def command(folder, *args, **env):
    return [sys.executable, "-m", "tests.programs.offbook_command", "serve", *args], {
        "cwd": folder,
        "env": {**os.environ, "PYTHONPATH": str(Path.cwd()), **env},
    }


@pytest.fixture
def refused(agents, monkeypatch):
    """The one line that is said of a command that cannot be done."""
    monkeypatch.chdir(agents)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("agents", "broken", "raises"):
        # What the command imports by these names hides, in later tests, packages of the same name.
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)

    def refused(*args):
        done = CliRunner().invoke(app, ["serve", *args])
        assert done.exit_code == 1, done
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        return lines[0]

    return refused


def test_without_its_extra_the_extra_is_named_though_another_one_has_installed_a_part_of_it(
    refused, monkeypatch
):
    # As with the extra mcp alone, which installs sse_starlette and uvicorn, too.
    monkeypatch.setitem(sys.modules, "a2a", None)
    assert refused("agents.py").endswith("pip install 'offbook[a2a]'.")
    with pytest.raises(UsageError, match=r"a2a_app\(\) needs the package a2a-sdk"):
        a2a_app(PlannedAgent("says", []))


def test_what_is_meant_by_a_misspelt_name_is_among_the_names_said(refused):
    assert refused("agents.py:nothing").endswith("It has: agent, app, quiet.")


def test_what_is_wrong_is_one_line(refused):
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for args, said in (
            (("nothing.py",), "file not found"),
            (("no_module_of_that_name",), "file or module not found"),
            (("agents.py:nothing",), "has no 'nothing'"),
            (("agents.py:quiet",), "no description"),
            (("agents.py:number",), "agent must be an agent"),
            (("broken.py",), "nothing_of_that_name"),
            (("raises.py",), "gone wrong"),
            (("agents.py", "--token-env", "NOT_SET"), "NOT_SET: this variable is not set"),
            (("agents.py", "--port", port), "cannot be used"),
            (("agents.py", "--host", "0.0.0.0"), "--token-env"),
            (("agents.py", "--store", "mysql://x"), "--store"),
            (("agents.py:app", "--store", "x.db"), "is already an app"),
        ):
            assert said in refused(*args), args


@pytest.mark.slow
def test_debug_shows_where_an_error_comes_from(agents):
    argv, options = command(agents, "raises.py", "--debug")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=50, check=False, **options)
    assert "Traceback" in done.stderr
    assert done.returncode != 0


@contextlib.contextmanager
def process(folder, *args, **env):
    argv, options = command(folder, *args, "--port", "0", **env)
    server = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    try:
        line = server.stdout.readline()
        assert " is served at " in line, server.stderr.read()
        yield line.split(" is served at ")[1].split(",")[0].removesuffix("/a2a"), server
    finally:
        server.send_signal(signal.SIGINT)
        try:
            _, errors = server.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            raise
        assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", ["agents.py", "agents.py:agent", "agents:agent", "agents.py:app"]
)
def test_an_agent_is_served_from_a_file_or_a_module(run, agents, target):
    async def ask(url):
        async with ByHand(url) as client:
            assert text_of(await client.send("x")) == "said x"

    with process(agents, target) as (url, _):
        run(ask(url))


@pytest.mark.slow
def test_tokens_come_from_the_environment_and_tasks_outlive_the_process(run, agents):
    async def first(url):
        async with ByHand(url) as client:
            assert (await client.http.post("/a2a", json={})).status_code == 401
        async with ByHand(url, {"Authorization": "Bearer secret"}) as client:
            return await client.send("x")

    async def second(url, task):
        async with ByHand(url, {"Authorization": "Bearer secret"}) as client:
            assert state_of(await client.get(task["id"])) == "COMPLETED"

    options = ("agents.py", "--store", "tasks.db", "--token-env", "TOKEN", "--host", "127.0.0.1")
    with process(agents, *options, TOKEN="secret") as (url, _):
        task = run(first(url))
    assert (agents / "tasks.db").exists()
    with process(agents, *options, TOKEN="secret") as (url, _):
        run(second(url, task))


@pytest.mark.slow
def test_ctrl_c_ends_it_also_with_a_stream_open(run, agents):
    (agents / "slow.py").write_text(
        AGENTS.replace(
            'yield AgentEvent.say("said " + input.messages[-1].text)',
            "import asyncio; yield AgentEvent.say('x'); await asyncio.sleep(1e6)",
        )
    )

    async def story(url, server):
        async with ByHand(url) as client:
            async with client.streaming(
                "SendStreamingMessage",
                {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}},
            ) as events:
                await anext(events)
                server.send_signal(signal.SIGINT)
                async for _ in events:
                    pass
            while server.poll() is None:
                await asyncio.sleep(0.05)

    with contextlib.suppress(Exception), process(agents, "slow.py") as (url, server):
        run(story(url, server))
        assert server.returncode is not None
