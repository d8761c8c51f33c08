"""The errors of offbook: one tree, divided by cause.

    OffbookError
    ├── UsageError               the caller's mistake; raised at once, before anything has happened
    ├── ActorDeadError           the actor has stopped, or stopped before it handled the message
                                 (also pykka's)
    │   └── ActorFailed          it crashed on this very message; its supervisor decides its fate
    ├── AskTimeout               no reply in time; the message may still be handled  (also pykka's
                                 Timeout, and TimeoutError)
    ├── HandlerCancelled         the handler was cancelled on request; its actor lives on
    ├── MailboxFull              a bounded mailbox had no room, or dropped the message for a newer
                                 one
    ├── SessionBusy              the session is working on another message, and this one must not
                                 wait
    ├── SystemDraining           the system accepts no new work: it is about to stop
    ├── AgentError               an agent, or something that it uses, did what it must not
    │   ├── TransferError            a transfer to an agent that is not a possible target
    │   ├── MaxIterationsExceeded    more model calls than the agent may make
    │   ├── MaxTransfersExceeded     more transfers than the run may make
    │   ├── ToolError                a tool failed, and the agent does not report that to the model
    │   ├── HandoffError             a handoff could not be made
    │   ├── GuardrailTripped         a guardrail found something that is not allowed
    │   └── ModelBehaviorError       the model's answer cannot be used
    ├── ModelError               the model could not be reached, or refused the request
    │   ├── RetryExhausted           every attempt failed; the last one's error is the cause
    │   └── ModelRetry               not the end: the text streamed so far is void, another attempt
                                     follows
    ├── CheckpointError          bytes that cannot be read: damaged, foreign, or of a type that is
                                 not registered
    │   ├── CheckpointNotFound       there is no such checkpoint
    │   ├── ResumeError              the checkpoint cannot be resumed, or no longer can
    │   │   └── RunLost                  another process has, or may have, claimed the run
    │   └── StoreError               the store could not be reached, or refused
    │       ├── ValueRefused             a value that the store will never accept
    │       └── WriteRefused             a write whose precondition no longer holds
    └── RunCancelled             the run was cancelled, or timed out

Each error text explains the problem, its place, and the remedy. The attributes `run`, `agent`,
`actor` and `message` identify its context. This module imports no other module of the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypedDict, Unpack

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
    "InboxFull",
    "MailboxFull",
    "MaxIterationsExceeded",
    "MaxTransfersExceeded",
    "ModelBehaviorError",
    "ModelError",
    "ModelRetry",
    "OffbookError",
    "ResumeError",
    "RetryExhausted",
    "RunCancelled",
    "RunEnded",
    "RunLost",
    "RunNotFound",
    "SessionBusy",
    "StoreError",
    "SystemDraining",
    "ToolError",
    "TransferError",
    "UsageError",
    "ValueRefused",
    "WriteRefused",
    "forget_frames",
    "keep_from_logs",
    "kept_from_logs",
    "text_of",
]

_LONGEST_TEXT: Final = 10_000
_MOST_OF_A_GROUP: Final = 10
_DEEPEST: Final = 3
_KEPT: Final = "_offbook_kept_from_logs"


class _Where(TypedDict, total=False):
    """The optional arguments of every error."""

    actor: str | None
    message: object
    run: str | None
    agent: str | None


class _ModelWhere(_Where, total=False):
    kind: str
    status: int | None
    retryable: bool
    retry_after: float | None


class OffbookError(Exception):
    """The base class of all errors that this package raises on purpose."""

    def __init__(
        self,
        text: str = "",
        *,
        actor: str | None = None,
        message: Any = None,
        run: str | None = None,
        agent: str | None = None,
    ) -> None:
        super().__init__(text)
        self.run = run
        """The id of the run that the error belongs to, if any."""
        self.agent = agent
        """The name of the agent that the error belongs to, if any."""
        self.actor = actor
        """The path of the actor that the error belongs to, as in `ActorNode.path`."""
        self.message = message
        """The message that the error belongs to, if any."""


class UsageError(OffbookError):
    """The caller's mistake. Nothing has happened yet."""


class ActorDeadError(OffbookError, pykka.ActorDeadError):
    """The actor has stopped, or stopped before it handled the message."""


class ActorFailed(ActorDeadError):
    """The actor crashed on this very message, with an exception that is not an `Exception`.

    Only the actor's supervisor receives that exception, so that it cannot cancel or interrupt the
    asker.
    """


class AskTimeout(OffbookError, pykka.Timeout, TimeoutError):
    """No reply came in time. The message was sent nevertheless, and may still be handled."""


class HandlerCancelled(OffbookError):
    """The handler was cancelled by `ActorRef.cancel()` before it had a reply."""


class MailboxFull(OffbookError):
    """A bounded mailbox had no room for the message, or dropped it for a newer one."""


class SessionBusy(OffbookError):
    """The session is working on another message, and this one must not wait."""


class InboxFull(OffbookError):
    """The inbox of the session has as many posts that no turn has heard as it may have."""


class SystemDraining(OffbookError):
    """The system accepts no new work, because it is about to stop."""


class AgentError(OffbookError):
    """An agent, or something that it uses, did what it must not."""


class TransferError(AgentError):
    """A transfer to an agent that is not a possible target."""


class MaxIterationsExceeded(AgentError):
    """The agent has reached its limit of model calls, and the model asks for more."""


