"""Whether something looks on at runs: asked once for each run, and answered in well under a microsecond where nothing does.

Owns: that answer, the tracer and the instruments of the providers that the program has set, and whether what is said goes into spans. It must never be the
first to import OpenTelemetry: a program that does not trace does not pay for it.
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
from .watch import RunWatch, WatchedRun

if TYPE_CHECKING:
    from .meters import SystemReadings

__all__ = ["Switch", "switch"]

H = TypeVar("H")

_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable of the conventions for generative AI by which a program asks for content in spans."""


class Switch:
    """What looks on in this process."""

    __slots__ = ("_asked", "_handles", "_meters", "_opener", "own")

    def __init__(self) -> None:
        self._opener: tuple[object, Opener] | None = None  # and the provider whose it is
        self._meters: tuple[object, OtelMeters] | None = None
        self._asked: tuple[str, ...] = ()  # what OpenTelemetry was asked for once
        self._handles: tuple[bool, ...] = ()  # of this package's that send spans: whether with content
        self.own: object = None  # a provider of this package's: while no handle is open, it sends nowhere

    def opened(self, *, content: bool) -> None:
        """Spans are sent somewhere from now on, by a handle that wants content in them, or does not."""
        self._handles = (*self._handles, content)

    def closed(self, *, content: bool) -> None:
        """One of them was closed."""
        left = list(self._handles)
        left.remove(content)
        self._handles = tuple(left)

    def watch(self, run: WatchedRun, agent: str, system: H, readings_of: Callable[[H], SystemReadings], more: tuple[Meters, ...]) -> RunWatch | None:
        """What looks on at that run, if anything does. `more` are meters of its system alone."""
        opener, meters = None, more
        if "opentelemetry" in sys.modules:
            opener = self._tracing()
            otel = self._metering()
            if otel is not None:
                meters = (*more, otel)
                otel.knows(readings_of(system))
        if opener is None and not meters and not loggers.run.isEnabledFor(logging.DEBUG):
            return None
        return RunWatch(run, agent, opener, meters)

    def _tracing(self) -> Opener | None:
        api: Any = sys.modules.get("opentelemetry.trace")
        provider = None if api is None or self._is_unset(api, "_TRACER_PROVIDER") else api.get_tracer_provider()
        if provider is None or (provider is self.own and not self._handles):
            return None
        known = self._opener
        if known is None or known[0] is not provider:
            if _is_the_api_itself(provider, "opentelemetry.trace"):
                return None
            content = os.environ.get(_CONTENT, "").strip().lower() in ("true", "1", "span_only", "span_and_event")
            parts = SimpleNamespace(trace=api, context=sys.modules["opentelemetry.context"])
            known = self._opener = provider, Opener(parts, provider.get_tracer("understudy"), content=content)
        opener = known[1]
        return opener if opener.content or True not in self._handles else Opener(opener.api, opener.tracer, content=True)

    def _is_unset(self, module: object, name: str) -> bool:
        """Whether the program has certainly set no provider: to ask OpenTelemetry takes ten times as long, because it looks into the environment each time.

        The variable is not public. Where it is missing, OpenTelemetry is asked; and once, for a provider that the environment names.
        """
        if name not in self._asked:
            self._asked = (*self._asked, name)
            return False
        return vars(module).get(name, module) is None

    def _metering(self) -> OtelMeters | None:
        api: Any = sys.modules.get("opentelemetry.metrics")
        provider = None if api is None or self._is_unset(sys.modules.get("opentelemetry.metrics._internal"), "_METER_PROVIDER") else api.get_meter_provider()
        if provider is None or _is_the_api_itself(provider, "opentelemetry.metrics"):
            return None
        if self._meters is None or self._meters[0] is not provider:
            self._meters = provider, OtelMeters(provider)
        return self._meters[1]


def _is_the_api_itself(provider: object, package: str) -> bool:
    """Whether that is what OpenTelemetry's API has where the program has set nothing: it drops all that it is given."""
    return type(provider).__module__.startswith(package)


switch: Final = Switch()
