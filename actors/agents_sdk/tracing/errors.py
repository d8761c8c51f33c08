"""Errors on spans.

Owns: what a span says of an error, and what it keeps to itself. It must never raise.
"""

from __future__ import annotations

from typing import Any, Final

from ..exceptions import InputGuardrailTripwireTriggered, ModelBehaviorError, OutputGuardrailTripwireTriggered
from ..logger import logger
from .create import get_current_span
from .spans import Span, SpanError

__all__ = ["REDACTED", "attach_error", "attach_to", "note_agent_error", "readable", "tool_error_text"]

REDACTED: Final = "Error details are redacted."
_KNOWN: Final = (ModelBehaviorError, InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered)
"""What is noted on a span of its own."""


def attach_error(message: str, **data: Any) -> None:
    """Note an error on the current span, if there is one."""
    span = get_current_span()
    if span is not None:
        attach_to(span, message, data)


def attach_to(span: Any, message: str, data: dict[str, Any]) -> None:
    """Note an error on that span."""
    span.set_error(SpanError(message=message, data=data))


def readable(error: BaseException, *, include: bool) -> str:
    """The text of an error, as a span may say it."""
    if not include:
        return REDACTED
    try:
        return str(error)
    except BaseException:
        return f"Unrenderable {type(error).__name__}"


def tool_error_text(run_config: Any, error: object) -> str:
    """The text of a tool's error, unless the run keeps such things to itself."""
    return str(error) if run_config is None or run_config.trace_include_sensitive_data else REDACTED


def note_agent_error(span: Span[Any] | None, error: BaseException, *, include: bool) -> None:
    """Note on an agent's span what has ended the run, unless that is noted there or on a span of its own."""
    if span is None or not isinstance(error, Exception) or isinstance(error, _KNOWN):
        return
    try:
        if span.error is None:
            attach_to(span, "Error in agent run", {"error": readable(error, include=include)})
    except Exception:
        logger.exception("An error could not be noted on a span.")
