"""The destinations of traces in the environment: one target for each configured service.

The module knows each service's variables, OTLP endpoint and headers, and reports incomplete or
wrong variables. It sends nothing, and does not import OpenTelemetry.
"""

from __future__ import annotations

import base64
import difflib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from ..environment import refuse_mixed
from ..errors import UsageError

__all__ = ["OtlpTarget", "targets_of"]

_COZELOOP: Final = "https://api.coze.cn"
_LANGFUSE: Final = "https://cloud.langfuse.com"
_APMPLUS: Final = "http://apmplus-{region}.volces.com:4317"
_APMPLUS_REGIONS: Final = (
    "cn-beijing",
    "cn-shanghai",
    "cn-guangzhou",
    "cn-hongkong",
    "ap-southeast-1",
    "ap-southeast-3",
)
"""The known regions. Another region of that form is accepted."""
_REGION: Final = re.compile(r"[a-z]{2}-[a-z]+(-[0-9]+)?")
_SECONDS: Final = 10.0
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

_OTLP_HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_LANGFUSE_KEYS: Final = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
_SENT_TO: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "COZELOOP_API_BASE_URL": ("COZELOOP_API_TOKEN",),
        "LANGFUSE_HOST": _LANGFUSE_KEYS,
        "LANGFUSE_BASE_URL": _LANGFUSE_KEYS,
        "APMPLUS_HOST": ("APMPLUS_APP_KEY",),
        "OTEL_EXPORTER_OTLP_ENDPOINT": _OTLP_HEADERS,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": _OTLP_HEADERS,
    }
)
"""The keys that are sent to each address."""

Protocol = Literal["http/protobuf", "grpc"]


class OtlpTarget(NamedTuple):
    """One service that accepts OTLP."""

    name: str
    endpoint: str
    headers: Mapping[str, str]
    protocol: Protocol = "http/protobuf"
    resource: Mapping[str, str] = {}
    """The resource attributes that the service requires."""
    timeout: float = _SECONDS

    def __repr__(self) -> str:  # without the headers, because they contain keys
        return f"OtlpTarget({self.name!r}, {self.endpoint!r})"


def targets_of(variables: Mapping[str, str]) -> tuple[OtlpTarget, ...]:
    """Return the services that these variables configure, in the order of their names.

    An empty variable counts as missing.
    """
    for address, keys in _SENT_TO.items():
        refuse_mixed(variables, address, keys)
    given = {name: value.strip() for name, value in variables.items() if value.strip()}
    found = (_apmplus(given), _cozeloop(given), _langfuse(given), _otlp(given))
    return tuple(target for target in found if target is not None)


def _both(given: Mapping[str, str], service: str, one: str, two: str) -> tuple[str, str] | None:
    """Return the values of two variables that require each other."""
    has, lacks = (one, two) if one in given else (two, one)
    if has not in given:
        return None
    if lacks not in given:
        msg = (
            f"tracing_from_env(): {has} is set, and {lacks} is not: {service} needs both. Set "
            f"it, or unset {has} to send nothing there."
        )
        raise UsageError(msg)
    for name in (one, two):
        _check_header(name, given[name])
    return given[one], given[two]


def _cozeloop(given: Mapping[str, str]) -> OtlpTarget | None:
    found = _both(given, "CozeLoop", "COZELOOP_API_TOKEN", "COZELOOP_WORKSPACE_ID")
    if found is None:
        return None
    base = _address(given, "COZELOOP_API_BASE_URL", _COZELOOP)
    return OtlpTarget(
        "CozeLoop",
        f"{base}/v1/loop/opentelemetry/v1/traces",
        {"authorization": f"Bearer {found[0]}", "cozeloop-workspace-id": found[1]},
    )


def _langfuse(given: Mapping[str, str]) -> OtlpTarget | None:
    found = _both(given, "Langfuse", *_LANGFUSE_KEYS)
    if found is None:
        return None
    base = _address(
        given, "LANGFUSE_HOST" if "LANGFUSE_HOST" in given else "LANGFUSE_BASE_URL", _LANGFUSE
    )
    key = base64.b64encode(f"{found[0]}:{found[1]}".encode()).decode()
    return OtlpTarget(
        "Langfuse",
        f"{base}/api/public/otel/v1/traces",
        {"authorization": f"Basic {key}", "x-langfuse-ingestion-version": "4"},
    )


