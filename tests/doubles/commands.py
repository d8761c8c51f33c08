"""The command `offbook` in a test: called in this process, with agents in a file; or in a process
of its own on a terminal.
"""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from offbook.runtime.cli.commands import app

AGENTS = '''
"""Agents for tests of the command."""

import asyncio

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import MemoryStore, Message, MessageDelta, Runner, ScriptedModel, ToolCalls


@tool
def get_weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


@tool(needs_approval=True)
def book(city: str) -> str:
    """Book a flight."""
    return f"booked {city}"


@tool
def ask_size(context: ToolContext) -> str:
    """Ask."""
    return f"size {context.interrupt('Which size?')}"


def answer(request):
    """By what the user has said last, and by what tools have said since."""
    last, said = request.messages[-1], [one.text for one in request.messages if one.role == "user" and not one.text.startswith("For context")][-1]
    if last.role == "tool":
        return f"So: {last.text}."
    if "weather" in said:
        return ToolCalls(get_weather={"city": "Paris"})
    if "book" in said:
        return ToolCalls(book={"city": "Paris"})
    if "size" in said:
        return ToolCalls(ask_size={})
    if "fail" in said:
        raise ValueError("no luck")
    return f"You said {said}, as number {sum(one.role == 'user' for one in request.messages)}."


class Endless:
    """A model that says words until it is cancelled, if it was told to go on."""

    async def generate(self, request):
        raise AssertionError

    async def stream(self, request):
        yield MessageDelta("begins ")
        while "go on" in request.messages[-1].text:
            await asyncio.sleep(0.01)
            yield MessageDelta("word ")
        yield Message.assistant("begins and ends")


tools = [get_weather, book, ask_size]
agent = ChatModelAgent(name="Clerk", description="helps", model=ScriptedModel([answer] * 50), tools=tools)
endless = ChatModelAgent(name="Endless", model=Endless())
runner = Runner(agent, store=MemoryStore(), durability="step")
bare = Runner(agent)
number = 7
'''


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Call the command in a folder with the agents: `command("run", "clerks.py", "hello")`."""
    (tmp_path / "clerks.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("OFFBOOK_STORE", raising=False)
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_MODEL",
        "ARK_API_KEY",
        "ARK_CHAT_MODEL",
        "MODEL_TYPE",
        "OPENAI_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)

    def call(*args, says=None):
        sys.modules.pop("clerks", None)
        return CliRunner().invoke(app, [str(one) for one in args], input=says)

    return call


# The process takes the terminal, so that Ctrl-C is a signal for it.
_ON_THIS_TERMINAL = """
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("tests.programs.offbook_command", run_name="__main__")
"""


class Terminal:
    """The command in a process of its own, on a terminal of 80 columns."""

    def __init__(self, folder, *args, **env):
        self.master, slave = pty.openpty()
        kept = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_THIS_TERMINAL, *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={
                **kept,
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "TERM": "xterm",
                "COLUMNS": "80",
                **env,
            },
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def until(self, text, seconds=40.0):
        """Read until that was shown since the last call."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} was not shown within {seconds} s:\n{self.shown}"
            try:
                self.shown += os.read(self.master, 65_536).decode("utf-8", "replace")
            except OSError:  # the process has closed it
                raise AssertionError(
                    f"{text!r} was not shown before the end:\n{self.shown}"
                ) from None
        found, self.shown = (
            self.shown[: self.shown.index(text)],
            self.shown[self.shown.index(text) + len(text) :],
        )
        return found

    def type(self, text):
        os.write(self.master, text.encode())

    def interrupt_wait(self):
        """Ctrl-C at a prompt, when its main thread waits there: what comes between the prompt and
        the wait, CPython sees with the next key only.
        """
        while Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            time.sleep(0.001)
        self.type("\x03")

    def ended(self):
        """The exit code."""
        while True:
            try:
                if not os.read(self.master, 65_536):
                    break
            except OSError:
                break
        return self.process.wait(20)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
