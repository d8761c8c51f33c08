"""Runs, systems and events as JSON for the page.

All forms are bounded: a very long text is truncated, with the number of the remaining characters.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ..data.run_info import RunInfo
from ..observe.event_json import Json, event_json, plain
from ..shown_text import laid_out, visible

if TYPE_CHECKING:
    from ..actor.report import SystemStats
    from ..data.chat import Message
    from ..data.events import AgentEvent
    from ..data.interrupt import InterruptContext
    from ..observe.timeline import Timeline

__all__ = [
    "LONGEST_PAGE",
    "arguments_of",
    "bounded",
    "context_json",
    "event_for_page",
    "message_json",
    "run_json",
    "seen_mark",
    "stats_json",
    "timeline_json",
]

_LONGEST_TEXT: Final = 50_000
_LONGEST_LIST: Final = 1_000
_DEEPEST: Final = 20
_MOST_PARTS: Final = 4_000
LONGEST_PAGE: Final = 20_000
"""Characters of arguments that are shown at once."""


def bounded(value: Json, depth: int = 0) -> Json:
    """Return the value with long parts truncated."""
    if isinstance(value, str):
        return (
            _text(value)
            if len(value) <= _LONGEST_TEXT
            else f"{_text(value[:_LONGEST_TEXT])}… ({len(value) - _LONGEST_TEXT:,} characters more)"
        )
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)  # a browser would round it
    if depth >= _DEEPEST and isinstance(value, list | dict):
        return "…"
    if isinstance(value, list):
        more = len(value) - _LONGEST_LIST
        return [
            *(bounded(one, depth + 1) for one in value[:_LONGEST_LIST]),
            *([f"… ({more:,} more)"] if more > 0 else []),
        ]
    if isinstance(value, dict):
        items = list(value.items())
        found: dict[str, Json] = {
            _text(key[:500]): bounded(one, depth + 1) for key, one in items[:_LONGEST_LIST]
        }
        if len(items) > _LONGEST_LIST:
            found["…"] = f"{len(items) - _LONGEST_LIST:,} more"
        return found
    return value


def _text(value: str) -> str:
    """Return a text without hidden characters, and without lone surrogates, which cannot be
    sent.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        value = value.encode("utf-8", "replace").decode()
    return visible(value.replace("\r\n", "\n"))


def event_for_page(event: AgentEvent) -> dict[str, Json]:
    """Return an event without the bytes of its pictures and files, which the page does not show."""
    found = event_json(event)
    message = found.get("message")
    if isinstance(message, dict):
        _without_data(message)
    shown = bounded(found)
    assert isinstance(shown, dict)
    return shown


