"""Asks for answers to a run's interrupts in the terminal: approvals, and questions of agents and
tools.

The command never answers by itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..data.interrupt import InterruptContext
from ..errors import UsageError
from ..shown_text import laid_out
from .terminal.event_view import call_text
from .terminal.screen import Screen, clean, one_line

__all__ = [
    "Ask",
    "answer_of",
    "ask_all",
    "denied",
    "given_answer",
    "is_approval",
    "question_lines",
    "question_of",
]

Ask: TypeAlias = Callable[[str], str]
"""Shows a question, and returns the line that the user types."""

_YES: Final = frozenset(("y", "yes"))
_NO: Final = frozenset(("n", "no"))
_MOST_WHO: Final = 200
_CHANGE: Final = frozenset(("e", "edit"))


def is_approval(info: object) -> bool:
    """Return whether a tool call waits for approval."""
    return (
        hasattr(info, "check_answer") and hasattr(info, "tool_name") and hasattr(info, "arguments")
    )


def question_of(context: InterruptContext, most: int) -> str:
    """Return the question, and the name of the agent that asks it, in one line."""
    who = _who(context)
    info: Any = context.info
    if is_approval(info):
        return f"{who} wants to call {call_text(info.tool_name, info.arguments, most)}"
    return (
        f"{who} asks: {one_line(info if isinstance(info, str) else repr(info), most)}"
        if info is not None
        else f"{who} waits for an answer"
    )


def question_lines(context: InterruptContext, width: int) -> list[str]:
    """Return the whole question, and the name of the agent that asks it.

    It is one line if that fits, and each character is unchanged.
    """
    info: Any = context.info
    line = question_of(context, sys.maxsize)
    if not is_approval(info):
        text = info if isinstance(info, str) else repr(info)
        return (
            [line]
            if len(line) <= width or info is None
            else [f"{_who(context)} asks:", *clean(text).split("\n")]
        )
    if len(line) <= width and _is_plain(info.arguments):
        return [line]
    return [
        f"{_who(context)} wants to call {one_line(info.tool_name, width)} with",
        *laid_out(info.arguments or "{}").split("\n"),
    ]


def _who(context: InterruptContext) -> str:
    return one_line(
        next((step.name for step in reversed(context.address) if step.kind == "agent"), "the run"),
        _MOST_WHO,
    )


def _is_plain(arguments: str) -> bool:
    """Return whether a round trip as JSON loses nothing: no duplicate key, and no digit."""
    try:
        given = json.loads(arguments or "{}")
        return arguments in (
            "",
            json.dumps(given, ensure_ascii=False),
            json.dumps(given, ensure_ascii=False, separators=(",", ":")),
        )
    except (ValueError, RecursionError):
        return False


def ask_all(contexts: Iterable[InterruptContext], screen: Screen, ask: Ask) -> dict[str, object]:
    """Ask for all answers. Returns them by the ids of the interrupts."""
    return {context.id: _asked(context, screen, ask) for context in contexts}


def _asked(context: InterruptContext, screen: Screen, ask: Ask) -> object:
    info: Any = context.info
    refused = _paged(question_lines(context, screen.width), screen, ask)
    if not is_approval(info):
        return answer_of(info, ask("answer> "))
    if refused is not None:
        return answer_of(info, refused) if refused.lower() in _NO else denied(info, refused)
    while True:
        line = ask("yes, no, a reason to deny, or e to edit> ").strip()
        if line.lower() in _CHANGE:
            line = ask("arguments as JSON> ").strip()
            try:
                given = json.loads(line)
            except (ValueError, RecursionError) as error:
                screen.say(f"that is not valid JSON: {error}", "red")
                continue
            if not isinstance(given, dict):
                screen.say("the arguments must be a JSON object", "red")
                continue
            # Verbatim, to the last digit.
            return _of_approvals(info).Approve(arguments=line)
        if line:
            return answer_of(info, line)


def _paged(lines: list[str], screen: Screen, ask: Ask) -> str | None:
    """Show the lines, on a terminal a page at a time.

    Returns the line by which the user refused before seeing everything, if so.
    """
    pages = [lines]
    if screen.is_terminal:
        rows = [
            line[start : start + screen.width]
            for line in lines
            for start in range(0, max(1, len(line)), screen.width)
        ]
        room = max(3, screen.height - 2)
        pages = [rows[start : start + room] for start in range(0, len(rows), room)]
    for number, page in enumerate(pages, 1):
        for line in page:
            screen.say(line, "bold yellow" if number == 1 and line is page[0] else "")
        if number < len(pages) and (
            line := ask(
                f"page {number} of {len(pages)}; Enter shows the next one, anything else denies> "
            ).strip()
        ):
            return line
    return None


def answer_of(info: object, line: str) -> object:
    """Parse a line as an answer.

    For an approval: yes, no, or the reason for a denial. Otherwise: JSON if it is an object or a
    list, and else the text.
    """
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


def approves(answer: object) -> bool:
    """Return whether the answer to a call that needs approval may allow it."""
    return answer is True or hasattr(answer, "arguments")


def denied(info: object, reason: str) -> object:
    """Return a denial with a reason for the model."""
    return _of_approvals(info).Deny(reason)


def _of_approvals(info: object) -> Any:
    """Return the module that defines the answers.

    It belongs to `offbook.actors`, which this package does not import.
    """
    return sys.modules[type(info).__module__]


def given_answer(
    contexts: tuple[InterruptContext, ...],
    data: str | None,
    *,
    yes: bool,
    no: str | None,
    is_named: bool = False,
) -> Mapping[str, object] | None:
    """Return the answers from the options of a command; None without any.

    `is_named`: the command has named the interrupt, so the user has seen it.
    """
    if data is None and not yes and no is None:
        return None
    if sum((data is not None, yes, no is not None)) > 1:
        raise UsageError("Pass only one of --data, --yes and --no.")
    found: dict[str, object] = {}
    for context in contexts:
        if (yes or no is not None) and not is_approval(context.info):
            msg = (
                f"--yes and --no answer approvals only. For {question_of(context, 80)}, pass "
                "--data."
            )
            raise UsageError(msg)
        if (
            not is_named
            and is_approval(context.info)
            and (yes or (data is not None and approves(_parsed(context.info, data))))
        ):
            msg = (
                "an approval must name a call that you have inspected. "
                f"{question_of(context, 80)}. Inspect it with `offbook show`, then resume "
                f"{context.id}."
            )
            raise UsageError(msg)
        found[context.id] = (
            True
            if yes
            else (denied(context.info, no) if no else False)
            if no is not None
            else _parsed(context.info, data or "")
        )
    return found


def _parsed(info: object, data: str) -> object:
    if is_approval(info):
        return answer_of(info, data)
    try:
        return json.loads(data)
    except ValueError:
        return data
