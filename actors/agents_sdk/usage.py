"""What model calls have cost, in the SDK's words.

Owns: `Usage` and its sums, and its JSON form. It must never count anything itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

__all__ = ["RequestUsage", "Usage", "deserialize_usage", "input_details", "output_details", "serialize_usage", "usage_of_response"]


_DETAILS: Final = (InputTokensDetails, OutputTokensDetails)
"""Of which nearly all details are: it takes time to find out that one is no mapping."""


def input_details(cached: int | None = 0, written: int | None = 0) -> InputTokensDetails:
    return InputTokensDetails(cached_tokens=cached or 0, cache_write_tokens=written or 0)


def output_details(reasoning: int | None = 0) -> OutputTokensDetails:
    return OutputTokensDetails(reasoning_tokens=reasoning or 0)


@dataclass
class RequestUsage:
    """What one request has cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens_details: OutputTokensDetails


@dataclass
class Usage:
    """What the requests of a run have cost so far."""

    requests: int = 0
    input_tokens: int = 0
    input_tokens_details: InputTokensDetails = field(default_factory=input_details)
    output_tokens: int = 0
    output_tokens_details: OutputTokensDetails = field(default_factory=output_details)
    total_tokens: int = 0
    request_usage_entries: list[RequestUsage] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Providers leave them out, and chat completions call them by other names.
        details: Any = self.input_tokens_details
        if not isinstance(details, InputTokensDetails) or details.cached_tokens is None or getattr(details, "cache_write_tokens", None) is None:
            self.input_tokens_details = input_details(_value(details, "cached_tokens"), _value(details, "cache_write_tokens"))
        details = self.output_tokens_details
        if not isinstance(details, OutputTokensDetails) or details.reasoning_tokens is None:
            self.output_tokens_details = output_details(_value(details, "reasoning_tokens"))

    def add(self, other: Usage) -> None:
        """Add another one to this one."""
        self.requests += other.requests or 0
        self.input_tokens += other.input_tokens or 0
        self.output_tokens += other.output_tokens or 0
        self.total_tokens += other.total_tokens or 0
        cached, written = _value(other.input_tokens_details, "cached_tokens"), _value(other.input_tokens_details, "cache_write_tokens")
        if cached or written:
            own = self.input_tokens_details
            self.input_tokens_details = input_details(_value(own, "cached_tokens") + cached, _value(own, "cache_write_tokens") + written)
        if reasoning := _value(other.output_tokens_details, "reasoning_tokens"):
            self.output_tokens_details = output_details(_value(self.output_tokens_details, "reasoning_tokens") + reasoning)
        if other.request_usage_entries:
            self.request_usage_entries.extend(other.request_usage_entries)
        elif other.requests == 1 and other.total_tokens > 0:
            self.request_usage_entries.append(
                RequestUsage(
                    other.input_tokens,
                    other.output_tokens,
                    other.total_tokens,
                    other.input_tokens_details or input_details(),
                    other.output_tokens_details or output_details(),
                )
            )

    def copy(self) -> Usage:
        """One of its own: what is added to this one does not show there."""
        twin = Usage(self.requests, self.input_tokens, self.input_tokens_details, self.output_tokens, self.output_tokens_details, self.total_tokens)
        twin.request_usage_entries = list(self.request_usage_entries)
        return twin


def _value(details: Any, name: str) -> int:
    is_mapping = type(details) not in _DETAILS and isinstance(details, Mapping)
    found = details.get(name) if is_mapping else getattr(details, name, None)
    return found or 0


def usage_of_response(response: Any) -> Usage:
    """What a response of the Responses API says of its cost."""
    normalized = getattr(response, "understudy_usage", None)  # a scripted model's, which may have counted more than one request
    if isinstance(normalized, Usage):
        return normalized.copy()
    usage = getattr(response, "usage", None)
    if not usage:
        return Usage()
    return Usage(1, usage.input_tokens, usage.input_tokens_details, usage.output_tokens, usage.output_tokens_details, usage.total_tokens)


def _details_in(details: Any) -> dict[str, int]:
    return {"cached_tokens": _value(details, "cached_tokens"), "cache_write_tokens": _value(details, "cache_write_tokens")}


def _details_out(details: Any) -> dict[str, int]:
    return {"reasoning_tokens": _value(details, "reasoning_tokens")}


def serialize_usage(usage: Usage) -> dict[str, Any]:
    """The usage as JSON, in the form that a `RunState` has."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "input_tokens_details": [_details_in(usage.input_tokens_details)],
        "output_tokens": usage.output_tokens,
        "output_tokens_details": [_details_out(usage.output_tokens_details)],
        "total_tokens": usage.total_tokens,
        "request_usage_entries": [
            {
                "input_tokens": entry.input_tokens,
                "output_tokens": entry.output_tokens,
                "total_tokens": entry.total_tokens,
                "input_tokens_details": _details_in(entry.input_tokens_details),
                "output_tokens_details": _details_out(entry.output_tokens_details),
            }
            for entry in usage.request_usage_entries
        ],
    }


def _first(details: Any) -> Any:
    return details[0] if isinstance(details, list) and details else details


def deserialize_usage(data: Mapping[str, Any]) -> Usage:
    """The usage of that JSON."""
    into, out = _first(data.get("input_tokens_details")), _first(data.get("output_tokens_details"))
    usage = Usage(
        data.get("requests", 0),
        data.get("input_tokens", 0),
        input_details(_value(into, "cached_tokens"), _value(into, "cache_write_tokens")),
        data.get("output_tokens", 0),
        output_details(_value(out, "reasoning_tokens")),
        data.get("total_tokens", 0),
    )
    for entry in data.get("request_usage_entries") or ():
        into, out = _first(entry.get("input_tokens_details")), _first(entry.get("output_tokens_details"))
        usage.request_usage_entries.append(
            RequestUsage(
                entry.get("input_tokens", 0),
                entry.get("output_tokens", 0),
                entry.get("total_tokens", 0),
                input_details(_value(into, "cached_tokens"), _value(into, "cache_write_tokens")),
                output_details(_value(out, "reasoning_tokens")),
            )
        )
    return usage
