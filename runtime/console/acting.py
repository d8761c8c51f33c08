"""The routes that act on a run: cancel, retry, resume, answer, forget.

Each answer is logged with the name of the person. The console never answers by itself.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.routing import BaseRoute, Route

from ..agent.run_messages import CancelMode
from ..errors import CheckpointNotFound, OffbookError, ResumeError, UsageError
from .gate import CALLER
from .json_forms import LONGEST_PAGE, arguments_of, is_approval, run_json, seen_mark
from .requests import answered, body_of, json_answer, text_of_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ..data.interrupt import InterruptContext
    from ..data.run_info import RunInfo
    from .desk import Desk

__all__ = ["Acting", "who_asks"]

_MODES: Final = ("immediate", "after_model", "after_tools")
_KINDS: Final = ("approve", "deny", "text", "json")
_LONGEST_ANSWER: Final = 200_000
_LONGEST_NOTED: Final = 2_000
_LONGEST_NAME: Final = 100


class Acting:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[BaseRoute]:
        handlers: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "cancel": self.cancel,
            "retry": self.retry,
            "resume": self.resume,
            "answer": self.answer,
            "forget": self.forget,
        }
        return [
            Route(f"/api/run/{path}", answered(handler), methods=["POST"])
            for path, handler in handlers.items()
        ]

    async def cancel(self, request: Request) -> Response:
        """Ask the process that has the run to cancel it, without waiting."""
        body = await body_of(request)
        info = await self._run_of(body)
        mode = text_of_body(body, "mode", default="immediate")
        if mode not in _MODES:
            msg = f"mode must be one of {', '.join(_MODES)}, got {mode[:40]!r}."
            raise UsageError(msg)
        if info.status.value != "running":
            msg = (
                f"run {info.id!r:.200} is {info.status.value}: only a running or waiting run can "
                "be cancelled."
            )
            raise ResumeError(msg, run=info.id)
        run = self._desk.looking_at(info).attach(info.id, after=info.steps)
        self._desk.begun.check()
        run.cancel(cast("CancelMode", mode))
        self._desk.begun.follow(run)
        return json_answer({"id": info.id, "asked": True})

    async def retry(self, request: Request) -> Response:
        """Retry a stuck run."""
        info = await self._run_of(await body_of(request))
        self._desk.begun.check()
        await self._desk.begun.begin(await self._desk.playing(info).retry(info.id))
        return await self._state(info.id)

    async def resume(self, request: Request) -> Response:
        """Continue from a save: the last one, or the one with the number after the `@`.

        It answers nothing: use `answer` for that.
        """
        body = await body_of(request)
        info = await self._run_of(body)
        save = _save_of(body, info)
        runner = self._desk.playing(info)
        self._desk.begun.check()
        run = runner.resume(save)
        await self._desk.begun.begin(run)
        return await self._state(run.id)

    async def answer(self, request: Request) -> Response:
        """Answer one interrupt of a run, or one of an earlier save.

        All other interrupts stay pending.
        """
        body = await body_of(request)
        info = await self._run_of(body)
        interrupt_id = text_of_body(body, "interrupt")
        save = _save_of(body, info)
        waiting = (
            info.waiting
            if save == info.checkpoint_id
            else await self._desk.steps_of(info).waiting_at(save)
        )
        context = next((one for one in waiting if one.id == interrupt_id), None)
        if context is None:
            msg = (
                f"run {info.id!r:.200} does not wait for {interrupt_id[:200]!r}: it was "
                "answered, or the run has ended. Reload the page."
            )
            raise ResumeError(msg, run=info.id)
        runner = self._desk.playing(info)
        kind, data, noted = _answer_of(body, context)
        self._desk.begun.check()
        log, by = self._desk.answer_log(), who_asks(request, body)
        asks = str(getattr(context.info, "tool_name", "")) or str(
            context.address[-1] if context.address else ""
        )
        note = {
            "interrupt": context.id,
            "by": by,
            "kind": kind,
            "answer": noted[:_LONGEST_NOTED],
            "asks": asks[:200],
        }
        await log.note(info.id, **note)
        try:
            run = runner.resume(save, {context.id: data})
            await self._desk.begun.begin(run)
        except OffbookError as error:
            await log.note(info.id, **{**note, "refused": str(error)[:_LONGEST_NOTED]})
            raise
        if run.id != info.id:  # it continues as a branch, another run
            await log.note(run.id, **note)
        return await self._state(run.id)

    async def forget(self, request: Request) -> Response:
        info = await self._run_of(await body_of(request))
        await self._desk.looking_at(info).forget(info.id)
        return json_answer({"id": info.id, "forgotten": True})

    async def _run_of(self, body: dict[str, Any]) -> RunInfo:
        return await self._desk.list.one(text_of_body(body, "id"))

    async def _state(self, run_id: str) -> Response:
        """Return the current state of the run, which may have ended and been removed."""
        try:
            return json_answer(run_json(await self._desk.list.one(run_id)))
        except CheckpointNotFound:
            return json_answer({"id": run_id, "status": "ended"})


def _save_of(body: dict[str, Any], info: RunInfo) -> str:
    """Return the save to continue from: the last one by default."""
    save = text_of_body(body, "save", default="") or info.checkpoint_id
    if save != info.checkpoint_id and save.rpartition("@")[0] != info.checkpoint_id:
        msg = (
            f"save must be a checkpoint of run {info.id!r:.200}, such as "
            f"{info.checkpoint_id[:200]}@1, got {save[:200]!r}."
        )
        raise UsageError(msg, run=info.id)
    return save


def who_asks(request: Request, body: dict[str, Any]) -> str:
    """Return the name that the service knows, or the unverified one from the page."""
    return request.scope.get(CALLER) or text_of_body(body, "by", _LONGEST_NAME, default="").strip()


def _answer_of(body: dict[str, Any], context: InterruptContext) -> tuple[str, object, str]:
    """Return the kind of the answer, its data for the run, and its text for the log."""
    kind, info = text_of_body(body, "kind"), cast("Any", context.info)
    if kind not in _KINDS:
        msg = f"kind must be one of {', '.join(_KINDS)}, got {kind[:40]!r}."
        raise UsageError(msg)
    if kind == "text":
        text = text_of_body(body, "value", _LONGEST_ANSWER, default="")
        return kind, text, text
    if kind == "json":
        if "value" not in body and "json" not in body:
            raise UsageError("the answer is missing. Pass 'value', as JSON, or 'json', as text.")
        value = (
            body["value"]
            if "value" in body
            else _from_json("json", text_of_body(body, "json", _LONGEST_ANSWER))
        )
        # this would bypass the check that the arguments were seen
        if value is True and is_approval(info):
            raise UsageError(
                "kind='json' cannot approve a call that needs approval. Pass kind='approve'."
            )
        return kind, value, json.dumps(value, ensure_ascii=False)
    if kind == "deny":
        reason = text_of_body(body, "reason", _LONGEST_NOTED, default="").strip()
        return kind, info.deny(reason) if is_approval(info) else False, reason
    arguments, shown = body.get("arguments"), arguments_of(info)
    if len(shown) > LONGEST_PAGE and body.get("seen") != seen_mark(shown):
        raise UsageError(
            "the arguments of this call were not shown in full. Show all of them before you "
            "approve the call."
        )
    if arguments is None:
        return kind, info.approve() if is_approval(info) else True, ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    if not isinstance(_from_json("arguments", text), dict):
        raise UsageError("'arguments' must be a JSON object with the arguments of the call.")
    if not is_approval(info):
        raise UsageError(
            "the run does not wait for a tool call, so there are no arguments to change. Omit "
            "'arguments'."
        )
    return "approve with other arguments", info.approve(text), text


def _from_json(name: str, text: str) -> object:
    """Parse JSON that a person has typed on the page.

    It is sent as text: a browser would round its numbers.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{name!r} must be JSON: {error}"
        raise UsageError(msg) from None
