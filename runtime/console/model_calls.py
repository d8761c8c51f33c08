"""The model calls of this process, each with its request and reply, while content capture is on.

Only the latest calls are retained, in memory alone. Nothing is recorded unless the program has
enabled content capture, and nothing is written to a store or the log.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, fields
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ..agent.hooks import RunHooks
from ..errors import CheckpointNotFound
from ..observe.event_json import Json, plain
from ..telemetry.content import model_name
from .json_forms import bounded, message_json

if TYPE_CHECKING:
    from ..agent.run_context import RunContext
    from ..data.chat import Message
    from ..models.protocol import ModelRequest

__all__ = ["HOW", "ModelCalls"]

HOW: Final = (
    "Content capture is off. Turn it on with console_app(..., capture_content=True) or "
    "serve_console(..., capture_content=True), or set "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true. The console then shows the "
    "request of each later model call of its process."
)
_MOST_CALLS: Final = 1_000
_MOST_OF_A_RUN: Final = 200
_MOST_MESSAGES: Final = 200


@dataclass(slots=True)
class _Call:
    number: int
    agent: str
    model: str
    request: ModelRequest
    at: float
    begun: float
    seconds: float | None = None
    reply: Message | None = None

    def summary(self) -> dict[str, Json]:
        usage = None if self.reply is None else self.reply.usage
        return {
            "number": self.number,
            "agent": self.agent,
            "model": self.model,
            "at": self.at,
            "seconds": self.seconds,
            "input_tokens": None if usage is None else usage.input_tokens,
            "output_tokens": None if usage is None else usage.output_tokens,
            "messages": sum(message.role != "system" for message in self.request.messages),
            "tools": len(self.request.tools),
        }


class ModelCalls(RunHooks):
    """The latest model calls of this process, recorded by hooks around each call."""

    def __init__(self) -> None:
        self._lock = Lock()  # systems in other threads have runs, too
        self._runs: OrderedDict[str, list[_Call]] = OrderedDict()
        """The calls of each run; the run with the latest call comes last."""
        self._count = 0
        self._numbers: dict[str, int] = {}
        self._open: WeakKeyDictionary[asyncio.Task[Any], _Call] = WeakKeyDictionary()
        """The call that each task waits for: both hooks of a call run in the same task."""

    def on_model_start(self, context: RunContext, agent: Any, request: ModelRequest) -> None:
        task = asyncio.current_task()
        with self._lock:
            call = self._add(context.run_id, agent, request)
            if task is not None:
                self._open[task] = call

    def _add(self, run_id: str, agent: Any, request: ModelRequest) -> _Call:
        calls = self._runs.setdefault(run_id, [])
        self._runs.move_to_end(run_id)
        number = self._numbers[run_id] = self._numbers.get(run_id, 0) + 1
        call = _Call(
            number, agent.name, model_name(agent.model)[:200], request, time(), monotonic()
        )
        calls.append(call)
        self._count += 1
        if len(calls) > _MOST_OF_A_RUN:
            calls.pop(0)
            self._count -= 1
        if self._count > _MOST_CALLS:
            oldest, gone = self._runs.popitem(last=False)
            self._count -= len(gone)
            del self._numbers[oldest]
        return call

    def on_model_end(self, context: RunContext, agent: Any, message: Message) -> None:  # noqa: ARG002 -- the form of the hook
        task = asyncio.current_task()
        with self._lock:
            call = None if task is None else self._open.pop(task, None)
        if call is not None:
            call.seconds, call.reply = monotonic() - call.begun, message

    def of(self, run_id: str) -> list[Json]:
        """Return the retained calls of a run, in order, in short form."""
        with self._lock:
            calls = tuple(self._runs.get(run_id, ()))
        return [bounded(call.summary()) for call in calls]

    def one(self, run_id: str, number: int) -> dict[str, Json]:
        """Return one whole call. Raises if it is not retained."""
        with self._lock:
            call = next(
                (call for call in self._runs.get(run_id, ()) if call.number == number), None
            )
        if call is None:
            msg = (
                f"model call {number} of run {run_id!r:.200} is not retained: the console "
                f"retains the latest {_MOST_CALLS:,} of its process. Export traces to retain "
                "more."
            )
            raise CheckpointNotFound(msg, run=run_id)
        request = call.request
        chosen = {
            item.name: getattr(request.settings, item.name) for item in fields(request.settings)
        }
        settings: dict[str, Json] = {
            name: plain(value) for name, value in chosen.items() if value not in (None, {})
        }
        if request.tool_choice is not None:
            settings["tool_choice"] = plain(request.tool_choice)
        said = [message for message in request.messages if message.role != "system"]
        shown: list[Json] = [message_json(message) for message in said[-_MOST_MESSAGES:]]
        tools: list[Json] = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": plain(tool.parameters),
            }
            for tool in request.tools
        ]
        return {
            **call.summary(),
            "instruction": bounded(
                "\n\n".join(
                    message.text for message in request.messages if message.role == "system"
                )
            ),
            "asked": shown,
            "earlier": len(said) - len(shown),
            "tool_specs": bounded(tools),
            "settings": bounded(settings),
            "output_schema": None
            if request.output_schema is None
            else bounded(plain(request.output_schema)),
            "reply": None if call.reply is None else message_json(call.reply),
        }
