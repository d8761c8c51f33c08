"""The runs in a store: `offbook runs`, `show`, `cancel`, `forget`, and `retry`.

Only `retry` runs an agent, and takes it as an argument.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ..console.look_only import LookOnly
from ..data.run_info import RunInfo
from ..data.run_result import RunStatus
from ..errors import CheckpointError, UsageError
from ..observe.event_json import Json, event_json, plain
from ..observe.timeline_axis import duration_text
from ..runner import Runner
from ..shown_text import in_line
from ..stores import Store
from .answers import question_lines, question_of
from .conversation import FAILED, runner_of, wanted_target
from .loading import import_agents
from .stores import chosen_address, existing_store_at
from .terminal.event_view import EventView
from .terminal.screen import Screen, one_line
from .terminal.shell import quoted, suggested
from .turns import play

__all__ = [
    "ListOptions",
    "cancel_run",
    "forget_runs",
    "info_json",
    "list_runs",
    "looked",
    "looking_runner",
    "retry_run",
    "show_run",
]

_STYLES: Final = {
    "running": "cyan",
    "interrupted": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "stuck": "bold red",
}
_AT_REST: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The filters of the list."""

    status: Sequence[str] = ()
    session: str | None = None
    agent: str | None = None
    labels: Sequence[str] = ()
    limit: int = 20
    after: str | None = None
    as_json: bool = False


def looking_runner(store: Store, name: str = "offbook") -> Runner:
    """Return a Runner that only inspects a store.

    Requests by the agent's name use this name.
    """
    return Runner(LookOnly(name), store=store, durability="step")


def looked(store: str | None, work: Callable[[Runner], Awaitable[int]]) -> int:
    """Call `work` with a Runner that only inspects, on a new event loop, and close the store."""
    import_agents()

    async def main() -> int:
        opened = existing_store_at(store)
        try:
            return await work(looking_runner(opened))
        except CheckpointError as error:
            if "is not registered" not in str(error):
                raise
            msg = f"{error} Pass --load FILE, with the file that registers it."
            raise CheckpointError(msg) from error
        finally:
            await opened.aclose()

    return asyncio.run(main())


def list_runs(store: str | None, options: ListOptions) -> int:
    """List the runs, a line for each, the newest first."""

    async def work(runner: Runner) -> int:
        labels = _labels(options.labels)
        found = await runner.runs(
            list(options.status) or None,
            options.session,
            options.agent,
            labels,
            limit=options.limit,
            after=options.after,
        )
        screen = Screen()
        if options.as_json:
            for info in found:
                screen.say(json.dumps(info_json(info)))
            return 0
        if not found:
            Screen().say(f"no matching runs in {chosen_address(store)}", "dim")
            return 0
        room = max(len(in_line(info.id)) for info in found)
        for info in found:
            _line(info, room, screen)
        if len(found) == options.limit:
            screen.say(f"more: --after {quoted(found[-1].id)}", "dim")
        return 0

    return looked(store, work)