class MaxTransfersExceeded(AgentError):
    """The run has reached its limit of transfers."""


class ToolError(AgentError):
    """A tool failed, and its agent does not report that to the model.

    The tool's exception is the cause.
    """


class HandoffError(AgentError):
    """A handoff could not be made. The exception of its callback is the cause."""


class GuardrailTripped(AgentError):
    """A guardrail found something that is not allowed: `output_info` describes it."""

    def __init__(
        self,
        text: str = "",
        *,
        guardrail: str = "",
        output_info: Any = None,
        **where: Unpack[_Where],
    ) -> None:
        super().__init__(text, **where)
        self.guardrail = guardrail
        self.output_info = output_info


class ModelBehaviorError(AgentError):
    """The model's answer cannot be used."""


class ModelError(OffbookError):
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
        """The kind of failure, as a word: see the table in `models/openai_errors.py`."""
        self.status = status
        """The status of the HTTP response, if there was one."""
        self.retryable = retryable
        """True if the same request may succeed later."""
        self.retry_after = retry_after
        """Seconds that the provider asks to wait first, if it does."""


class RetryExhausted(ModelError):
    """Every attempt failed. The last error is the cause."""


class ModelRetry(ModelError):
    """The attempt failed, and another one follows: the text streamed so far is void.

    It comes with a delta, and ends nothing.
    """

    def __init__(self, attempt: int, text: str = "", **where: Unpack[_ModelWhere]) -> None:
        super().__init__(
            text or f"attempt {attempt} failed while it was streaming: drop what it has shown",
            **where,
        )
        self.attempt = attempt


class CheckpointError(OffbookError):
    """Bytes that cannot be read, or a value that cannot be written."""

    path: str | None = None
    """The path to the part of a value that cannot be written, such as `Order.lines[2].price`."""


class CheckpointNotFound(CheckpointError):
    """There is no such checkpoint."""


class ResumeError(CheckpointError):
    """The checkpoint cannot be resumed, or no longer can."""


class RunNotFound(CheckpointNotFound):
    """There is no such run."""


class RunEnded(ResumeError):
    """The run has ended, so it hears nothing any more."""


class RunLost(ResumeError):
    """Another process has, or may have, claimed the run: this one writes nothing more of it."""


class StoreError(CheckpointError):
    """The store could not be reached, or refused. The exception of its client is the cause."""


class ValueRefused(StoreError):
    """The store never accepts this value, for example because it is too large.

    Nothing of the operation was written, and a retry is useless.
    """


class WriteRefused(StoreError):
    """A precondition of the write no longer holds: nothing was written.

    `reason` names it: the `"owner"` is not alive, its claim has an earlier `"epoch"`, a journal is
    at another `"position"`, or a `"value"` differs.
    """

    def __init__(
        self, text: str = "", *, reason: str = "epoch", key: str = "", **where: Any
    ) -> None:
        super().__init__(text, **where)
        self.reason = reason
        self.key = key


class RunCancelled(OffbookError):
    """The run was cancelled, or timed out."""

    def __init__(self, text: str = "", **where: Unpack[_Where]) -> None:
        super().__init__(text, **where)
        self.contexts: tuple[Any, ...] = ()
        """The position of the run: an `InterruptContext` for each agent that was running."""


def forget_frames(error: BaseException) -> None:
    """Remove the tracebacks of an error and of its causes.

    Their frames would keep alive every object that was in use when it was raised.
    """
    for one in _chain_of(error):
        one.__traceback__ = None


def keep_from_logs(error: BaseException, reason: str) -> None:
    """Make log records contain this reason instead of the error's text and traceback.

    For errors that may contain data which the program has chosen not to log.
    """
    vars(error)[_KEPT] = reason


def kept_from_logs(error: BaseException) -> str | None:
    """Return the reason not to log the text and traceback of an error, or None.

    It is that of the error, or of one of its causes, which its traceback contains.
    """
    return next((vars(one)[_KEPT] for one in _chain_of(error) if _KEPT in vars(one)), None)


def _chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its causes, and the errors that were being handled."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        next_one = stack.pop()
        if next_one is not None and id(next_one) not in seen:
            seen.add(id(next_one))
            yield next_one
            stack.extend((next_one.__cause__, next_one.__context__))


def text_of(error: BaseException) -> str:
    """Return the text of an error, even if its `__str__` raises.

    The text of a group lists its errors. A very long text is truncated.
    """
    return _bounded(_text_of(error, _DEEPEST))


def _text_of(error: BaseException, depth: int) -> str:
    try:
        text = str(error)
    except Exception as worse:  # noqa: BLE001 -- the first error matters, not this one
        return f"(its text cannot be had: {type(worse).__name__})"
    if not isinstance(error, BaseExceptionGroup) or not depth:
        return text
    inner = [
        f"{type(one).__name__}: {_text_of(one, depth - 1)}"
        for one in error.exceptions[:_MOST_OF_A_GROUP]
    ]
    if (more := len(error.exceptions) - len(inner)) > 0:
        inner.append(f"and {more} more")
    return f"{text}: {'; '.join(inner)}"


def _bounded(text: str) -> str:
    left_out = len(text) - _LONGEST_TEXT
    return text if left_out <= 0 else f"{text[:_LONGEST_TEXT]}… ({left_out:,} more characters)"