def _apmplus(given: Mapping[str, str]) -> OtlpTarget | None:
    key = given.get("APMPLUS_APP_KEY")
    if key is None:
        return None
    _check_header("APMPLUS_APP_KEY", key)
    region = given.get("APMPLUS_REGION", _APMPLUS_REGIONS[0])
    close = difflib.get_close_matches(region.lower(), _APMPLUS_REGIONS, 1, 0.75)
    if region not in _APMPLUS_REGIONS and (close or not _REGION.fullmatch(region)):
        meant = f"Is {close[0]!r} meant? " if close else ""
        msg = (
            "tracing_from_env(): APMPLUS_REGION must be one of "
            f"{', '.join(_APMPLUS_REGIONS)}, got {region!r}. {meant}Without it, the first "
            "is used."
        )
        raise UsageError(msg)
    endpoint = _address(given, "APMPLUS_HOST", _APMPLUS.format(region=region))
    return OtlpTarget(
        "APMPlus", endpoint, {"x-byteapm-appkey": key}, "grpc", {"apmplus.business_type": "llm"}
    )


def _otlp(given: Mapping[str, str]) -> OtlpTarget | None:
    """Read the standard variables: those for traces override those for all signals."""
    own, base = (
        given.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        given.get("OTEL_EXPORTER_OTLP_ENDPOINT"),
    )
    if (own is None and base is None) or given.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    named = (
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
        if "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" in given
        else "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    protocol = given.get(named, "http/protobuf")
    if protocol not in ("http/protobuf", "grpc"):
        msg = f"tracing_from_env(): {named} must be 'http/protobuf' or 'grpc', got {protocol!r}."
        raise UsageError(msg)
    if own is not None:
        endpoint = _address(given, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own, is_whole=True)
    else:
        endpoint = _address(given, "OTEL_EXPORTER_OTLP_ENDPOINT", base or "")
        endpoint += "" if protocol == "grpc" else "/v1/traces"
    headers: dict[str, str] = {}
    for name in _OTLP_HEADERS:
        headers |= _headers(name, given.get(name, ""))
    return OtlpTarget(
        "OTLP",
        endpoint,
        headers,
        "grpc" if protocol == "grpc" else "http/protobuf",
        timeout=_timeout(given),
    )


def _timeout(given: Mapping[str, str]) -> float:
    for name in ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"):
        text = given.get(name)
        if text is not None:
            try:
                seconds = float(text)
            except ValueError:
                seconds = -1.0
            if not 0 < seconds < _LONGEST:
                msg = (
                    f"tracing_from_env(): {name} must be a number of seconds above 0, got {text!r}."
                )
                raise UsageError(msg)
            return seconds
    return _SECONDS


_LONGEST: Final = 3600.0


def _headers(name: str, text: str) -> dict[str, str]:
    """Parse `key=value,key=value`, percent-encoded."""
    found = {}
    for number, pair in enumerate(part for part in text.split(",") if part.strip()):
        key, has, value = pair.partition("=")
        if not has or not _HEADER_NAME.fullmatch(key.strip()):
            msg = (
                f"tracing_from_env(): part {number + 1} of {name} must be `name=value`. "
                "Write `name=value,name=value`, with values percent-encoded."
            )
            raise UsageError(msg)
        found[key.strip().lower()] = unquote(value.strip())
        _check_header(name, found[key.strip().lower()])
    return found


def _address(given: Mapping[str, str], name: str, otherwise: str, *, is_whole: bool = False) -> str:
    """Return an http(s) address, without a trailing slash unless it `is_whole`."""
    text = given.get(name, otherwise)
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        is_good = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and not re.search(r"\s", whole)
            and parts.port != 0
        )
    except ValueError:
        is_good = False
    if not is_good:
        msg = (
            f"tracing_from_env(): {name} must be a URL such as "
            f"{otherwise if otherwise != text else 'http://localhost:4318'!r}, got "
            f"{text!r}."
        )
        raise UsageError(msg)
    return whole if is_whole else whole.rstrip("/")


def _check_header(name: str, value: str) -> None:
    if not value.isascii() or not value.isprintable():
        msg = (
            f"tracing_from_env(): {name} has characters that a header cannot contain. Copy it "
            "again, without quotes and line breaks."
        )
        raise UsageError(msg)
