"""The check if anything observes a run.

Each run checks once, in well under a microsecond if nothing observes it. The module finds the
tracer and the instruments of the program's providers, and decides if spans contain messages. It is
never the first to import OpenTelemetry: a program that does not trace does not pay for it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..log import loggers
from .meters import Meters, OtelMeters
from .opening import Opener
from .run_telemetry import RunTelemetry, WatchedRun

if TYPE_CHECKING:
    from .meters import SystemReadings

__all__ = ["Switch", "switch", "wants_content"]

H = TypeVar("H")

_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable of the conventions that requests content in spans."""


class Switch:
    """The observers in this process."""

    __slots__ = ("_asked", "_handles", "_meters", "_opener", "own")

    def __init__(self) -> None:
        self._opener: tuple[object, Opener] | None = None  # with its provider
        self._meters: tuple[object, OtelMeters] | None = None
        self._asked: tuple[str, ...] = ()  # providers that OpenTelemetry was asked for once
        self._handles: tuple[
            bool, ...
        ] = ()  # this library's open handles that send spans: True for those with content
        # A provider of this library, which sends nothing while no handle is open.
        self.own: object = None

    def opened(self, *, content: bool) -> None:
        """Note that a handle now sends spans, with or without content."""
        self._handles = (*self._handles, content)

    def closed(self, *, content: bool) -> None:
        """Note that such a handle was closed."""
        left = list(self._handles)
        left.remove(content)
        self._handles = tuple(left)

    def watch(
        self,
        run: WatchedRun,
        agent: str,
        system: H,
        readings_of: Callable[[H], SystemReadings],
        more: tuple[Meters, ...],
    ) -> RunTelemetry | None:
        """Return the observer of that run, if any. `more` are meters of its system alone."""
        opener, meters = None, more
        if "opentelemetry" in sys.modules:
            opener = self._tracing()
            otel = self._metering()
            if otel is not None:
                meters = (*more, otel)
                otel.knows(readings_of(system))
        if opener is None and not meters and not loggers.run.isEnabledFor(logging.DEBUG):
            return None
        return RunTelemetry(run, agent, opener, meters)

    def _tracing(self) -> Opener | None:
        api: Any = sys.modules.get("opentelemetry.trace")
        provider = (
            None
            if api is None or self._is_unset(api, "_TRACER_PROVIDER")
            else api.get_tracer_provider()
        )
        if provider is None or (provider is self.own and not self._handles):
            return None
        known = self._opener
        if known is None or known[0] is not provider:
            if _is_the_api_itself(provider, "opentelemetry.trace"):
                return None
            content = wants_content()
            parts = SimpleNamespace(trace=api, context=sys.modules["opentelemetry.context"])
            known = self._opener = (
                provider,
                Opener(parts, provider.get_tracer("offbook"), content=content),
            )
        opener = known[1]
        return (
            opener
            if opener.content or True not in self._handles
            else Opener(opener.api, opener.tracer, content=True)
        )

    def _is_unset(self, module: object, name: str) -> bool:
        """Return True if the program has certainly set no provider.

        Asking OpenTelemetry takes ten times as long, because it reads the environment each time.
        The variable is not public; where it is missing, OpenTelemetry is asked. It is also asked
        once, for a provider named by the environment.
        """
        if name not in self._asked:
            self._asked = (*self._asked, name)
            return False
        return vars(module).get(name, module) is None

    def _metering(self) -> OtelMeters | None:
        api: Any = sys.modules.get("opentelemetry.metrics")
        provider = (
            None
            if api is None
            or self._is_unset(sys.modules.get("opentelemetry.metrics._internal"), "_METER_PROVIDER")
            else api.get_meter_provider()
        )
        if provider is None or _is_the_api_itself(provider, "opentelemetry.metrics"):
            return None
        if self._meters is None or self._meters[0] is not provider:
            self._meters = provider, OtelMeters(provider)
        return self._meters[1]


def _is_the_api_itself(provider: object, package: str) -> bool:
    """Return True if this is the API's default provider, which drops everything."""
    return type(provider).__module__.startswith(package)


def wants_content() -> bool:
    """Return True if the environment requests content."""
    return os.environ.get(_CONTENT, "").strip().lower() in (
        "true",
        "1",
        "span_only",
        "span_and_event",
    )


switch: Final = Switch()
