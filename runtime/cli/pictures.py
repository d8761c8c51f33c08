"""`offbook graph` and `offbook timeline`: pictures of agents and of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ..errors import UsageError
from ..observe.graph import Graph, graph
from ..observe.timeline import Timeline, timeline_of
from ..runner import Runner
from .kept import looked
from .loading import load
from .terminal.screen import Screen

__all__ = ["draw_graph", "draw_timeline"]

_GRAPHS: Final[Mapping[str, Callable[[Graph], str]]] = {
    "text": Graph.text,
    "mermaid": Graph.mermaid,
    "svg": Graph.svg,
}
_TIMELINES: Final[Mapping[str, Callable[[Timeline], str]]] = {
    "svg": Timeline.svg,
    "html": Timeline.html,
}
_ENDINGS: Final[Mapping[str, str]] = {
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".txt": "text",
}


def draw_graph(target: str, form: str | None, output: str | None) -> int:
    """Draw the tree of agents."""
    found = load(target)
    chosen = _form(form, output, ("text", *_GRAPHS))
    if not hasattr(found, "sub_agents") and not hasattr(found, "query"):
        msg = (
            f"{target} must be an agent or a Runner, got {found!r:.60}. Name one, as in "
            "agents.py:weather."
        )
        raise UsageError(msg)
    picture = graph(found)
    _write(picture.text() if chosen == "text" else _GRAPHS[chosen](picture), output)
    return 0


def draw_timeline(store: str | None, run_id: str, form: str | None, output: str | None) -> int:
    """Draw a run over time."""
    chosen = _form(form, output, ("text", *_TIMELINES))

    async def work(runner: Runner) -> int:
        picture = timeline_of(await runner.life(run_id))
        screen = Screen()
        _write(
            picture.text(screen.width, ascii=screen.is_plain and output is None)
            if chosen == "text"
            else _TIMELINES[chosen](picture),
            output,
        )
        return 0

    return looked(store, work)


def _form(form: str | None, output: str | None, known: tuple[str, ...]) -> str:
    """Return the output format: from `--form`, or the suffix of the file."""
    ending = Path(output).suffix.lower() if output else ""
    endings = [one for one, of in _ENDINGS.items() if of in known]
    if form is None and ending and ending not in endings:
        msg = (
            f"--output {output}: no format has the suffix {ending}. Use {', '.join(endings)}, or "
            "pass --form."
        )
        raise UsageError(msg)
    chosen = form or _ENDINGS.get(ending, "text")
    if chosen not in known:
        msg = f"--form must be one of {', '.join(dict.fromkeys(known))}, got {chosen}."
        raise UsageError(msg)
    return chosen


def _write(text: str, output: str | None) -> None:
    if output is None:
        Screen().say(text)
        return
    try:
        Path(output).write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")
    except OSError as error:
        msg = f"--output {output}: {error.strerror or error}."
        raise UsageError(msg) from error
