"""The parts of a run that a browser sees: the forms of `sse(show=...)`.

Each form selects events and their fields. Arguments and results of tools, reasoning and error texts
are only in `"all"`, because an error text may contain a password. A form never shows a field that
it does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol, TypeAlias

from ..data.events import AgentEvent, Interrupted, TransferToAgent
from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError, text_of
from ..log import loggers
from ..shown_text import visible
from .event_json import Json, event_json, kind_of, result_json

__all__ = ["Form", "Show", "form_of"]

Show: TypeAlias = (
    "Literal['answers', 'progress', 'all'] | Callable[[AgentEvent], Mapping[str, Json] | None]"
)

_NAMES: Final = ("answers", "progress", "all")


class Form(Protocol):
    """The form in which one stream shows its events."""

    def event(self, event: AgentEvent) -> Mapping[str, Json] | None:
        """Return the data of an event; None to hide it."""
        ...

    def end(self, run_id: str, result: RunResult) -> Mapping[str, Json]:
        """Return the data of the stream's last event."""
        ...

    def failed(self, run_id: str, error: Exception) -> Mapping[str, Json]:
        """Return the data of the last event if the run could not be followed to its end."""
        ...


def form_of(show: Show) -> Form:
    """Return the form for `show`. Raises `UsageError`."""
    if show == "answers":
        return _Answers()
    if show == "progress":
        return _Progress()
    if show == "all":
        return _All()
    if callable(show):
        return _Own(show)
    msg = (
        f"sse(show={show!r:.80}): show must be {', '.join(map(repr, _NAMES))}, or a function of "
        "an event that returns its data, or None to hide it."
    )
    raise UsageError(msg)


class _Answers:
    """Shows the agents' texts, handoffs, the fact that an answer is awaited, and failures."""

    def __init__(self) -> None:
        self._error_id: str | None = None  # of the last error shown

    def event(self, event: AgentEvent) -> Mapping[str, Json] | None:
        shown = self._parts(event)
        if shown is None:
            return None
        return {
            "kind": kind_of(event),
            "seq": event.seq,
            "run_id": event.run_id,
            "invocation_id": event.invocation_id,
            "timestamp": event.timestamp,
            **shown,
        }

    def _parts(self, event: AgentEvent) -> dict[str, Json] | None:
        message, delta, action = event.message, event.delta, event.action
        if delta is not None:
            if event.error is not None:
                return {}  # the shown part of the message is void: it starts again
            return {"delta": {"text": delta.content}} if delta.content else None
        if event.error is not None:
            return {"error": self._error(f"{event.run_id}.{event.seq}", event.run_id, event.error)}
        if isinstance(action, Interrupted):
            return self._interrupted(action)
        if isinstance(action, TransferToAgent):
            return {"action": {"type": "transfer", "agent": action.agent_name}}
        if message is not None and message.role == "assistant" and message.text:
            return {"message": {"id": message.id, "role": "assistant", "text": message.text}}
        return None

    def _interrupted(self, _action: Interrupted) -> dict[str, Json]:
        return {}

    def _error(self, error_id: str, run_id: str, error: Exception) -> dict[str, Json]:
        self._error_id = error_id
        loggers.run.warning(
            "Error %s of run %s, whose text is hidden from the client: %s: %s",
            error_id,
            run_id,
            type(error).__name__,
            visible(text_of(error)),
        )
        return {"id": error_id, "message": "Something went wrong."}

    def end(self, run_id: str, result: RunResult) -> Mapping[str, Json]:
        shown: dict[str, Json] = {"run_id": run_id, "status": result.status.value}
        if result.status is RunStatus.COMPLETED and result.final_message is not None:
            shown["text"] = result.final_message.text
        if result.error is not None:
            known = self._error_id
            shown["error"] = (
                self._error(run_id, run_id, result.error)
                if known is None
                else {"id": known, "message": "Something went wrong."}
            )
        return shown

    def failed(self, run_id: str, error: Exception) -> Mapping[str, Json]:
        return {
            "run_id": run_id,
            "status": RunStatus.FAILED.value,
            "error": self._error(run_id, run_id, error),
        }


class _Progress(_Answers):
    """Shows also the names of running agents and tools."""

    def _parts(self, event: AgentEvent) -> dict[str, Json] | None:
        message, shown = event.message, super()._parts(event)
        if message is not None and message.role == "assistant" and message.tool_calls:
            calls: list[Json] = [{"id": call.id, "name": call.name} for call in message.tool_calls]
            shown = {
                "message": {
                    "id": message.id,
                    "role": "assistant",
                    "text": message.text,
                    "tool_calls": calls,
                }
            }
        elif message is not None and message.role == "tool":
            told: dict[str, Json] = {
                "id": message.id,
                "role": "tool",
                "tool_name": message.tool_name,
                "tool_call_id": message.tool_call_id,
            }
            shown = {**(shown or {}), "message": told}
        return (
            None
            if shown is None
            else {"agent": event.agent_name, "run_path": list(event.run_path), **shown}
        )

    def _interrupted(self, action: Interrupted) -> dict[str, Json]:
        contexts: list[Json] = [
            {
                "id": context.id,
                "address": [
                    {"kind": step.kind, "name": step.name, "call_id": step.call_id}
                    for step in context.address
                ],
            }
            for context in action.contexts
        ]
        return {"action": {"type": "interrupted", "contexts": contexts}}

    def end(self, run_id: str, result: RunResult) -> Mapping[str, Json]:
        usage = result.usage
        tokens: dict[str, Json] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "requests": usage.requests,
        }
        return {**super().end(run_id, result), "last_agent": result.last_agent, "usage": tokens}


class _All:
    """Shows everything, for clients that may see what the program sees."""

    def event(self, event: AgentEvent) -> Mapping[str, Json] | None:
        return event_json(event)

    def end(self, run_id: str, result: RunResult) -> Mapping[str, Json]:
        return {"run_id": run_id, **result_json(result)}

    def failed(self, run_id: str, error: Exception) -> Mapping[str, Json]:
        return {
            "run_id": run_id,
            "status": RunStatus.FAILED.value,
            "error": {"type": type(error).__name__, "message": text_of(error)},
        }


class _Own(_Answers):
    """Shows each event as a custom function defines; the end is as for `"answers"`."""

    def __init__(self, show: Callable[[AgentEvent], Mapping[str, Json] | None]) -> None:
        super().__init__()
        self._show = show

    def event(self, event: AgentEvent) -> Mapping[str, Json] | None:
        return self._show(event)
