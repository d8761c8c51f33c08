"""`serve_console`: a server of its own, in a process of its own; and what is wrong with what it is
given.
"""

import asyncio
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from offbook.runtime import ActorSystem, MemoryStore, Runner, SQLiteStore, UsageError
from offbook.runtime.console import serve_console
from offbook.runtime.console.serving import _Served
from tests.doubles.console import desk, runner_of

PROGRAM = Path(__file__).parents[2] / "programs" / "console_server.py"


class Served:
    """The program, until it is told to end."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = self.process.stdout.readline()
        self.address = re.search(r"http://\S+", said).group()
        self.base, _, self.token = self.address.partition("#token=")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    async def log_in(self, client):
        """As the page does."""
        said = await client.post(
            f"{self.base}login",
            json={"token": unquote(self.token)},
            headers={"Origin": self.base.rstrip("/")},
        )
        assert said.status_code == 204

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=20)


def test_it_says_where_it_is_and_ctrl_c_ends_it_while_a_page_looks_on(tmp_path, run):
    with Served(tmp_path / "runs.db", "agent") as served:

        async def look():
            async with httpx.AsyncClient() as client:
                page = await client.get(served.address)
                assert page.status_code == 200
                await served.log_in(client)
                base = served.base
                said = await client.post(
                    f"{base}api/session/say",
                    json={"id": "s", "text": "q"},
                    headers={"Origin": base.rstrip("/")},
                )
                assert '"status":"completed"' in said.text
                runs = (await client.get(f"{base}api/runs")).json()["runs"]
                assert [one["session_id"] for one in runs] == ["s"]
                await client.get(f"{base}api/stats", headers={"Authorization": "Bearer x"})
                return runs

        run(look())
        out, err = served.end()
    assert "ended" in out
    assert err == ""
    assert re.fullmatch(r"[\w-]{32}", served.token)


def test_with_a_store_alone_runs_of_all_agents_are_looked_at(tmp_path, run):
    async def play():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            for name in ("One", "Two"):
                await runner_of(desk("hello", name=name), store).query("q", run_id=name)

    run(play())
    with Served(tmp_path / "runs.db", "look", "a token") as served:

        async def look():
            async with httpx.AsyncClient() as client:
                base = served.base
                await served.log_in(client)
                agents = (await client.get(f"{base}api/agents")).json()
                runs = [one["id"] for one in (await client.get(f"{base}api/runs")).json()["runs"]]
                events = (await client.get(f"{base}api/run/events", params={"id": "Two"})).text
                tried = await client.post(
                    f"{base}api/try", json={"text": "q"}, headers={"Origin": base.rstrip("/")}
                )
                return agents["agent"], runs, events, tried

        agent, runs, events, tried = run(look())
        served.end()
    assert (agent, runs) == (None, ["Two", "One"])
    assert '"text":"hello"' in events
    assert tried.status_code == 400
    assert "no definition" in tried.json()["error"]


class Plain:
    """A store that keeps values and knows of no list."""

    def get(self, key):
        return None

    def set(self, key, value):
        pass


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        (None, {}, "has nothing to show"),
        ("agents.py:agent", {}, "needs a Runner or an agent, got the string"),
        (7, {}, "needs a Runner, an agent, or None, got 7"),
        (None, {"store": "runs.db"}, "store must be a store, got the string"),
        (None, {"store": Plain()}, "Plain"),
        (
            Runner(desk(), store=MemoryStore()),
            {"store": MemoryStore()},
            "the Runner has its own store",
        ),
        (desk(), {"port": 70_000}, "0 to 65535"),
        (desk(), {"port": True}, "0 to 65535"),
        (desk(), {"token": " "}, "console_app(auth=) must be a token or a function"),
        (desk(), {"host": "no.such.host.invalid", "token": "t"}, "no.such.host.invalid"),
    ],
)
def test_what_cannot_be_served_is_named_before_anything_is_bound(target, options, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        serve_console(target, **options)


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{number}: that address cannot be used"):
            serve_console(desk(), port=number)


def test_a_system_that_was_made_beside_the_runner_in_a_file_lives_as_long_as_the_server(run):
    async def main():
        system = ActorSystem("shop")
        runner = runner_of(desk("hello"), system=system)
        async with _Served(runner, None, "a token", only_loopback=True).opened():
            status = (await runner.query("q")).status
        return status, system.state.value

    assert run(main()) == ("completed", "stopped")


def test_streams_that_pages_look_at_end_with_the_server(run):
    """A server need not wait for them."""
    from offbook.runtime.console.desk import Desk

    async def main():
        runner = runner_of(desk("hello"))
        await runner.query("q", run_id="r")
        feeds = Desk(runner).feeds
        stream = feeds.stream(runner.attach("unknown-yet"), name_first=True)
        first = await anext(stream)
        rest = asyncio.ensure_future(anext(stream))
        feeds.close()
        last = await rest
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        return first, last

    first, last = run(main())
    assert b"event: run" in first
    assert b"event: closed" in last or b"event: problem" in last
