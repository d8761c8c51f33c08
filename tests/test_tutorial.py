"""docs/tutorial.md: its tests pass, and its service answers what the page says, before it is killed and after."""

import itertools
import re
import shlex
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tests import pages

PAGE = pages.ROOT / "docs" / "tutorial.md"
SHELL = re.compile(r"```sh\n(?P<said>.*?)```\n(?:```text\n(?P<output>.*?)```\n)?", re.DOTALL)
PORT = "8000"  # that of the page
INTERRUPT = re.compile(r"[0-9a-f]{24}\.ada-2")
SHOWN = INTERRUPT.search(PAGE.read_text()).group()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def folder(tmp_path):
    for name, code in pages.files_of(PAGE).items():
        (tmp_path / name).write_text(code)
    return tmp_path


class Shell:
    """Does what the page has its reader type, with a free port in place of the page's."""

    def __init__(self, folder):
        self.folder = folder
        self.service = None
        self.interrupt = None  # the one that waits; the page shows another id
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = str(found.getsockname()[1])

    def type(self, line):
        words = shlex.split(INTERRUPT.sub(self.interrupt or "", line.replace(PORT, self.port)))
        match words:
            case ["uvicorn", *options, "&"]:
                command = [sys.executable, "-W", "error", "-m", "uvicorn", *options]
                self.service = subprocess.Popen(
                    command, cwd=self.folder, env=pages.environment(), stdout=subprocess.DEVNULL
                )
                self.wait_until_it_answers()
            case ["kill", "-9", "%1"]:
                self.service.kill()
                self.service.wait()
            case ["wc", "-l", "<", name]:
                return str(len((self.folder / name).read_text().splitlines()))
            case ["curl", *options, address]:
                return self.ask(options, f"http://{address}")
            case _:
                raise AssertionError(line)
        return None

    def ask(self, options, address):
        headers = [
            value.partition(": ") for option, value in itertools.pairwise(options) if option == "-H"
        ]
        method = "POST" if "POST" in options else "GET"
        text = httpx.request(
            method, address, headers={name: value for name, _, value in headers}, timeout=60
        ).text
        if found := INTERRUPT.search(text):
            self.interrupt = found.group()
        return INTERRUPT.sub(SHOWN, text)

    def wait_until_it_answers(self):
        """Asking is the only way to learn that a server has begun to listen."""
        until = time.monotonic() + 120
        while self.service.poll() is None:
            try:
                assert httpx.get(f"http://localhost:{self.port}/health", timeout=60).json() is True
            except httpx.TransportError:
                assert time.monotonic() < until
                time.sleep(0.1)
            else:
                return
        raise AssertionError(self.service.returncode)


def test_its_tests_pass(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_support.py"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=pages.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_its_service_answers_what_the_page_says_and_loses_nothing_when_it_is_killed(folder):
    """In the folder in which its programs were tried before, as a reader does."""
    for block in pages.blocks_of(PAGE):
        if block.mark is None:
            done = pages.call(block.code, folder)
            assert (done.returncode, done.stderr, done.stdout) == (0, "", block.output)
    shell = Shell(folder)
    try:
        streamed = []
        for block in SHELL.finditer(
            PAGE.read_text()[PAGE.read_text().index("Start it, and act as a customer") :]
        ):
            answers = [shell.type(line) for line in block["said"].splitlines()]
            if block["output"] is None:
                streamed += answers
            else:
                assert [answer for answer in answers if answer is not None] == block[
                    "output"
                ].splitlines()
        (events,) = streamed
        assert re.findall(r"^id: (\d+)$", events, re.MULTILINE) == ["6"]
        assert "event: end" in events
        shell.service.terminate()
        assert shell.service.wait(60) in (0, -15)
    finally:
        if shell.service is not None and shell.service.poll() is None:
            shell.service.kill()
            shell.service.wait()
