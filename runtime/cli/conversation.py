"""`offbook run`: a conversation with an agent in the terminal, or one message and its answer.

Ctrl-C cancels a turn, but the session continues and loses no messages.
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
from ..data.checkpoint_id import checkpoint_of
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..data.well_formed import well_formed
from ..errors import ResumeError, UsageError
from ..observe.event_json import event_json
from ..runner import Runner
from ..shown_text import in_line
from ..stores import MemoryStore
from .answers import ask_all, given_answer, is_approval, question_of
from .loading import load
from .stores import chosen_address, store_at
from .terminal.event_view import EventView
from .terminal.screen import Screen
from .terminal.shell import suggested
from .turns import play

if TYPE_CHECKING:
    from ..data.interrupt import InterruptContext
    from ..data.run_info import RunInfo
    from ..run.run import Run
    from ..stores import JournalStore

__all__ = [
    "CANCELLED",
    "FAILED",
    "WAITS",
    "RunOptionsGiven",
    "converse",
    "runner_of",
    "wanted_target",
]

FAILED: Final = 1
WAITS: Final = 3
CANCELLED: Final = 130
_EXIT: Final[Mapping[RunStatus, int]] = {
    RunStatus.COMPLETED: 0,
    RunStatus.INTERRUPTED: WAITS,
    RunStatus.CANCELLED: CANCELLED,
}
_END: Final = frozenset(("/exit", "/quit"))


@dataclass(frozen=True, slots=True)
class RunOptionsGiven:
    """The options of the command."""

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
    """Run the conversation. Returns the exit code."""
    with runner_of(options.target, options.store) as runner:
        return _Conversation(runner, options).play()


@contextmanager
def runner_of(target: str, address: str | None) -> Iterator[Runner]:
    """Yield a Runner for the target, with the store of that address, its own, or the file in the
    current folder. A store that is opened here is closed at the end.
    """
    found: Any = load(target)
    own: JournalStore | None = None
    is_runner = isinstance(found, Runner)
    agent = found.agent if is_runner else found
    if not hasattr(agent, "sub_agents") or not callable(getattr(agent, "run", None)):
        msg = (
            f"{target} must be an agent or a Runner, got {found!r:.60}. Name one, as in "
            "agents.py:weather."
        )
        raise UsageError(msg)
    if address is not None or not is_runner or found.store is None:
        own = store_at(chosen_address(address))
    runner = (
        found
        if is_runner and own is None
        else Runner(agent, store=own, durability="step", hooks=found.hooks if is_runner else None)
    )
    system = runner.choose_system()
    try:
        yield runner
    finally:
        if own is not None:
            asyncio.run_coroutine_threadsafe(own.aclose(), system.loop).result(10)


def wanted_target(command: str, run_id: str, target: str | None) -> str:
    """Return the agent's location, for a command that runs agents of stored runs."""
    if target is None:
        msg = (
            f"{command} {in_line(run_id)}: the store contains no agents. Pass the agent's file: "
            f"{suggested(command, run_id, 'FILE:agent')}."
        )
        raise UsageError(msg)
    return target


