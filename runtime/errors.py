"""The errors of understudy: one tree, split by who is at fault.

    UnderstudyError
    ├── UsageError               the caller's mistake; raised at once, before anything has happened
    ├── ActorDeadError           the actor has stopped, or stopped before it came to the message  (is pykka's, too)
    │   └── ActorFailed          it crashed on this very message; what becomes of it is its supervisor's business
    ├── AskTimeout               no reply in time; the message may still be handled  (is pykka's Timeout and TimeoutError, too)
    ├── HandlerCancelled         the handler was cancelled on request; its actor lives on
    ├── MailboxFull              a bounded mailbox had no room, or dropped the message for a newer one
    ├── SessionBusy              the session works on another message, and this one was not to wait
    ├── SystemDraining           the system takes no new work: it is about to stop
    ├── AgentError               an agent, or something that it uses, did what it must not
    │   ├── TransferError            a transfer to an agent that cannot be reached from there
    │   ├── MaxIterationsExceeded    more model calls than the agent may make
    │   ├── MaxTransfersExceeded     more transfers than the run may make
    │   ├── ToolError                a tool failed, and the agent was told not to report that to the model
    │   ├── HandoffError             a handoff could not be made
    │   ├── GuardrailTripped         a guardrail has found something that must not be
    │   └── ModelBehaviorError       the model answered with something that cannot be used
    ├── ModelError               the model could not be reached, or refused the request
    │   ├── RetryExhausted           every attempt failed; the last one's error is the cause
    │   └── ModelRetry               not the end: what was streamed so far is void, another attempt follows
    ├── CheckpointError          bytes that cannot be read back: damaged, foreign, or of a type that is not registered
    │   ├── CheckpointNotFound       there is none of that name
    │   ├── ResumeError              it cannot be resumed, or not any more
    │   └── StoreError               the store could not be reached, or refused
    └── RunCancelled             the run was cancelled, or ran out of time

Each says what was wrong, where, and what to do; `run`, `agent`, `actor` and `message` hold what it belongs to.
This file must never import another one of the package.
"""

from __future__ import annotations

from typing import Any

import pykka

__all__ = [
    "ActorDeadError",
    "ActorFailed",
    "AgentError",
    "AskTimeout",
    "CheckpointError",
    "CheckpointNotFound",
    "GuardrailTripped",
    "HandlerCancelled",
    "HandoffError",
    "MailboxFull",
    "MaxIterationsExceeded",
    "MaxTransfersExceeded",
    "ModelBehaviorError",
    "ModelError",
    "ModelRetry",
    "ResumeError",
    "RetryExhausted",
    "RunCancelled",
    "SessionBusy",
    "StoreError",
    "SystemDraining",
    "ToolError",
    "TransferError",
    "UnderstudyError",
    "UsageError",
    "forget_frames",
    "text_of",
]


class UnderstudyError(Exception):
    """The root of all errors that this package raises on purpose."""

    def __init__(self, text: str = "", *, actor: str | None = None, message: Any = None, run: str | None = None, agent: str | None = None) -> None:
        super().__init__(text)
        self.run = run
        """The id of the run that it belongs to, if there is one."""
        self.agent = agent
        """The name of the agent that it belongs to, if there is one."""
        self.actor = actor
        """The path of the actor that it belongs to, as in `ActorNode.path`."""
        self.message = message
        """The message that it belongs to, if there is one."""


class UsageError(UnderstudyError):
    """The caller's mistake. Nothing has happened yet."""


class ActorDeadError(UnderstudyError, pykka.ActorDeadError):
    """The actor has stopped, or stopped before it came to the message."""


class ActorFailed(ActorDeadError):
    """The actor crashed on this very message, with something that is no ordinary exception.

    What it crashed with has gone to its supervisor, and to nobody else: it is not the asker's to be cancelled or interrupted by.
    """


