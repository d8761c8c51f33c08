"""The errors of understudy: one tree, split by who is at fault.

    UnderstudyError
    ├── UsageError               the caller's mistake; raised at once, before anything has happened
    ├── ActorDeadError           the actor has stopped, or stopped before it handled the message  (also pykka's)
    │   └── ActorFailed          it crashed on this very message; its supervisor decides what happens to it
    ├── AskTimeout               no reply in time; the message may still be handled  (also pykka's Timeout, and TimeoutError)
    ├── HandlerCancelled         the handler was cancelled on request; its actor lives on
    ├── MailboxFull              a bounded mailbox had no room, or dropped the message for a newer one
    ├── SessionBusy              the session works on another message, and this one must not wait
    ├── SystemDraining           the system accepts no new work: it is about to stop
    ├── AgentError               an agent, or something that it uses, did what it must not
    │   ├── TransferError            a transfer to an agent that cannot be reached from there
    │   ├── MaxIterationsExceeded    more model calls than the agent may make
    │   ├── MaxTransfersExceeded     more transfers than the run may make
    │   ├── ToolError                a tool failed, and the agent is set not to report that to the model
    │   ├── HandoffError             a handoff could not be made
    │   ├── GuardrailTripped         a guardrail found something that is not allowed
    │   └── ModelBehaviorError       the answer of the model cannot be used
    ├── ModelError               the model could not be reached, or refused the request
    │   ├── RetryExhausted           every attempt failed; the last one's error is the cause
    │   └── ModelRetry               not the end: what was streamed so far is void, another attempt follows
    ├── CheckpointError          bytes that cannot be read back: damaged, foreign, or of a type that is not registered
    │   ├── CheckpointNotFound       there is no checkpoint of that name
    │   ├── ResumeError              the checkpoint cannot be resumed, or not any more
    │   │   └── RunLost                  another process has the run by now, or may have it
    │   └── StoreError               the store could not be reached, or refused
    │       └── WriteRefused             what was to be written stands on something that is no longer so
    └── RunCancelled             the run was cancelled, or ran out of time

Owns: all error classes that users see. Each error says what was wrong, where, and what to do; `run`, `agent`, `actor` and `message` say where it belongs.
This file must never import another one of the package.
"""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

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
    "RunLost",
    "SessionBusy",
    "StoreError",
    "SystemDraining",
    "ToolError",
    "TransferError",
    "UnderstudyError",
    "UsageError",
    "WriteRefused",
    "forget_frames",
    "text_of",
]


class _Where(TypedDict, total=False):
    """What every error takes beside its text."""

    actor: str | None
    message: object
    run: str | None
    agent: str | None


class _ModelWhere(_Where, total=False):
    kind: str
    status: int | None
    retryable: bool
    retry_after: float | None


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
    """The actor has stopped, or stopped before it handled the message."""


class ActorFailed(ActorDeadError):
    """The actor crashed on this very message, with an exception that is not an ordinary `Exception`.

    That exception goes only to the actor's supervisor: it must not cancel or interrupt the asker.
    """


class AskTimeout(UnderstudyError, pykka.Timeout, TimeoutError):
    """No reply came in time. The message has been sent all the same, and may still be handled."""


class HandlerCancelled(UnderstudyError):
    """The handler was cancelled by `ActorRef.cancel()` before it had a reply."""


class MailboxFull(UnderstudyError):
    """A bounded mailbox had no room for the message, or dropped it for a newer one."""


class SessionBusy(UnderstudyError):
    """The session works on another message, and this one must not wait."""


class SystemDraining(UnderstudyError):
    """The system accepts no new work, because it is about to stop."""


class AgentError(UnderstudyError):
    """An agent, or something that it uses, did what it must not."""


class TransferError(AgentError):
    """A transfer to an agent that cannot be reached from there."""


class MaxIterationsExceeded(AgentError):
    """The agent has made as many model calls as it may, and the model asks for more."""


class MaxTransfersExceeded(AgentError):
    """The run has made as many transfers as it may."""


class ToolError(AgentError):
    """A tool failed, and its agent is set not to report that to the model. The exception of the tool is the cause."""


class HandoffError(AgentError):
    """A handoff could not be made. The exception of its callback is the cause."""


class GuardrailTripped(AgentError):
    """A guardrail found something that is not allowed: `output_info` says what."""

    def __init__(self, text: str = "", *, guardrail: str = "", output_info: Any = None, **where: Unpack[_Where]) -> None:
        super().__init__(text, **where)
        self.guardrail = guardrail
        self.output_info = output_info


class ModelBehaviorError(AgentError):
    """The answer of the model cannot be used."""


class ModelError(UnderstudyError):
    """The model could not be reached, or refused the request."""

    def __init__(
        self,
        text: str = "",
        *,
        kind: str = "other",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        **where: Unpack[_Where],
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
    """The attempt failed, and another one follows: what was streamed so far is void. It comes with a delta, and ends nothing."""

    def __init__(self, attempt: int, text: str = "", **where: Unpack[_ModelWhere]) -> None:
        super().__init__(text or f"attempt {attempt} failed while it was streaming: drop what it has shown", **where)
        self.attempt = attempt


class CheckpointError(UnderstudyError):
    """Bytes that cannot be read back, or a value that cannot be written."""

    path: str | None = None
    """Where in a value that is which cannot be written, as `Order.lines[2].price`."""


class CheckpointNotFound(CheckpointError):
    """There is no checkpoint of that name."""


class ResumeError(CheckpointError):
    """The checkpoint cannot be resumed, or not any more."""


class RunLost(ResumeError):
    """Another process has the run by now, or may have it: this one writes nothing of it any more."""


class StoreError(CheckpointError):
    """The store could not be reached, or refused. The exception of its client is the cause."""


class WriteRefused(StoreError):
    """What was to be written stands on something that is no longer so: nothing of it was written.

    `reason` says what: the `"owner"` is not alive, its claim is of an earlier `"epoch"`, a journal is at another `"position"`, or a `"value"` is another one.
    """

    def __init__(self, text: str = "", *, reason: str = "epoch", key: str = "", **where: Any) -> None:
        super().__init__(text, **where)
        self.reason = reason
        self.key = key


class RunCancelled(UnderstudyError):
    """The run was cancelled, or ran out of time."""

    def __init__(self, text: str = "", **where: Unpack[_Where]) -> None:
        super().__init__(text, **where)
        self.contexts: tuple[Any, ...] = ()
        """The position of the run: an `InterruptContext` for each agent that was at work."""


def forget_frames(error: BaseException) -> None:
    """Remove the tracebacks of an error and of its causes: their frames keep alive every object that was in use when it was raised."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        next_one = stack.pop()
        if next_one is not None and id(next_one) not in seen:
            seen.add(id(next_one))
            next_one.__traceback__ = None
            stack.extend((next_one.__cause__, next_one.__context__))


def text_of(error: BaseException) -> str:
    """The text of an error, even of one whose `__str__` raises."""
    try:
        return str(error)
    except Exception as worse:  # noqa: BLE001 -- the first error matters, not this one
        return f"(its text cannot be had: {type(worse).__name__})"
