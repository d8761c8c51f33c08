"""What a run waits for, asked in the terminal: approvals, and whatever else an agent or a tool wants to know.

Owns: how an answer is asked for, and what a line that the user writes means. It must never answer by itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..data.interrupt import InterruptContext
from ..errors import UsageError
from .terminal.event_view import call_text
from .terminal.screen import Screen, one_line

__all__ = ["Ask", "answer_of", "ask_all", "denied", "given_answer", "is_approval", "question_of"]

Ask: TypeAlias = Callable[[str], str]
"""Shows a question, and returns the line that the user writes."""

_YES: Final = frozenset(("y", "yes"))
_NO: Final = frozenset(("n", "no"))
_CHANGE: Final = frozenset(("e", "edit"))


def is_approval(info: object) -> bool:
    """Whether a tool call waits to be approved."""
    return hasattr(info, "check_answer") and hasattr(info, "tool_name") and hasattr(info, "arguments")


def question_of(context: InterruptContext, most: int) -> str:
    """What is asked, in one line, and by whom."""
    who = next((step.name for step in reversed(context.address) if step.kind == "agent"), "the run")
    info: Any = context.info
    if is_approval(info):
        return f"{who} wants to call {call_text(info.tool_name, info.arguments, most)}"
    return f"{who} asks: {one_line(info if isinstance(info, str) else repr(info), most)}" if info is not None else f"{who} waits for an answer"


def ask_all(contexts: Iterable[InterruptContext], screen: Screen, ask: Ask) -> dict[str, object]:
    """The answers to all of them, by the ids of the interrupts."""
    return {context.id: _asked(context, screen, ask) for context in contexts}


def _asked(context: InterruptContext, screen: Screen, ask: Ask) -> object:
    info: Any = context.info
    screen.say(question_of(context, max(20, screen.width - 30)), "bold yellow")
    if not is_approval(info):
        return answer_of(info, ask("answer> "))
    while True:
        line = ask("yes, no, why not, or e to change it> ").strip()
        if line.lower() in _CHANGE:
            screen.say(info.arguments)
            line = ask("arguments as JSON> ").strip()
            try:
                return _of_approvals(info).Approve(arguments=json.loads(line))
            except ValueError as error:
                screen.say(f"that is no JSON: {error}", "red")
                continue
        if line:
            return answer_of(info, line)


def answer_of(info: object, line: str) -> object:
    """What a line means as an answer to that: for an approval yes, no, or the reason why not; else JSON if it is an object or a list, and else the text."""
    text = line.strip()
    if is_approval(info):
        word = text.lower().rstrip(".!")
        return True if word in _YES else False if word in _NO else denied(info, text)
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return line
    return line


def denied(info: object, reason: str) -> object:
    """A denial, with what the model is told."""
    return _of_approvals(info).Deny(reason)


def _of_approvals(info: object) -> Any:
    """Where the answers are defined to what waits to be approved: beside it, in `understudy.actors`, which this room does not import."""
    return sys.modules[type(info).__module__]


def given_answer(contexts: tuple[InterruptContext, ...], data: str | None, *, yes: bool, no: str | None) -> Mapping[str, object] | None:
    """The answers that the options of a command give; None, if they give none."""
    if data is None and not yes and no is None:
        return None
    if sum((data is not None, yes, no is not None)) > 1:
        raise UsageError("--data, --yes and --no: give one of them.")
    found: dict[str, object] = {}
    for context in contexts:
        if (yes or no is not None) and not is_approval(context.info):
            msg = f"--yes and --no are for approvals; {question_of(context, 80)}: give --data."
            raise UsageError(msg)
        found[context.id] = True if yes else (denied(context.info, no) if no else False) if no is not None else _parsed(context.info, data or "")
    return found


def _parsed(info: object, data: str) -> object:
    if is_approval(info):
        return answer_of(info, data)
    try:
        return json.loads(data)
    except ValueError:
        return data
