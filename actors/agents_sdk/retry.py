"""Whether a call of a model that failed is made again.

Owns: settings, decisions, and the ready-made policies. It must never make a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, TypeAlias

from ...runtime.maybe_await import maybe_await

__all__ = [
    "ModelRetryAdvice",
    "ModelRetryAdviceRequest",
    "ModelRetryBackoffInput",
    "ModelRetryBackoffSettings",
    "ModelRetryNormalizedError",
    "ModelRetrySettings",
    "RetryDecision",
    "RetryPolicy",
    "RetryPolicyContext",
    "retry_policies",
]

_UNSET: Final[Any] = object()


@dataclass
class ModelRetryBackoffSettings:
    """How long is waited before another attempt."""

    initial_delay: float | None = None
    max_delay: float | None = None
    multiplier: float | None = None
    jitter: bool | None = None

    def __post_init__(self) -> None:
        for name in ("initial_delay", "max_delay", "multiplier"):
            value = getattr(self, name)
            if value is not None and value < 0:
                msg = f"ModelRetryBackoffSettings {name} must be at least 0, got {value}"
                raise ValueError(msg)

    def to_json_dict(self) -> dict[str, Any]:
        return asdict(self)


ModelRetryBackoffInput: TypeAlias = ModelRetryBackoffSettings | dict[str, Any]


@dataclass(init=False)
class ModelRetryNormalizedError:
    """What is known of an error, whichever provider it came from."""

    status_code: int | None
    error_code: str | None
    message: str | None
    request_id: str | None
    retry_after: float | None
    is_abort: bool
    is_network_error: bool
    is_timeout: bool

    def __init__(
        self,
        status_code: int | None = _UNSET,
        error_code: str | None = _UNSET,
        message: str | None = _UNSET,
        request_id: str | None = _UNSET,
        retry_after: float | None = _UNSET,
        is_abort: bool = _UNSET,
        is_network_error: bool = _UNSET,
        is_timeout: bool = _UNSET,
    ) -> None:
        given = {
            "status_code": status_code, "error_code": error_code, "message": message, "request_id": request_id, "retry_after": retry_after,
            "is_abort": is_abort, "is_network_error": is_network_error, "is_timeout": is_timeout,
        }  # fmt: skip
        self.explicit = frozenset(name for name, value in given.items() if value is not _UNSET)
        for name, value in given.items():
            setattr(self, name, value if value is not _UNSET else False if name.startswith("is_") else None)


@dataclass
class ModelRetryAdvice:
    """What a model knows of an error of its own."""

    suggested: bool | None = None
    retry_after: float | None = None
    replay_safety: str | None = None
    reason: str | None = None
    normalized: ModelRetryNormalizedError | None = None
    response_started: bool = False


@dataclass
class ModelRetryAdviceRequest:
    """What a model is asked about an error."""

    error: Exception
    attempt: int
    stream: bool
    previous_response_id: str | None = None
    conversation_id: str | None = None


@dataclass
class RetryDecision:
    """Whether another attempt is made, and when."""

    retry: bool
    delay: float | None = None
    reason: str | None = None
    approve_unsafe_replay: bool = False
    """Whether it may be made although the provider may have done the work."""
    vetoes: bool = field(default=False, init=False, repr=False, compare=False)
    may_be_overruled: bool = field(default=False, init=False, repr=False, compare=False)
    approves_replay: bool = field(default=False, init=False, repr=False, compare=False)


@dataclass
class RetryPolicyContext:
    """What a policy decides by."""

    error: Exception
    attempt: int
    max_retries: int
    stream: bool
    normalized: ModelRetryNormalizedError
    provider_advice: ModelRetryAdvice | None = None
    previous_response_id: str | None = None
    conversation_id: str | None = None

    def __post_init__(self) -> None:
        advice = self.provider_advice
        self._authority = (None, None, False) if advice is None else (advice.suggested, advice.replay_safety, advice.response_started)

    @property
    def suggested(self) -> bool | None:
        """What the provider has suggested."""
        return self._authority[0]

    @property
    def replay_safety(self) -> str:
        """Whether the provider says that the request can be made again: `safe`, `unsafe` or `unknown`."""
        safety = self._authority[1]
        return safety if safety in ("safe", "unsafe") else "unknown"

    @property
    def response_started(self) -> bool:
        """Whether the provider had begun to answer."""
        return self._authority[2]

    @property
    def stateful_request(self) -> bool:
        """Whether the request stands on what the provider keeps."""
        return bool(self.previous_response_id or self.conversation_id)


RetryPolicy: TypeAlias = Callable[[RetryPolicyContext], Any]


@dataclass
class ModelRetrySettings:
    """How often a call is made again, when, and after which errors."""

    max_retries: int | None = None
    backoff: ModelRetryBackoffInput | None = None
    policy: Callable[..., Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.backoff, dict):
            self.backoff = ModelRetryBackoffSettings(**self.backoff)

    def resolve(self, other: ModelRetrySettings) -> ModelRetrySettings:
        """These settings, with all that the other one says in their place."""
        changes = {name: value for name in ("max_retries", "policy") if (value := getattr(other, name)) is not None}
        backoff = other.backoff
        if isinstance(self.backoff, ModelRetryBackoffSettings):
            more = {one.name: value for one in fields(self.backoff) if (value := getattr(backoff, one.name, None)) is not None}
            backoff = replace(self.backoff, **more)
        return replace(self, **changes, backoff=backoff)

    def to_json_dict(self) -> dict[str, Any]:
        backoff = self.backoff
        return {"max_retries": self.max_retries, "backoff": backoff.to_json_dict() if isinstance(backoff, ModelRetryBackoffSettings) else None}


async def _decide(policy: RetryPolicy, context: RetryPolicyContext) -> RetryDecision:
    found = await maybe_await(policy(context))
    return found if isinstance(found, RetryDecision) else RetryDecision(bool(found))


def _joined(one: RetryDecision, other: RetryDecision) -> RetryDecision:
    """Two decisions for another attempt, as one; the later says more."""
    joined = RetryDecision(True, other.delay if other.delay is not None else one.delay, other.reason or one.reason)
    joined.approve_unsafe_replay = one.approve_unsafe_replay or other.approve_unsafe_replay
    joined.approves_replay = one.approves_replay or other.approves_replay
    return joined


def _overruled(veto: RetryDecision, decision: RetryDecision | None) -> RetryDecision:
    """A veto, unless the decision takes the risk that it warns of."""
    if decision is None or not decision.retry or not decision.approve_unsafe_replay:
        return veto
    return _joined(RetryDecision(True, reason=veto.reason), decision)


class _Policies:
    """The ready-made policies."""

    __slots__ = ()

    def never(self) -> RetryPolicy:
        """No call is made again."""
        return lambda _context: False

    def provider_suggested(self) -> RetryPolicy:
        """What the model itself suggests."""

        def policy(context: RetryPolicyContext) -> bool | RetryDecision:
            if context.suggested is None:
                return False
            advice = context.provider_advice
            decision = RetryDecision(context.suggested, advice.retry_after if advice and context.suggested else None, advice.reason if advice else None)
            if context.suggested:
                decision.approves_replay = context.replay_safety == "safe"
            else:
                decision.vetoes = True
                decision.may_be_overruled = context.replay_safety == "unsafe"
            return decision

        return policy

    def network_error(self) -> RetryPolicy:
        """After errors of the network, and when it took too long."""
        return lambda context: context.normalized.is_network_error or context.normalized.is_timeout

    def retry_after(self) -> RetryPolicy:
        """When the provider says when."""

        def policy(context: RetryPolicyContext) -> bool | RetryDecision:
            delay = context.normalized.retry_after
            if delay is None and context.provider_advice is not None:
                delay = context.provider_advice.retry_after
            return False if delay is None else RetryDecision(True, delay)

        return policy

    def http_status(self, statuses: Iterable[int]) -> RetryPolicy:
        """After responses with one of these statuses."""
        allowed = frozenset(statuses)
        return lambda context: context.normalized.status_code in allowed

    def all(self, *policies: RetryPolicy) -> RetryPolicy:
        """If each of them says so."""

        async def policy(context: RetryPolicyContext) -> RetryDecision:
            joined, veto = RetryDecision(bool(policies)), None
            for one in policies:
                decision = await _decide(one, context)
                if decision.vetoes and decision.may_be_overruled:
                    veto = veto or decision
                elif decision.vetoes or not decision.retry:
                    return decision
                else:
                    joined = _joined(joined, decision)
            return joined if veto is None else _overruled(veto, joined)

        return policy

    def any(self, *policies: RetryPolicy) -> RetryPolicy:
        """If one of them says so."""

        async def policy(context: RetryPolicyContext) -> RetryDecision:
            joined: RetryDecision | None = None
            last, veto = RetryDecision(False), None
            for one in policies:
                decision = await _decide(one, context)
                if decision.vetoes and decision.may_be_overruled:
                    veto = veto or decision
                elif decision.vetoes:
                    return decision
                elif decision.retry:
                    joined = decision if joined is None else _joined(joined, decision)
                else:
                    last = decision
            return _overruled(veto, joined) if veto is not None else joined or last

        return policy


retry_policies: Final = _Policies()
