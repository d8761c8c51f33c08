"""A result for a notebook: the run's status, and its messages, folded.

All texts of users, models and tools are escaped.
"""

from __future__ import annotations

from html import escape
from typing import Final

from ..data.events import AgentEvent
from ..data.run_result import RunResult
from .svg import shortened

__all__ = ["html_of_result"]

_MOST: Final = 500
_LONGEST_LINE: Final = 110
_LONGEST: Final = 20_000
_COLOURS: Final = {
    "completed": "#2e7d4f",
    "interrupted": "#b3731c",
    "failed": "#c93b3b",
    "cancelled": "#c93b3b",
    "stuck": "#c93b3b",
    "drained": "#69788a",
}


def html_of_result(result: RunResult) -> str:
    """Return the whole HTML fragment."""
    usage = result.usage
    facts = [f"{len(result.events):,} events"]
    if usage.requests:
        facts.append(
            f"{usage.requests:,} model calls, {usage.input_tokens:,} tokens in, "
            f"{usage.output_tokens:,} out"
        )
    colour = _COLOURS.get(result.status.value, "inherit")
    last = f" by {escape(result.last_agent)}" if result.last_agent else ""
    head = (
        f'<b style="color:{colour}">{escape(result.status.value)}</b>{last} '
        f"<small>({escape('; '.join(facts))})</small>"
    )
    said = "" if result.final_message is None else _block(result.final_message.text)
    error = "" if result.error is None else _block(f"{type(result.error).__name__}: {result.error}")
    infos = [
        (escape(shortened(repr(context.info), _LONGEST_LINE)), escape(context.id))
        for context in result.interrupts
    ]
    waits = "".join(f"<div>waits: {info} <code>{name}</code></div>" for info, name in infos)
    events = "".join(_event(event) for event in result.events[:_MOST])
    more = (
        f"<div>… and {len(result.events) - _MOST:,} more</div>"
        if len(result.events) > _MOST
        else ""
    )
    folded = (
        f"<details><summary>messages and events</summary>{events}{more}</details>" if events else ""
    )
    return f"<div>{head}{said}{error}{waits}{folded}</div>"


def _event(event: AgentEvent) -> str:
    line = str(event)
    summary = escape(shortened(line, _LONGEST_LINE))
    message = event.message
    text = (
        line
        if message is None
        else "\n".join(
            [message.text, *(f"{call.name}({call.arguments})" for call in message.tool_calls)]
        ).strip()
    )
    if "\n" not in text and len(line) <= _LONGEST_LINE:
        return f'<div style="margin-left:1em">{summary}</div>'
    return f'<details style="margin-left:1em"><summary>{summary}</summary>{_block(text)}</details>'


def _block(text: str) -> str:
    if not text:
        return ""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"
    return f'<pre style="white-space:pre-wrap;margin:.3em 0 .3em 1em">{escape(shown)}</pre>'
