"""`understudy run`: a conversation with an agent in the terminal, or one message and its answer.

Owns: what is asked of the user, what a run is begun with, and what the command ends with. It must never lose what was said: Ctrl-C cancels a turn, and the
session goes on.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from ..data.chat import new_id
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError
from ..observe.event_json import event_json
from ..runner import Runner
from .answers import ask_all, given_answer, question_of
from .loading import load
from .stores import chosen_address, store_at
from .terminal.event_view import EventView
from .terminal.screen import Screen
from .turns import play

if TYPE_CHECKING:
    from ..data.interrupt import InterruptContext
    from ..run.run import Run
    from ..stores import JournalStore

__all__ = ["CANCELLED", "FAILED", "WAITS", "RunOptionsGiven", "converse", "runner_of", "wanted_target"]

FAILED: Final = 1
WAITS: Final = 3
CANCELLED: Final = 130
_EXIT: Final[Mapping[RunStatus, int]] = {RunStatus.COMPLETED: 0, RunStatus.INTERRUPTED: WAITS, RunStatus.CANCELLED: CANCELLED}
_END: Final = frozenset(("/exit", "/quit"))


@dataclass(frozen=True, slots=True)
class RunOptionsGiven:
    """What the command was given."""

    target: str
    text: str | None = None
    session: str | None = None
    resume: str | None = None
    store: str | None = None
    as_json: bool = False
    data: str | None = None
    yes: bool = False
    no: str | None = None


def converse(options: RunOptionsGiven) -> int:
    """Play it. Returns the exit code."""
    with runner_of(options.target, options.store, keeps=options.session is not None or options.resume is not None) as runner:
        return _Conversation(runner, options).play()


@contextmanager
def runner_of(target: str, address: str | None, *, keeps: bool) -> Iterator[Runner]:
    """A Runner of what the target names, with a store that is closed at the end. `keeps`: it has to be there when the command has ended."""
    found: Any = load(target)
    own: JournalStore | None = None
    is_runner = isinstance(found, Runner)
    if address is not None or (keeps and not (is_runner and found.store is not None)):
        own = store_at(chosen_address(address))
    elif not is_runner or found.store is None:
        own = store_at("memory:")
    agent = found.agent if is_runner else found
    if not hasattr(agent, "sub_agents") or not callable(getattr(agent, "run", None)):
        msg = f"{target} is no agent, but {found!r:.60}: name an agent or a Runner, as in agents.py:weather."
        raise UsageError(msg)
    runner = found if is_runner and own is None else Runner(agent, store=own, durability="step", hooks=found.hooks if is_runner else None)
    system = runner.choose_system()
    try:
        yield runner
    finally:
        if own is not None:
            asyncio.run_coroutine_threadsafe(own.aclose(), system.loop).result(10)


def wanted_target(command: str, run_id: str, target: str | None) -> str:
    """Where the agent is, for a command that plays a run of a store."""
    if target is None:
        msg = f"{command} {run_id}: a store has runs, and no agents. Say where the agent is: understudy {command} {run_id} FILE:agent."
        raise UsageError(msg)
    return target


class _Conversation:
    def __init__(self, runner: Runner, options: RunOptionsGiven) -> None:
        self._runner, self._options = runner, options
        self._screen = Screen()
        self._view = EventView(self._screen)
        self._asks = sys.stdin is not None and sys.stdin.isatty()
        self._is_kept = options.store is not None or options.session is not None or options.resume is not None
        self._session = runner.session(options.session or f"terminal-{new_id()[:8]}", start="last")

    def play(self) -> int:
        options = self._options
        if options.resume is not None:
            result = self._resumed(options.resume)
            if options.text is None or result.status is not RunStatus.COMPLETED:
                return self._exit_code(result)
        if options.text is not None:
            return self._exit_code(self._turn(options.text))
        return self._talk()

    def _exit_code(self, result: RunResult) -> int:
        return _EXIT.get(result.status, FAILED)

    # --- turns ---

    def _turn(self, text: str) -> RunResult:
        return self._play(self._session.query(text, streaming=not self._options.as_json))

    def _resumed(self, run_id: str) -> RunResult:
        """Answer what a run waits for, and play the rest. One that was cancelled goes on where it was."""
        info = self._call(self._runner.info(run_id)) if "@" not in run_id else None
        if info is not None and info.session_id is not None and self._options.session is None:
            self._session = self._runner.session(info.session_id, start="last")
        waiting = () if info is None else info.waiting
        answers = given_answer(waiting, self._options.data, yes=self._options.yes, no=self._options.no)
        if answers is None and waiting:
            if not (self._asks or self._options.text is None) or self._options.as_json:
                raise UsageError(_unanswered(waiting[0]))
            try:
                answers = ask_all(waiting, self._screen, self._ask)
            except EOFError as error:
                raise UsageError(_unanswered(waiting[0])) from error
        checkpoint = run_id if info is None else info.checkpoint_id
        return self._play(self._runner.resume(checkpoint, answers, streaming=not self._options.as_json))

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._runner.choose_system().loop).result()

    def _play(self, run: Run) -> RunResult:
        """One run to its end; where it waits for an answer, the user is asked, if there is one."""
        while True:
            result = play(run, self._show, self._on_cancel)
            self._view.end()
            if result.status is not RunStatus.INTERRUPTED:
                return result
            if self._options.as_json or (self._options.text is not None and not self._asks):
                self._tell_waiting(run, result)
                return result
            try:
                answers = ask_all(result.interrupts, self._screen, self._ask)
            except (EOFError, KeyboardInterrupt):  # the run goes on waiting, and the user does something else
                self._screen.say()
                self._tell_waiting(run, result)
                return result
            run = self._runner.resume(cast("str", run.checkpoint_id), answers, streaming=not self._options.as_json)

    def _show(self, event: AgentEvent) -> None:
        if not self._options.as_json:
            self._view.show(event)
        elif event.delta is None:
            self._screen.stream.write(json.dumps(event_json(event), ensure_ascii=not _is_utf8(self._screen)) + "\n")
            self._screen.stream.flush()

    def _on_cancel(self) -> None:
        self._view.end()
        self._note("cancelling this turn; Ctrl-C again ends the command", "yellow")

    def _tell_waiting(self, run: Run, result: RunResult) -> None:
        for context in result.interrupts:
            self._note(f"waits: {question_of(context, 200)}", "yellow")
        if self._is_kept:
            at = f" --store {self._options.store}" if self._options.store else ""
            self._note(f"answer it: understudy resume {run.id} {self._options.target}{at}")
        else:
            self._note("nothing of it is kept: with --store URL it could be answered later")

    # --- the talk ---

    def _talk(self) -> int:
        if self._asks:
            with suppress(ImportError):  # lines can be edited where it is there
                import readline  # noqa: F401, PLC0415
            self._note(f"{self._runner.agent.name}: say something; Ctrl-C cancels an answer, Ctrl-D ends the conversation", "dim")
        code, is_leaving = 0, False
        while True:
            try:
                text = self._ask("you> ")
            except EOFError:
                if self._asks:
                    self._screen.say()
                break
            except KeyboardInterrupt:
                self._screen.say()
                if is_leaving:
                    code = CANCELLED
                    break
                is_leaving = True
                self._note("Ctrl-C again, or Ctrl-D, ends the conversation", "dim")
                continue
            is_leaving = False
            if text.strip() in _END:
                break
            if text.strip():
                code = self._exit_code(self._turn(text))
        if self._is_kept:
            at = f" --store {self._options.store}" if self._options.store else ""
            self._note(f"to go on: understudy run {self._options.target} --session {self._session.id}{at}", "dim")
        return 0 if self._asks and code != CANCELLED else code

    def _ask(self, prompt: str) -> str:
        """A line of the user's. Raises EOFError at the end of the input."""
        if self._asks:
            sys.stdout.flush()
            return input(prompt)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise EOFError
        line = line.rstrip("\n")
        if not self._options.as_json:
            self._screen.say(f"{prompt}{line}")
        return line

    def _note(self, text: str, style: str = "") -> None:
        """What is no part of the conversation does not stand where its events are read."""
        screen = Screen(sys.stderr) if self._options.as_json or not self._screen.is_terminal else self._screen
        screen.say(text, style)


def _unanswered(context: InterruptContext) -> str:
    return f"{question_of(context, 200)}. Give the answer: --data TEXT, --yes or --no REASON."


def _is_utf8(screen: Screen) -> bool:
    return not screen.is_plain
