"""Diffs as models write them.

Owns: `apply_diff`: lines with `+`, `-` or a blank before them, in sections that `@@` begins. It must never guess: what does not fit is refused.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["apply_diff"]


def apply_diff(input: str, diff: str, mode: Literal["default", "create"] = "default") -> str:
    """The text, changed as the diff says. `"create"`: a new text, all of whose lines have a `+`."""
    newline = "\r\n" if "\r\n" in (input or diff) else "\n"
    lines = diff.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if mode == "create":
        if wrong := next((line for line in lines if not line.startswith("+")), None):
            msg = f"Invalid Add File Line: {wrong}"
            raise ValueError(msg)
        return newline.join(line[1:] for line in lines)
    text = input.replace("\r\n", "\n").split("\n")
    made: list[str] = []
    place = 0
    for anchor, old, new, at_end in _sections(lines):
        start = place
        if anchor:
            found = _find(text, [anchor], place)
            if found < 0:
                msg = f"Invalid Context {place}:\n{anchor}"
                raise ValueError(msg)
            start = found + 1
        at = _find(text, old, max(start, len(text) - len(old)) if at_end else start)
        at = _find(text, old, start) if at < 0 else at
        if at < 0:
            msg = f"Invalid Context {start}:\n" + "\n".join(old)
            raise ValueError(msg)
        made += [*text[place:at], *new]
        place = at + len(old)
    return newline.join([*made, *text[place:]])


def _sections(lines: list[str]) -> list[tuple[str, list[str], list[str], bool]]:
    """Each section: the line that it is behind, what stands there, what is to stand there, and whether that is the end."""
    found: list[tuple[str, list[str], list[str], bool]] = []
    anchor, old, new, at_end = "", [], [], False  # type: str, list[str], list[str], bool
    for line in lines:
        if line.startswith("@@"):
            if old or new:
                found.append((anchor, old, new, at_end))
            anchor, old, new, at_end = line[2:].strip(), [], [], False
        elif line == "*** End of File":
            at_end = True
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith(" ") or not line:
            old.append(line[1:])
            new.append(line[1:])
        else:
            msg = f"Invalid Line:\n{line}"
            raise ValueError(msg)
    if old or new:
        found.append((anchor, old, new, at_end))
    return found


def _find(text: list[str], lines: list[str], start: int) -> int:
    """Where these lines stand: exactly, or but for blanks at their ends. -1, if they do not."""
    if not lines:
        return start
    for same in (str, str.rstrip, str.strip):
        wanted = [same(line) for line in lines]
        for at in range(start, len(text) - len(lines) + 1):
            if [same(line) for line in text[at : at + len(lines)]] == wanted:
                return at
    return -1
