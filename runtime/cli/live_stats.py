"""`offbook stats`: the state of a running service, requested from its console.

The token is sent only to the console's address.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit, urlunsplit

from ..errors import UsageError
from ..observe.timeline_axis import duration_text
from .terminal.screen import Screen, one_line

__all__ = ["StatsOptions", "fetch_stats", "stats_lines", "watch"]

_SECONDS: Final = 10.0
_MOST: Final = 4_000_000
_MOST_CLASSES: Final = 8
_REFUSED: Final = (401, 403)
_MISSING: Final = 404


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """The options of the command."""

    address: str
    token: str | None = None
    every: float = 2.0
    once: bool = False
    as_json: bool = False


def watch(options: StatsOptions) -> int:
    """Show the state: once, or repeatedly until Ctrl-C."""
    screen = Screen()
    if options.as_json:
        while True:
            screen.say(json.dumps(fetch_stats(options)))
            if options.once or not screen.is_terminal:
                return 0
            time.sleep(options.every)
    if options.once or not screen.is_terminal:
        screen.say("\n".join(stats_lines(fetch_stats(options), screen.width)))
        return 0
    from rich.live import Live  # noqa: PLC0415 -- an extra
    from rich.text import Text  # noqa: PLC0415

    with Live(Text(""), auto_refresh=False) as live:
        while True:
            live.update(
                Text("\n".join(stats_lines(fetch_stats(options), screen.width))), refresh=True
            )
            time.sleep(options.every)


def fetch_stats(options: StatsOptions) -> Mapping[str, Any]:
    """Fetch the statistics of the service.

    Raises a `UsageError` that explains a problem with the address.
    """
    parts = urlsplit(options.address if "://" in options.address else f"http://{options.address}")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        msg = (
            f"ADDRESS must be the address of a console, such as "
            f"http://127.0.0.1:8737/#token=..., got {options.address}."
        )
        raise UsageError(msg)
    token = options.token or "".join(parse_qs(parts.fragment).get("token", [])[:1])
    shown = urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/api/stats", "", ""))
    request = urllib.request.Request(  # noqa: S310 -- http(s)
        shown,
        headers={
            "Accept": "application/json",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        },
    )
    try:
        with _opener().open(request, timeout=_SECONDS) as reply:
            found = json.loads(reply.read(_MOST))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in _REFUSED:
            msg = (
                f"stats: {shown} requires the console's token. Pass the whole address that the "
                "console printed, or --token."
            )
        elif error.code == _MISSING:
            msg = f"stats: {shown} has no console (404). Pass the address of the console's page."
        else:
            msg = (
                f"stats: {shown} returned HTTP {error.code} {error.reason}. Check the address "
                "and the log of the console."
            )
        raise UsageError(msg) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        msg = (
            f"stats: {shown} does not answer: {reason}. Check the address, and that the console "
            "is running."
        )
        raise UsageError(msg) from None
    if not isinstance(found, dict) or not isinstance(found.get("system"), dict):
        msg = (
            f"stats: {shown} is not a console of offbook. Pass the address that `offbook "
            "console` printed."
        )
        raise UsageError(msg)
    return found


class _StaysThere(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a token is only sent to the address that the user has passed."""

    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_StaysThere)


def stats_lines(stats: Mapping[str, Any], width: int) -> list[str]:
    """Format the statistics as lines."""
    system, runs = stats["system"], stats.get("runs") or {}
    more = set(stats.get("more") or ())
    rate = system.get("handled_per_second")
    handled = (
        f"handled {system.get('handled', 0):,}{'' if rate is None else f' ({rate:,.0f} per s)'}"
    )
    lines = [
        (
            f"{system.get('name', 'system')}: {system.get('state', '?')}, "
            f"{system.get('actors', 0):,} actors, {system.get('queued', 0):,} messages queued"
        ),
        (
            f"{handled}, restarts {system.get('restarts', 0):,}, dead letters "
            f"{system.get('dead_letters', 0):,}"
        ),
    ]
    counts = [
        f"{count:,}{'+' if name in more else ''} {name}"
        for name, count in runs.items()
        if isinstance(count, int) and count
    ]
    lines.append(f"runs: {', '.join(counts) or 'none'}")
    classes = sorted((system.get("by_class") or {}).items(), key=lambda one: -one[1])[
        :_MOST_CLASSES
    ]
    if classes:
        lines.append("actors: " + ", ".join(f"{count:,} {name}" for name, count in classes))
    lines += [
        f"  {depth:,} queued at {path}" for path, depth in (system.get("deepest") or []) if depth
    ]
    slowest = system.get("slowest_handler")
    if slowest:
        lines.append(
            f"slowest: {slowest.get('handler')} of {slowest.get('actor')} blocked the loop for "
            f"{duration_text(float(slowest.get('seconds', 0)))}"
        )
    if stats.get("problem"):
        lines.append(f"the store: {stats['problem']}")
    return [
        one_line(line, width) if not line.startswith(" ") else f"  {one_line(line, width - 2)}"
        for line in lines
    ]
