"""`offbook demo`: a team whose process is killed while it runs; and the examples, with canned
replies.

The agents of the demo run in separate processes, one of which is really killed (SIGKILL), and their
output is shown unchanged. No key and no network are used.
"""

from __future__ import annotations

import ast
import importlib.resources
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..codec.packing import unpack
from ..data.events import AgentEvent, Interrupted
from ..errors import OffbookError, UsageError
from ..observe.timeline import timeline_of
from ..runner import Runner
from .answers import question_of
from .kept import looked
from .loading import import_agents
from .terminal.event_view import EventView
from .terminal.screen import Screen

__all__ = ["list_demos", "play_demo"]

_WORKER: Final = "offbook.actors.demo.worker"
_DEFAULT: Final = "trip"
_PACKED: Final = "examples.json"
_ABOUT: Final = (
    "a router, three concurrent agents, an approval; its process is killed, and another "
    "one continues the run"
)
_HELPERS: Final = frozenset(("models", "show", "serving", "swarm_client"))
_NO_KEYS: Final[Mapping[str, str]] = dict.fromkeys(
    ("OPENAI_API_KEY", "OPENAI_MODEL", "ARK_API_KEY", "ARK_CHAT_MODEL", "MODEL_TYPE"), ""
)
_STANDS_ON: Final[Mapping[str, str]] = {
    "offbook.runtime.a2a": "a2a",
    "offbook.actors.realtime": "websockets",
}
"""The dependencies that packages of this project import when they are used."""
_EXTRAS: Final[Mapping[str, str]] = {
    "a2a": "a2a",
    "uvicorn": "a2a",
    "starlette": "a2a",
    "websockets": "realtime",
}
"""The extra that installs each package."""
_DONE_BEFORE_THE_KILL: Final = 2
"""How many of the three agents have answered when the process is killed."""


def list_demos() -> int:
    """List the names, with a line about each."""
    screen = Screen()
    found = {
        _DEFAULT: _ABOUT,
        **{name: _about(text) for name, text in _examples().items() if name not in _HELPERS},
    }
    room = max(map(len, found))
    for name, about in found.items():
        screen.write(f"{name:<{room}}  ", "bold")
        text = (
            about
            if not screen.is_terminal or len(about) <= screen.width - room - 2
            else f"{about[: screen.width - room - 3]}…"
        )
        screen.say(text)
    return 0


def play_demo(name: str | None, pace: float = 1.0) -> int:
    """Run the demo of that name."""
    if name is None or name == _DEFAULT:
        return _Trip(pace).play()
    known = _examples()
    if name not in known or name in _HELPERS:
        msg = f"there is no demo named {name}. `offbook demo --list` lists them."
        raise UsageError(msg)
    if missing := sorted(_missing(name, known)):
        extras = sorted({_EXTRAS[one] for one in missing if one in _EXTRAS})
        wanted = [
            *(f"'offbook[{','.join(extras)}]'" for _ in extras[:1]),
            *(one for one in missing if one not in _EXTRAS),
        ]
        msg = (
            f"demo {name} needs {' and '.join(missing)}, which {'are' if missing[1:] else 'is'} "
            f"not installed: pip install {' '.join(wanted)}."
        )
        raise UsageError(msg)
    return _played(name, known)


# --- the examples ---


def _examples() -> dict[str, str]:
    """Return the text of each example and helper: from the repository, or from the package."""
    folder = Path(__file__).resolve().parents[2] / "examples"
    if folder.is_dir():
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    packed = json.loads(
        importlib.resources.files("offbook.actors.demo")
        .joinpath(_PACKED)
        .read_text(encoding="utf-8")
    )
    return {name: "\n".join(lines) for name, lines in packed.items()}


def _missing(name: str, examples: Mapping[str, str]) -> set[str]:
    """Return the missing packages that an example imports, directly or through other examples."""
    found: set[str] = set()
    for node in ast.parse(examples[name]).body:  # imports inside functions may be optional
        modules = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for module in modules:
            package = _STANDS_ON.get(module, module.partition(".")[0])
            if package in examples:
                found |= _missing(package, examples)
            elif package and importlib.util.find_spec(package) is None:
                found.add(package)
    return found


def _about(text: str) -> str:
    return ((ast.get_docstring(ast.parse(text)) or "").splitlines() or [""])[0]


def _played(name: str, examples: Mapping[str, str]) -> int:
    """Run an example in a separate process that has no keys."""
    with tempfile.TemporaryDirectory(prefix="offbook-examples-") as folder:
        for other, text in examples.items():
            Path(folder, f"{other}.py").write_text(text, encoding="utf-8")
        process = subprocess.Popen(  # noqa: S603 -- an example
            [sys.executable, str(Path(folder, f"{name}.py"))], env={**os.environ, **_NO_KEYS}
        )
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()  # the process receives Ctrl-C as well
            raise


# --- the trip ---


@dataclass(frozen=True, slots=True)
class _Said:
    """One line of output of a process."""

    event: AgentEvent | None
    tree: str
    status: str | None