def _labels(given: Sequence[str]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for label in given:
        name, equals, value = label.partition("=")
        if not equals:
            msg = f"--label must be NAME=VALUE, got {label}."
            raise UsageError(msg)
        found[name] = value
    return found or None


def _line(info: RunInfo, room: int, screen: Screen) -> None:
    screen.write(f"{in_line(info.id):<{room}}  ")
    screen.write(f"{info.status.value:<11}", _STYLES.get(info.status.value, ""))
    text = f"  {_ago(info.started):>7}  {in_line(info.agent)}{_about(info)}"
    used = room + 13
    screen.say(_kept_line(text, screen.width - used) if screen.is_terminal else text.rstrip())


def _kept_line(text: str, most: int) -> str:
    """Truncate a text to `most` characters, retaining its spaces."""
    text = text.rstrip()
    return text if len(text) <= most else f"{text[: max(0, most - 1)]}…"


def _about(info: RunInfo) -> str:
    if info.waiting:
        return f": {question_of(info.waiting[0], 120)}" + (
            f" (and {len(info.waiting) - 1} more)" if len(info.waiting) > 1 else ""
        )
    return f": {one_line(info.error, 200)}" if info.error else ""


def _ago(moment: datetime) -> str:
    seconds = max(0.0, (datetime.now(UTC) - moment).total_seconds())
    return (
        duration_text(seconds).split(" ")[0] + duration_text(seconds).split(" ")[1]
        if seconds >= 1
        else "now"
    )


def show_run(store: str | None, run_id: str, *, as_json: bool) -> int:
    """Show the stored facts of a run, its events, and its interrupts."""

    async def work(runner: Runner) -> int:
        life = await runner.life(run_id)
        screen, info = Screen(), life.info
        if as_json:
            for event in life.shown:
                screen.say(json.dumps(event_json(event)))
            return 0
        if info is not None:
            for name, text in _facts(info):
                screen.write(f"{name:<9} ", "dim")
                screen.say(in_line(text), _STYLES.get(text, ""))
            screen.say()
        view = EventView(screen)
        for event in life.shown:
            view.show(event)
        view.end()
        waiting = (
            life.info.waiting
            if life.info is not None
            else life.result.interrupts
            if life.result is not None
            else ()
        )
        for context in waiting:
            first, *more = question_lines(context, screen.width - 7)
            screen.say(f"waits: {first}", "bold yellow")
            for line in more:
                screen.say(line)
            screen.say(f"as {context.id}", "dim")
        if waiting:
            screen.say(
                f"answer it: {suggested('resume', run_id, 'FILE:agent', store=store)}", "dim"
            )
        return 0

    return looked(store, work)


def _facts(info: RunInfo) -> list[tuple[str, str]]:
    usage = info.usage
    took = (info.ended or info.updated) - info.started
    found = [("run", info.id), ("status", info.status.value), ("agent", info.agent)]
    found.append(
        (
            "started",
            (
                f"{info.started.astimezone():%Y-%m-%d %H:%M:%S}, for "
                f"{duration_text(took.total_seconds())}"
            ),
        )
    )
    if info.session_id:
        found.append(("session", info.session_id))
    if info.checkpoint_id != info.id:
        found.append(("saved as", info.checkpoint_id))
    found += [("label", f"{name}={value}") for name, value in info.labels.items()]
    if info.attempts:
        found.append(("lost", f"its process, {info.attempts} times"))
    if usage.requests:
        found.append(
            (
                "models",
                (
                    f"{usage.requests:,} calls, {usage.input_tokens:,} tokens in, "
                    f"{usage.output_tokens:,} out"
                ),
            )
        )
    if info.error:
        found.append(("error", one_line(info.error, 1000)))
    return found


def info_json(info: RunInfo) -> dict[str, Json]:
    """Return a run as one JSON object."""
    value = plain(info)
    assert isinstance(value, dict)
    waiting: list[Json] = [
        {"id": one.id, "question": question_of(one, 500), "info": plain(one.info)}
        for one in info.waiting
    ]
    return {**value, "status": info.status.value, "waiting": waiting}


def cancel_run(store: str | None, run_id: str) -> int:
    """Ask the process that has the run to cancel it, and wait until it has."""

    async def work(runner: Runner) -> int:
        info = await runner.info(run_id)
        assert runner.store is not None
        screen = Screen()
        if info.status is not RunStatus.RUNNING:
            what = "has already ended" if info.status in _AT_REST else "is not running"
            msg = (
                f"run {in_line(run_id)} {what}: it is {info.status.value}. To delete it: "
                f"{suggested('forget', run_id, store=store)}."
            )
            raise UsageError(msg)
        watched = looking_runner(runner.store, info.agent).attach(run_id, after=info.steps)
        watched.cancel()
        result = await watched
        screen.say(f"{in_line(run_id)} is {result.status.value}")
        return 0 if result.status is RunStatus.CANCELLED else FAILED

    return looked(store, work)


def forget_runs(store: str | None, run_ids: Sequence[str]) -> int:
    """Delete everything stored of these runs."""

    async def work(runner: Runner) -> int:
        for run_id in run_ids:
            await runner.info(run_id)  # raises if there is none
            await runner.forget(run_id)
            Screen().say(f"{in_line(run_id)} is deleted")
        return 0

    return looked(store, work)


def retry_run(store: str | None, run_id: str, target: str | None) -> int:
    """Retry a stuck run here."""
    existing_store_at(store)
    screen = Screen()
    with runner_of(wanted_target("retry", run_id, target), store) as runner:
        loop = runner.choose_system().loop
        # Raises if there is none.
        asyncio.run_coroutine_threadsafe(runner.info(run_id), loop).result()
        again = asyncio.run_coroutine_threadsafe(runner.retry(run_id), loop).result()
        view = EventView(screen)
        result = play(again, view.show, view.end)
        view.end()
    return 0 if result.status is RunStatus.COMPLETED else FAILED
