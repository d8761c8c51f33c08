"""`offbook post`, `tasks` and `schedules`: the inbox of a session, its background tasks, and the
schedules of an agent.

None of them runs an agent: a process that attends does.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import cast

from ..data.posts import Boundary
from ..observe.event_json import Json, plain
from ..run.schedules import ScheduleInfo
from ..runner import Runner
from ..shown_text import in_line
from .kept import looked, looking_runner
from .stores import chosen_address
from .terminal.screen import Screen, one_line

__all__ = ["list_schedules", "list_tasks", "post_to"]

_LONGEST_TEXT = 200


def post_to(
    store: str | None,
    session: str,
    text: str,
    agent: str,
    post_id: str | None,
    when: str,
    *,
    as_json: bool,
) -> int:
    """Post a message to a session of an agent, and show the receipt."""

    async def work(runner: Runner) -> int:
        assert runner.store is not None
        sessions = looking_runner(runner.store, agent)
        # An unknown boundary is refused by `post`, which lists the others.
        posted = await sessions.session(session).post(text, id=post_id, when=cast("Boundary", when))
        screen = Screen()
        if as_json:
            screen.say(json.dumps(plain(posted)))
            return 0
        again = " was posted before, and" if posted.duplicate else ""
        screen.say(
            f"post {in_line(posted.id)}{again} is number {posted.seq} of session {in_line(session)}"
        )
        if not await runner.runs(agent=agent, limit=1):
            screen.say(
                f"the store lists no run of agent {in_line(agent)}: check --agent, because only "
                "this agent hears the post",
                "dim",
            )
        return 0

    return looked(store, work)


def list_schedules(store: str | None, agent: str, *, as_json: bool) -> int:
    """List the schedules of an agent, by their names."""

    async def work(runner: Runner) -> int:
        assert runner.store is not None
        found = await looking_runner(runner.store, agent).schedules()
        screen = Screen()
        if as_json:
            for info in found:
                screen.say(json.dumps(_json(info)))
            return 0
        if not found:
            screen.say(f"no schedules of agent {in_line(agent)} in {chosen_address(store)}", "dim")
            return 0
        room = max(len(in_line(info.name)) for info in found)
        for info in found:
            screen.write(f"{in_line(info.name):<{room}}  ")
            screen.write(f"{info.next:%Y-%m-%d %H:%M:%S%z}", _style(info))
            screen.say(f"  {_rule(info)}  {_session(info)}: {one_line(info.text, _LONGEST_TEXT)}")
        return 0

    return looked(store, work)


def list_tasks(store: str | None, session: str, *, as_json: bool) -> int:
    """List the background tasks of a session, the newest first."""

    async def work(runner: Runner) -> int:
        found = await runner.session(session).tasks()
        screen = Screen()
        if as_json:
            for task in found:
                screen.say(json.dumps(plain(task)))
            return 0
        if not found:
            screen.say(f"no tasks of session {in_line(session)} in {chosen_address(store)}", "dim")
            return 0
        for task in found:
            why = f"  {one_line(task.error, _LONGEST_TEXT)}" if task.error else ""
            screen.say(
                f"{in_line(task.id)}  {task.status.value:<11}  {in_line(task.agent)}  "
                f"since {task.started:%Y-%m-%d %H:%M:%S}{why}"
            )
        return 0

    return looked(store, work)


def _style(info: ScheduleInfo) -> str:
    """Return the style of the next time: one that has passed shows that nobody attends."""
    return "yellow" if info.next < datetime.now(UTC) else ""


def _rule(info: ScheduleInfo) -> str:
    if info.every is not None:
        return f"every {info.every}"
    return f"{in_line(info.cron or '')} ({in_line(info.timezone)})"


def _session(info: ScheduleInfo) -> str:
    return "no session" if info.session_id is None else f"session {in_line(info.session_id)}"


def _json(info: ScheduleInfo) -> dict[str, Json]:
    return {
        "name": info.name,
        "next": info.next.isoformat(),
        "cron": info.cron,
        "every": None if info.every is None else info.every.total_seconds(),
        "timezone": info.timezone,
        "session": info.session_id,
        "text": info.text,
        "missed": info.missed,
        "overlap": info.overlap,
        "last_run": info.last_run_id,
    }