class _Trip:
    def __init__(self, pace: float) -> None:
        import_agents()  # the events contain their types
        self._pace = pace
        self._screen = Screen()
        self._view = EventView(self._screen)
        self._waiting: Interrupted | None = None

    def play(self) -> int:
        with tempfile.TemporaryDirectory(prefix="offbook-demo-") as name:
            folder = Path(name)
            self._say("> Plan me a Saturday in Paris, and book the train.", "bold")
            killed = self._until_killed(folder)
            self._say(
                f"\nprocess {killed} was killed (SIGKILL) in the middle of a call. Each step "
                f"that it has shown is stored in {name}/runs.db.",
                "bold red",
            )
            self._whole(folder, "recover", "continues the run: completed steps are not repeated")
            if self._waiting is not None:
                self._whole(
                    folder, self._answer(self._waiting), "has the answer, and runs the rest"
                )
            return self._told(folder, killed)

    def _until_killed(self, folder: Path) -> int:
        """Run the first process until it is killed. Returns its process id."""
        answered: set[str] = set()
        with self._process(folder, "begin") as process:
            self._say(f"\nprocess {process.pid} starts the run", "bold")
            for said in _lines(process):
                if said.event is None:
                    break
                self._view.show(said.event)
                message = said.event.message
                if message is None or said.event.agent_name == "Router":
                    continue
                if message.tool_calls:
                    self._tree(said.tree)
                elif message.role == "assistant":
                    answered.add(said.event.agent_name)
                if len(answered) == _DONE_BEFORE_THE_KILL:
                    self._view.end()
                    process.kill()
                    process.wait()
                    return process.pid
            raise self._failed(process)

    def _whole(self, folder: Path, part: str, what: str) -> None:
        self._waiting = None
        with self._process(folder, part) as process:
            self._say(f"\nprocess {process.pid} {what}", "bold green")
            for said in _lines(process):
                if said.event is None:
                    return
                self._view.show(said.event)
                if isinstance(said.event.action, Interrupted):
                    self._waiting = said.event.action
            raise self._failed(process)

    def _answer(self, waiting: Interrupted) -> str:
        self._view.end()
        for context in waiting.contexts:
            self._say(
                f"\n{question_of(context, 60)}: the run waits, and its process has ended",
                "bold yellow",
            )
        if sys.stdin is not None and sys.stdin.isatty():
            return "no" if input("approve? [Y/n] ").strip().lower() in ("n", "no") else "yes"
        self._say("approve? [Y/n] y")
        return "yes"

    def _told(self, folder: Path, killed: int) -> int:
        """Show the results: the timeline, and the calls that were made."""
        self._view.end()
        self._say()

        async def draw(runner: Runner) -> int:
            picture = timeline_of(await runner.life("trip-1"))
            self._screen.say(
                picture.text(min(self._screen.width, 110), ascii=self._screen.is_plain)
            )
            return 0

        looked(str(folder / "runs.db"), draw)
        calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
        counts = Counter(call["agent"] for call in calls)
        expected = {"Router": 1, "Weather": 2, "Food": 1, "Sights": 1, "Booker": 2}
        again = sorted(name for name, count in counts.items() if count > expected.get(name, 0))
        lost = (
            f"that of {' and '.join(again)}, in flight when process {killed} was killed, was "
            "made again; all others were made once"
        )
        self._say(f"\n{len(calls)} model calls: {lost if again else 'each was made once'}.", "bold")
        self._say(
            "Its code: offbook.actors.demo.trip. More: offbook demo --list, offbook run "
            "FILE:agent.",
            "dim",
        )
        return 0

    # --- processes ---

    @contextmanager
    def _process(self, folder: Path, part: str) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", _WORKER, str(folder), str(self._pace), part]
        pipes: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        # In a separate session: Ctrl-C goes to the command, which ends the process.
        process = subprocess.Popen(  # noqa: S603 -- its own
            command, text=True, encoding="utf-8", start_new_session=True, **pipes
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def _failed(self, process: subprocess.Popen[str]) -> OffbookError:
        said = (process.communicate()[1] or "").strip().splitlines()
        return OffbookError(
            "the demo's process ended before its run did: "
            f"{said[-1] if said else f'exit code {process.returncode}'}"
        )

    def _say(self, text: str = "", style: str = "") -> None:
        self._view.end()
        self._screen.say(text, style)

    def _tree(self, tree: str) -> None:
        """Show the current actors."""
        self._view.end()
        lines = [f"  │ {line}" for line in tree.splitlines()[1:]]
        if lines:
            self._screen.say("\n".join(["  the actors now", *lines]), "dim")


def _lines(process: subprocess.Popen[str]) -> Iterator[_Said]:
    assert process.stdout is not None
    for line in process.stdout:
        said = json.loads(line)
        event = unpack(b64decode(said["event"])) if "event" in said else None
        if event is not None and not isinstance(event, AgentEvent):
            raise OffbookError(
                "the demo's process wrote output that is not an event. Run it again, and report "
                "this if it repeats."
            )
        yield _Said(event, said.get("tree", ""), said.get("status"))
