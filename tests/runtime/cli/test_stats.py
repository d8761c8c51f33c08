"""`offbook stats` and `offbook console`: a running service through its console's address."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from offbook.runtime.cli.live_stats import stats_lines
from tests.doubles.commands import command

__all__ = ["command"]

STATS = {
    "system": {
        "name": "shop",
        "state": "running",
        "actors": 1234,
        "by_class": {"AgentActor": 1200, "RunSupervisor": 34},
        "queued": 5,
        "deepest": [["/shop/slow", 4], ["/shop/idle", 0]],
        "handled": 98_765,
        "handled_per_second": 120.4,
        "restarts": 1,
        "dead_letters": 2,
        "slowest_handler": {"actor": "/shop/slow", "handler": "on_receive", "seconds": 0.25},
    },
    "runs": {"running": 3, "interrupted": 50, "failed": 0},
    "more": ["interrupted"],
}


@pytest.fixture
def service():
    """A server that speaks as a console does, and what it was asked."""
    asked = []

    class Console(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            if self.path == "/away/api/stats":
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                return
            is_in = self.headers.get("Authorization") == "Bearer t0k"
            body = json.dumps(STATS if is_in else {}).encode()
            self.send_response(404 if self.path != "/console/api/stats" else 200 if is_in else 403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Console)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_address_that_the_console_has_shown_is_all_that_is_needed(command, service):
    address, asked = service
    done = command("stats", f"{address}/console/#token=t0k")
    assert done.stdout.splitlines() == [
        "shop: running, 1,234 actors, 5 messages queued",
        "handled 98,765 (120 per s), restarts 1, dead letters 2",
        "runs: 3 running, 50+ interrupted",
        "actors: 1,200 AgentActor, 34 RunSupervisor",
        "  4 queued at /shop/slow",
        "slowest: on_receive of /shop/slow blocked the loop for 250 ms",
    ]
    assert asked == [("/console/api/stats", "Bearer t0k")]


def test_json_is_what_the_service_says(command, service):
    assert (
        json.loads(command("stats", f"{service[0]}/console", "--token", "t0k", "--json").stdout)
        == STATS
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/console/#token=wrong", "requires the console's token"),
        ("/other#token=t0k", "has no console"),
        ("/away#token=t0k", "302"),
    ],
)
def test_what_is_wrong_with_an_address_is_one_line(command, service, path, said):
    done = command("stats", service[0] + path)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert said in done.stderr
    assert "t0k" not in done.stderr


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:1", "does not answer"),
        ("ftp://here", "ADDRESS must be the address of a console"),
    ],
)
def test_an_address_that_is_none_is_one_line(command, address, said):
    done = command("stats", address)
    assert done.exit_code == 1
    assert said in done.stderr


def test_no_line_is_wider_than_the_terminal():
    system = {**STATS["system"], "deepest": [["/a/very/long/path" * 10, 7]]}
    assert max(map(len, stats_lines({"system": system}, 60))) <= 60


def test_the_console_wants_its_store(command):
    done = command("console", "--token-env", "NO_SUCH_VARIABLE")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    done = command("console", "--store", "nowhere.db")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
