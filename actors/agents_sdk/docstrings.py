"""What a docstring says of a function and of its parameters, in the style of Google, NumPy or Sphinx.

Owns: the reading of the three styles. It must never raise, whatever a docstring says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["DocstringStyle", "FuncDocumentation", "read_docstring"]

DocstringStyle: TypeAlias = Literal["google", "numpy", "sphinx"]

_PARAMETERS: Final = ("args", "arguments", "params", "parameters")
_SECTIONS: Final = (
    *_PARAMETERS, "keyword args", "keyword arguments", "other parameters", "other args", "other arguments", "raises", "exceptions", "returns", "yields",
    "receives", "examples", "example", "attributes", "warns", "warnings", "functions", "methods", "classes", "modules", "note", "notes",
)  # fmt: skip
_HEADER: Final = re.compile(r"^([A-Za-z ]+):\s*$")
_ENTRY: Final = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY: Final = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_FIELD: Final = re.compile(r"^:(\w+)\s*([^:]*):\s*(.*)$")


@dataclass
class FuncDocumentation:
    """What a docstring says."""

    name: str
    description: str | None
    param_descriptions: dict[str, str] | None


def read_docstring(name: str, text: str | None, style: DocstringStyle | None = None) -> FuncDocumentation:
    """What a docstring says, in that style, or in the one that it seems to have."""
    if not text:
        return FuncDocumentation(name, None, None)
    read = {"google": _google, "numpy": _numpy, "sphinx": _sphinx}[style or _style_of(text)]
    said, parameters = read(text.splitlines())
    description = "\n".join(said).strip() or None
    found = {key.lstrip("*"): "\n".join(lines).strip() for key, lines in parameters.items()}
    return FuncDocumentation(name, description, found or None)


def _style_of(text: str) -> DocstringStyle:
    scores: dict[DocstringStyle, int] = {
        "sphinx": _count(text, r"^:param\s", r"^:type\s", r"^:return:", r"^:rtype:"),
        "numpy": _count(text, r"^Parameters\s*\n\s*-{3,}", r"^Returns\s*\n\s*-{3,}", r"^Yields\s*\n\s*-{3,}"),
        "google": _count(text, r"^(Args|Arguments):", r"^(Returns):", r"^(Raises):"),
    }
    best = max(scores.values())
    return next((style for style, score in scores.items() if score == best), "google") if best else "google"


def _count(text: str, *patterns: str) -> int:
    return sum(bool(re.search(pattern, text, re.MULTILINE)) for pattern in patterns)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    said: list[str] = []
    parameters: dict[str, list[str]] = {}
    index, in_text = 0, True
    while index < len(lines):
        header = _HEADER.match(lines[index])
        begins = header is not None and header[1].strip().lower() in _SECTIONS and index + 1 < len(lines) and lines[index + 1][:1].isspace()
        known = header is not None and header[1].strip().lower() in _PARAMETERS
        if header is None or not begins or not (known or index == 0 or not lines[index - 1].strip()):
            if in_text:
                said.append(lines[index])
            index += 1
            continue
        block = []
        index += 1
        while index < len(lines) and (not lines[index].strip() or lines[index][:1].isspace()):
            block.append(lines[index])
            index += 1
        if known:
            parameters.update(_entries(block))
        in_text = in_text and not any(line.strip() for line in said)
    return said, parameters


def _entries(block: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    level = min((_indent(line) for line in block if line.strip()), default=0)
    current: list[str] | None = None
    for line in block:
        entry = _ENTRY.match(line.strip()) if line.strip() and _indent(line) == level else None
        if entry is not None:
            current = found[entry[1]] = [entry[2]]
        elif current is not None and line.strip():
            current.append(line.strip())
    return found


def _numpy(lines: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    said: list[str] = []
    parameters: dict[str, list[str]] = {}
    section: str | None = None
    current: list[list[str]] = []
    for index, line in enumerate(lines):
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        if line.strip() and not line[:1].isspace() and len(following) > 2 and set(following) == {"-"}:  # noqa: PLR2004 -- a line of dashes
            section, current = line.strip().lower(), []
        elif section is None:
            said.append(line)
        elif section in _PARAMETERS and not (line.strip() and set(line.strip()) == {"-"}):
            entry = _NUMPY_ENTRY.match(line) if line[:1].strip() else None
            if entry is not None:
                current = [parameters.setdefault(one.strip(), []) for one in entry[1].split(",")]
            elif line.strip():
                for one in current:
                    one.append(line.strip())
    return said, parameters


def _sphinx(lines: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    said: list[str] = []
    parameters: dict[str, list[str]] = {}
    current: list[str] | None = said
    for line in lines:
        field = _FIELD.match(line)
        if field is None:
            if current is said:
                said.append(line)
            elif current is not None and line.strip():
                current.append(line.strip())
        elif field[1] in ("param", "parameter", "arg", "argument", "key", "keyword") and field[2].strip():
            current = parameters[field[2].split()[-1]] = [field[3]]
        else:
            current = None
    return said, parameters
