"""The read-only routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse
from starlette.routing import BaseRoute, Route

from ..errors import ResumeError, UsageError
from ..observe.event_json import Json, plain
from .gate import CALLER
from .json_forms import (
    LONGEST_PAGE,
    arguments_of,
    bounded,
    context_json,
    message_json,
    run_json,
    seen_mark,
    timeline_json,
)
from .model_calls import HOW
from .requests import answered, integer_of, json_answer, text_of_query
from .run_list import STATUSES, Wanted

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ..data.run_info import RunInfo
    from .desk import Desk

__all__ = ["EVENT_STREAM", "Looking", "run_of"]

EVENT_STREAM: Final = "text/event-stream"
_PAGE: Final = 100
_MOST: Final = 500
_SEARCHED: Final = 1_000
"""The number of runs that are searched for sessions."""
_LARGEST: Final = 2**31


class Looking:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[BaseRoute]:
        handlers = {
            "me": self.me,
            "now": self.now,
            "stats": self.stats,
            "agents": self.agents,
            "runs": self.runs,
            "run": self.run,
            "run/events": self.events,
            "run/steps": self.steps,
            "run/values": self.values,
            "run/saves": self.saves,
            "run/save": self.save,
            "run/answers": self.answers,
            "run/arguments": self.arguments,
            "run/asked": self.asked,
            "run/timeline": self.timeline,
            "run/calls": self.calls,
            "run/call": self.call,
            "pending": self.pending,
            "sessions": self.sessions,
            "session": self.session,
        }
        return [
            Route(f"/api/{path}", answered(handler), methods=["GET"])
            for path, handler in handlers.items()
        ]

    async def me(self, request: Request) -> Response:
        """Return the caller's name, as the service knows it."""
        return json_answer({"name": request.scope.get(CALLER) or None})

    async def now(self, _request: Request) -> Response:
        return json_answer(await self._desk.now.look())

    async def stats(self, _request: Request) -> Response:
        return json_answer(await self._desk.now.stats())

    async def agents(self, _request: Request) -> Response:
        return json_answer(self._desk.agents())

    async def runs(self, request: Request) -> Response:
        """Return a page of the list."""
        limit = max(1, integer_of(request, "limit", _PAGE, _MOST))
        statuses = text_of_query(request, "status", 200)
        wanted = Wanted(
            STATUSES if statuses is None else tuple(statuses.split(",")),
            text_of_query(request, "agent"),
            text_of_query(request, "session"),
            _labels(request),
        )
        found = await self._desk.list.page(wanted, limit, text_of_query(request, "after"))
        lost = await self._desk.list.lost(found)
        return json_answer(
            {
                "runs": [run_json(info, is_lost=info.id in lost) for info in found],
                "more": len(found) == limit,
            }
        )

    async def run(self, request: Request) -> Response:
        info = await run_of(self._desk, request)
        is_lost = bool(await self._desk.list.lost([info]))
        return json_answer(
            {**run_json(info, is_lost=is_lost), "can_go_on": self._desk.can_play(info)}
        )

    async def events(self, request: Request) -> Response:
        """Stream the events of a run as they happen, after the last one that the browser has."""
        info = await run_of(self._desk, request)
        last = request.headers.get("last-event-id", "")
        after = (
            int(last)
            if last.isascii() and last.isdecimal() and len(last) < len(str(_LARGEST))
            else integer_of(request, "after", 0, _LARGEST)
        )
        self._desk.feeds.check()
        run = self._desk.looking_at(info).attach(info.id, after=after)
        return StreamingResponse(self._desk.feeds.stream(run), media_type=EVENT_STREAM)

    async def steps(self, request: Request) -> Response:
        info = await run_of(self._desk, request)
        return json_answer(
            bounded(
                await self._desk.steps_of(info).steps(integer_of(request, "after", 0, _LARGEST))
            )
        )

    async def values(self, request: Request) -> Response:
        return json_answer(
            bounded(await self._desk.steps_of(await run_of(self._desk, request)).values())
        )

    async def saves(self, request: Request) -> Response:
        return json_answer(await self._desk.steps_of(await run_of(self._desk, request)).saves())

    async def save(self, request: Request) -> Response:
        """Return the interrupts of the run at one of its saves.

        They must be answered to continue from there.
        """
        info = await run_of(self._desk, request)
        found = await self._desk.steps_of(info).waiting_at(
            text_of_query(request, "save") or info.checkpoint_id
        )
        return json_answer([context_json(context) for context in found])

    async def arguments(self, request: Request) -> Response:
        """Return a part of the arguments of a call that needs approval, from `after` on; the last
        part comes with the proof that all of them were requested.
        """
        info = await run_of(self._desk, request)
        save, interrupt_id = text_of_query(request, "save"), text_of_query(request, "interrupt")
        waiting = info.waiting if save is None else await self._desk.steps_of(info).waiting_at(save)
        context = next((one for one in waiting if one.id == interrupt_id), None)
        if context is None:
            msg = (
                f"run {info.id!r:.200} does not wait for {interrupt_id!r:.200}: it was "
                "answered, or the run has ended."
            )
            raise ResumeError(msg, run=info.id)
        shown, after = arguments_of(context.info), integer_of(request, "after", 0, _LARGEST)
        more = max(0, len(shown) - after - LONGEST_PAGE)
        return json_answer(
            {
                "text": shown[after : after + LONGEST_PAGE],
                "more": more,
                "seen": None if more else seen_mark(shown),
            }
        )

    async def answers(self, request: Request) -> Response:
        info = await run_of(self._desk, request)
        return json_answer(bounded(await self._desk.answer_log().of(info.id)))

    async def asked(self, request: Request) -> Response:
        """Return the input of the run."""
        found, before = await self._desk.steps_of(await run_of(self._desk, request)).asked()
        return json_answer(
            {
                "messages": [message_json(message) for message in found[-_MOST:]],
                "before": max(0, before - max(0, len(found) - _MOST)),
            }
        )

    async def timeline(self, request: Request) -> Response:
        """Return the timeline of a run from the store, with waits and gaps between processes."""
        info = await run_of(self._desk, request)
        return json_answer(timeline_json(await self._desk.looking_at(info).timeline(info.id)))

    async def calls(self, request: Request) -> Response:
        """Return the model calls of a run that this process has made.

        If content capture is off, return instructions to turn it on.
        """
        info, calls = await run_of(self._desk, request), self._desk.calls
        return json_answer(
            {"how": HOW, "calls": []}
            if calls is None
            else {"how": None, "calls": calls.of(info.id)}
        )

    async def call(self, request: Request) -> Response:
        """Return one of them, with the whole request."""
        info, calls = await run_of(self._desk, request), self._desk.calls
        if calls is None:
            raise UsageError(HOW)
        return json_answer(calls.one(info.id, integer_of(request, "number", 0, _LARGEST)))

    async def pending(self, request: Request) -> Response:
        """Return the runs that wait for an answer, the newest first."""
        limit = max(1, integer_of(request, "limit", _PAGE, _MOST))
        found = await self._desk.list.page(
            Wanted(("interrupted",)), limit, text_of_query(request, "after")
        )
        return json_answer(
            {"runs": [run_json(info) for info in found], "more": len(found) == limit}
        )

    async def sessions(self, _request: Request) -> Response:
        """Return the sessions of the latest runs, the most recently used first."""
        found: dict[str, dict[str, Json]] = {}
        for info in await self._desk.list.page(Wanted(), _SEARCHED):
            if info.session_id is None:
                continue
            known = found.setdefault(
                info.session_id,
                {
                    "id": info.session_id,
                    "status": info.status.value,
                    "used": info.updated.timestamp(),
                    "runs": 0,
                    "agent": info.agent,
                },
            )
            count = known["runs"]
            known["runs"] = (count if isinstance(count, int) else 0) + 1
        return json_answer({"sessions": list(found.values()), "searched": _SEARCHED})

    async def session(self, request: Request) -> Response:
        """Return the latest part of the conversation, and the values."""
        session_id = text_of_query(request, "id")
        if session_id is None:
            raise UsageError("id must be the id of a session, got none.")
        log = await self._desk.session_log(session_id)
        messages = log.messages
        before = min(len(messages), integer_of(request, "before", len(messages), _LARGEST))
        first = max(0, before - _PAGE)
        shown: list[Json] = [
            message_json(*said)
            for said in zip(messages[first:before], log.speakers[first:before], strict=True)
        ]
        values: dict[str, Json] = {}
        if before == len(messages):
            values = {key: plain(value) for key, value in log.values.items()}
        return json_answer(
            {
                "id": session_id,
                "messages": shown,
                "first": first,
                "total": len(messages),
                "values": bounded(values),
            }
        )


async def run_of(desk: Desk, request: Request) -> RunInfo:
    """Return the run that the address names."""
    run_id = text_of_query(request, "id")
    if run_id is None:
        raise UsageError("id must be the id of a run, got none.")
    return await desk.list.one(run_id)


def _labels(request: Request) -> dict[str, str]:
    """Return the labels of the address: `label=tenant=acme`."""
    found = {}
    for one in request.query_params.getlist("label"):
        name, equals, value = one.partition("=")
        if not equals:
            msg = f"label must be NAME=VALUE, got {one[:80]!r}."
            raise UsageError(msg)
        found[name.strip()] = value.strip()
    return found