class AskTimeout(UnderstudyError, pykka.Timeout, TimeoutError):
    """No reply came in time. The message has been sent all the same, and may still be handled."""


class HandlerCancelled(UnderstudyError):
    """The handler was cancelled by `ActorRef.cancel()` before it had a reply."""


class MailboxFull(UnderstudyError):
    """A bounded mailbox had no room for the message, or gave its place to a newer one."""


class SessionBusy(UnderstudyError):
    """The session works on another message, and this one was not to wait."""


class SystemDraining(UnderstudyError):
    """The system takes no new work, because it is about to stop."""


class AgentError(UnderstudyError):
    """An agent, or something that it uses, did what it must not."""


class TransferError(AgentError):
    """A transfer to an agent that cannot be reached from there."""


class MaxIterationsExceeded(AgentError):
    """The agent has made as many model calls as it may, and the model still wants more."""


class MaxTransfersExceeded(AgentError):
    """The run has made as many transfers as it may."""


class ToolError(AgentError):
    """A tool failed, and its agent was told not to report that to the model. What it raised is the cause."""


class HandoffError(AgentError):
    """A handoff could not be made. What its callback raised is the cause."""


class GuardrailTripped(AgentError):
    """A guardrail has found something that must not be: `output_info` says what."""

    def __init__(self, text: str = "", *, guardrail: str = "", output_info: Any = None, **where: Any) -> None:
        super().__init__(text, **where)
        self.guardrail = guardrail
        self.output_info = output_info


class ModelBehaviorError(AgentError):
    """The model answered with something that cannot be used."""


class ModelError(UnderstudyError):
    """The model could not be reached, or refused the request."""

    def __init__(
        self, text: str = "", *, kind: str = "other", status: int | None = None, retryable: bool = False, retry_after: float | None = None, **where: Any
    ) -> None:
        super().__init__(text, **where)
        self.kind = kind
        """What went wrong, as a word: see the table in `models/openai_errors.py`."""
        self.status = status
        """The status of the HTTP response, if there was one."""
        self.retryable = retryable
        """Whether the same request may succeed later."""
        self.retry_after = retry_after
        """Seconds that the provider asks to wait before that, if it does."""


class RetryExhausted(ModelError):
    """Every attempt failed. The error of the last one is the cause."""


class ModelRetry(ModelError):
    """What was streamed so far is void: the attempt failed, and another one follows. It comes with a delta, and ends nothing."""

    def __init__(self, attempt: int, text: str = "", **where: Any) -> None:
        super().__init__(text or f"attempt {attempt} failed while it was streaming: drop what it has shown", **where)
        self.attempt = attempt


class CheckpointError(UnderstudyError):
    """Bytes that cannot be read back, or a value that cannot be written."""


class CheckpointNotFound(CheckpointError):
    """There is no checkpoint of that name."""


class ResumeError(CheckpointError):
    """The checkpoint cannot be resumed, or not any more."""


class StoreError(CheckpointError):
    """The store could not be reached, or refused. What its client raised is the cause."""


class RunCancelled(UnderstudyError):
    """The run was cancelled, or ran out of time."""

    def __init__(self, text: str = "", **where: Any) -> None:
        super().__init__(text, **where)
        self.contexts: tuple[Any, ...] = ()
        """Where the run stood: an `InterruptContext` for each agent that was at work."""


def forget_frames(error: BaseException) -> None:
    """Take the tracebacks from an error and from those that have led to it: their frames keep whatever was in use when it was raised."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        next_one = stack.pop()
        if next_one is not None and id(next_one) not in seen:
            seen.add(id(next_one))
            next_one.__traceback__ = None
            stack.extend((next_one.__cause__, next_one.__context__))


def text_of(error: BaseException) -> str:
    """What it says; also of one that fails at saying it."""
    try:
        return str(error)
    except Exception as worse:  # noqa: BLE001 -- whatever it is, the first one is what matters
        return f"(its text cannot be had: {type(worse).__name__})"