class _Conversation:
    def __init__(self, runner: Runner, options: RunOptionsGiven) -> None:
        self._runner, self._options = runner, options
        self._screen = Screen()
        self._view = EventView(self._screen)
        self._asks = sys.stdin is not None and sys.stdin.isatty()
        self._is_kept = not isinstance(runner.store, MemoryStore)
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
        """Answer the interrupts of a run, and run the rest.

        A cancelled run continues where it was.
        """
        named = checkpoint_of(run_id)  # from an interrupt's id
        info = (
            self._call(
                self._waiting_for(run_id) if named is not None else self._runner.info(run_id)
            )
            if named is not None or "@" not in run_id
            else None
        )
        if info is not None and info.session_id is not None and self._options.session is None:
            self._session = self._runner.session(info.session_id, start="last")
        waiting = (
            ()
            if info is None
            else tuple(one for one in info.waiting if named is None or one.id == run_id)
        )
        answers = given_answer(
            waiting,
            self._options.data,
            yes=self._options.yes,
            no=self._options.no,
            is_named=named is not None,
        )
        if answers is None and waiting:
            if not (self._asks or self._options.text is None) or self._options.as_json:
                raise UsageError(_unanswered(waiting[0]))
            try:
                answers = ask_all(waiting, self._screen, self._ask_now)
            except EOFError as error:
                raise UsageError(_unanswered(waiting[0])) from error
        checkpoint = run_id if info is None else info.checkpoint_id
        return self._play(
            self._runner.resume(checkpoint, answers, streaming=not self._options.as_json)
        )

    async def _waiting_for(self, interrupt_id: str) -> RunInfo:
        for info in await self._runner.pending():
            if any(one.id == interrupt_id for one in info.waiting):
                return info
        msg = (
            f"no run waits for {interrupt_id}: it was answered, or its run has ended. `offbook "
            "runs --status interrupted` lists the runs that wait."
        )
        raise ResumeError(msg)

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._runner.choose_system().loop).result()

    def _play(self, run: Run) -> RunResult:
        """Run to the end; at each interrupt, ask the user, if there is one."""
        while True:
            result = play(run, self._show, self._on_cancel)
            self._view.end()
            if result.status is not RunStatus.INTERRUPTED:
                return result
            # The lines of a pipe are messages: none of them answers a question that nobody has
            # seen.
            if self._options.as_json or not self._asks:
                self._tell_waiting(run, result)
                return result
            try:
                answers = ask_all(result.interrupts, self._screen, self._ask_now)
            except (
                EOFError,
                KeyboardInterrupt,
            ):  # the run keeps waiting, and the user continues
                self._screen.say()
                self._tell_waiting(run, result)
                return result
            run = self._runner.resume(
                cast("str", run.checkpoint_id), answers, streaming=not self._options.as_json
            )

    def _show(self, event: AgentEvent) -> None:
        if not self._options.as_json:
            self._view.show(event)
        elif event.delta is None:
            self._screen.stream.write(
                well_formed(json.dumps(event_json(event), ensure_ascii=not _is_utf8(self._screen)))
                + "\n"
            )
            self._screen.stream.flush()

    def _on_cancel(self) -> None:
        self._view.end()
        self._note("cancelling this turn; Ctrl-C again ends the command", "yellow")

    def _tell_waiting(self, run: Run, result: RunResult) -> None:
        for context in result.interrupts:
            self._note(f"waits: {question_of(context, 200)}", "yellow")
            if self._is_kept and is_approval(context.info):
                self._note(f"       as {context.id}")
        if self._is_kept:
            self._note(
                "answer it: "
                f"{suggested('resume', run.id, self._options.target, store=self._options.store)}"
            )
        else:
            self._note("the run is only in memory; with --store URL, you can answer it later")

    # --- the conversation ---

    def _talk(self) -> int:
        if self._asks:
            with suppress(ImportError):  # enables line editing if available
                import readline  # noqa: F401, PLC0415
            self._note(
                f"{self._runner.agent.name}: type a message; Ctrl-C cancels a reply, Ctrl-D "
                "ends the conversation",
                "dim",
            )
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
                self._note("press Ctrl-C again or Ctrl-D to end the conversation", "dim")
                continue
            is_leaving = False
            if text.strip() in _END:
                break
            if text.strip():
                code = self._exit_code(self._turn(text))
                if code == WAITS and not self._asks:
                    break
        if self._is_kept:
            options = self._options
            command = suggested(
                "run", options.target, session=self._session.id, store=options.store
            )
            self._note(f"to continue: {command}", "dim")
        return 0 if self._asks and code != CANCELLED else code

    def _ask_now(self, prompt: str) -> str:
        """Read a line that was typed after the question appeared, because it must answer it."""
        if self._asks:
            # Not available everywhere, and not for every standard input.
            with suppress(ImportError, OSError, ValueError):
                import termios  # noqa: PLC0415 -- of Unix alone

                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        return self._ask(prompt)

    def _ask(self, prompt: str) -> str:
        """Read a line from the user. Raises EOFError at the end of the input."""
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
        """Write a note, which must not be mixed with the events for a program that reads them."""
        screen = (
            Screen(sys.stderr)
            if self._options.as_json or not self._screen.is_terminal
            else self._screen
        )
        screen.say(text, style)


def _unanswered(context: InterruptContext) -> str:
    return f"{question_of(context, 200)}. Pass the answer: --data TEXT, --yes or --no REASON."


def _is_utf8(screen: Screen) -> bool:
    return not screen.is_plain