def message_json(message: Message, agent: str | None = None) -> dict[str, Json]:
    """Return a message of a conversation."""
    calls: list[Json] = [
        {"id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    found: dict[str, Json] = {"role": message.role, "text": message.text, "tool_calls": calls}
    if message.tool_name is not None:
        found["tool_name"] = message.tool_name
    if agent is not None:
        found["agent"] = agent
    shown = bounded(found)
    assert isinstance(shown, dict)
    return shown


def _without_data(message: dict[str, Json]) -> None:
    parts = message.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and isinstance(data := part.get("data"), str):
            part["data"] = f"({len(data) * 3 // 4:,} bytes)"


def run_json(info: RunInfo, *, is_lost: bool = False) -> dict[str, Json]:
    """Return an entry of the list of runs.

    Times are seconds since 1970. `is_lost`: it is listed as running, but no process works on it.
    """
    usage = info.usage
    return {
        "id": info.id,
        "agent": info.agent,
        "session_id": info.session_id,
        "checkpoint_id": info.checkpoint_id,
        "status": info.status.value,
        "is_lost": is_lost,
        "started": info.started.timestamp(),
        "updated": info.updated.timestamp(),
        "ended": None if info.ended is None else info.ended.timestamp(),
        "attempts": info.attempts,
        "waiting": [context_json(context) for context in info.waiting],
        "last_agent": info.last_agent,
        "error": None if info.error is None else _text(info.error[:2_000]),
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "requests": usage.requests,
        },
        "steps": info.steps,
        "labels": dict(info.labels),
    }


def context_json(context: InterruptContext) -> dict[str, Json]:
    """Return one interrupt of a run.

    `approval`: it can be approved and denied, and its arguments, shown as text on the page, can be
    changed.

    Very long arguments are truncated, and `more` is the number of the remaining characters: they
    must be requested before the call can be approved.
    """
    arguments = arguments_of(context.info)
    return {
        "arguments": arguments[:LONGEST_PAGE],
        "more": max(0, len(arguments) - LONGEST_PAGE),
        "id": context.id,
        "address": [str(step) for step in context.address],
        "info": bounded(plain(context.info)),
        "approval": is_approval(context.info),
    }


def arguments_of(info: Any) -> str:
    """Return the arguments of a call that needs approval, as they are shown.

    They are formatted, to the last digit, and without hidden characters.
    """
    arguments = getattr(info, "arguments", None) if is_approval(info) else None
    return (
        laid_out(arguments or "{}")
        if isinstance(arguments, str)
        else ""
        if arguments is None
        else laid_out(json.dumps(plain(arguments), ensure_ascii=False))
    )


def seen_mark(shown: str) -> str:
    """Return the proof that very long arguments were requested completely.

    The page receives it with the last part, and sends it with an approval.
    """
    return blake2b(shown.encode(), digest_size=16).hexdigest()


def is_approval(info: object) -> bool:
    """Return whether the interrupt defines its own approval and denial."""
    return callable(getattr(info, "approve", None)) and callable(getattr(info, "deny", None))


def stats_json(stats: SystemStats) -> dict[str, Json]:
    """Return the snapshot of a system."""
    slowest = stats.slowest_handler
    both: Any = stats.by_class_and_state
    return {
        "name": stats.name,
        "state": stats.state,
        "actors": stats.actors,
        "by_class": dict(stats.by_class),
        "by_state": dict(stats.by_state),
        "by_class_and_state": [[one, state, count] for (one, state), count in sorted(both.items())],
        "queued": stats.queued,
        "deepest": [[path, depth] for path, depth in stats.deepest],
        "handled": stats.handled,
        "restarts": stats.restarts,
        "dead_letters": stats.dead_letters,
        "slowest_handler": None
        if slowest is None
        else {"actor": slowest.actor, "handler": slowest.handler, "seconds": slowest.seconds},
        "worker_threads": stats.worker_threads,
        "waiting_calls": stats.waiting_calls,
    }


def timeline_json(picture: Timeline) -> dict[str, Json]:
    """Return a run over time, with its latest parts. Times are seconds since 1970."""
    spans = sorted(
        ((span, number) for number, row in enumerate(picture.rows) for span in row.spans),
        key=lambda pair: pair[0].start,
    )
    parts = [(part.start, number, part) for span, number in spans for part in span.parts]
    parts.sort(key=lambda found: found[0])
    told: list[Json] = [
        {
            "row": number,
            "kind": "error" if part.failed else part.kind,
            "name": part.name[:200],
            "note": part.note[:300],
            "from": start,
            "to": end,
        }
        for _, number, part in parts[-_MOST_PARTS:]
        for start, end in picture.at_work(part.start, part.end)
    ]
    at_work: list[Json] = [
        {"row": number, "from": span.start, "to": span.end, "failed": span.failed}
        for span, number in spans[-_MOST_PARTS:]
    ]
    return {
        "start": picture.start,
        "end": picture.end,
        "summary": list(picture.summary()),
        "rows": [{"name": row.name[:200], "depth": row.depth} for row in picture.rows],
        "spans": at_work,
        "parts": told,
        "bands": [
            {"kind": band.kind, "from": band.start, "to": band.end, "text": band.text[:300]}
            for band in picture.bands[-1_000:]
        ],
    }
