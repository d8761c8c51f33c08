"""One observed call of a chat model: its span, its tokens, and the time of its first chunk.

The request and the reply are not changed.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..data.chat import Message
from ..log import loggers
from .content import as_json, model_name, provider_name, server_of, settings_of_call, tools_as_json
from .meters import CalledModel
from .run_telemetry import RunTelemetry

if TYPE_CHECKING:
    from ..data.chat import Usage
    from ..models.protocol import ModelRequest

__all__ = ["ModelCall"]


class ModelCall:
    """A running call, opened and closed in the same task."""

    __slots__ = ("_asked", "_called", "_first", "_model", "_opened", "_watch")

    def __init__(
        self,
        watch: RunTelemetry,
        model: object,
        request: ModelRequest,
        agent: str,
        *,
        streams: bool,
    ) -> None:
        self._watch = watch
        self._asked = model
        self._model = model_name(model)
        self._called = CalledModel(self._model, provider_name(model), server_of(model))
        self._first: float | None = None
        loggers.chat_agent.debug(
            "Model %s is asked by %s: %d messages.", self._model, agent, len(request.messages)
        )
        self._opened = watch.open(
            f"chat {self._model}", self._attributes(request, agent, streams=streams), client=True
        )

    def _attributes(self, request: ModelRequest, agent: str, *, streams: bool) -> dict[str, Any]:
        settings = settings_of_call(self._asked, request)
        said: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._called.provider,
            "gen_ai.request.model": self._model,
            "gen_ai.agent.name": agent,
            "gen_ai.output.type": "text" if request.output_schema is None else "json",
            **self._called.server,
        }
        if streams:
            said["gen_ai.request.stream"] = True
        for name in (
            "temperature",
            "top_p",
            "max_tokens",
            "seed",
            "presence_penalty",
            "frequency_penalty",
        ):
            value = getattr(settings, name)
            if value is not None:
                said[f"gen_ai.request.{name}"] = value
        if settings.stop is not None:
            said["gen_ai.request.stop_sequences"] = (
                (settings.stop,) if isinstance(settings.stop, str) else tuple(settings.stop)
            )
        if settings.reasoning_effort is not None:
            said["gen_ai.request.reasoning.level"] = settings.reasoning_effort
        if self._watch.content:
            said |= {
                "gen_ai.input.messages": as_json(request.messages),
                "input.value": as_json(request.messages),
            }
            if request.tools:
                said["gen_ai.tool.definitions"] = tools_as_json(request.tools)
        return said

    def piece(self) -> None:
        """Note that a chunk of the reply has arrived."""
        if self._first is None:
            self._first = perf_counter() - self._opened.started

    def end(self, reply: object) -> None:
        """Close the call with its reply."""
        usage = reply.usage if isinstance(reply, Message) else None
        said: dict[str, Any] = {}
        if usage is not None:
            said = {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
            }
            if usage.cached_tokens:
                said["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
        if self._first is not None:
            said["gen_ai.response.time_to_first_chunk"] = self._first
        if isinstance(reply, Message):
            if reply.finish_reason is not None:
                said["gen_ai.response.finish_reasons"] = (reply.finish_reason,)
            if self._watch.content:
                said |= {"gen_ai.output.messages": as_json((reply,)), "output.value": reply.text}
        answered = model_name(self._asked)
        if answered != self._model:  # another model of several has answered
            said["gen_ai.response.model"] = self._model = answered
        self._opened.set(said)
        self._close(usage, None)

    def fail(self, error: BaseException) -> None:
        """Close the call after a failure or a cancellation."""
        self._opened.fail(error)
        refused = getattr(error, "message", None)
        self._close(
            refused.usage if isinstance(refused, Message) else None, type(error).__qualname__
        )

    def _close(self, usage: Usage | None, error: str | None) -> None:
        seconds = self._opened.close()
        loggers.chat_agent.debug(
            "Model %s %s after %.3f s.",
            self._model,
            "answers" if error is None else f"fails with {error}",
            seconds,
        )
        for meter in self._watch.meters:
            meter.model_called(
                CalledModel(self._model, self._called.provider, self._called.server),
                seconds,
                self._first,
                usage,
                error,
            )
