"""Sending spans: `tracing_from_env`, and the handle that stops it.

Spans are sent to each target in OpenTelemetry's threads, and unsent ones are awaited at the end. A
run is never delayed: spans that cannot be sent in time are dropped, and the log reports this once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from ..data.chat import Message
from ..environment import environment
from ..errors import UsageError
from ..log import loggers
from ..telemetry.switch import switch
from .otlp_targets import OtlpTarget, targets_of

__all__ = ["RootSpan", "Tracing", "tracing_from_env"]

_NO_EXTRA: Final = "tracing_from_env() needs OpenTelemetry: pip install 'offbook[otel]'."
_SECONDS: Final = 10.0


def tracing_from_env(
    *,
    capture_content: bool = False,
    service_name: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Tracing:
    """Send the spans of all runs to each service in the environment, until the handle is closed.

        with tracing_from_env() as tracing:            # or call tracing.close() at the end
            result = Runner(agent).query("hello").result()

    CozeLoop: `COZELOOP_API_TOKEN` and `COZELOOP_WORKSPACE_ID` (`COZELOOP_API_BASE_URL`). Langfuse:
    `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY` (`LANGFUSE_HOST`). APMPlus: `APMPLUS_APP_KEY`
    (`APMPLUS_REGION`, `APMPLUS_HOST`). Any collector: `OTEL_EXPORTER_OTLP_ENDPOINT` or
    `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, with the related variables. Variables in a `.env` file
    count, too. Without any of these, nothing is set up or sent, and OpenTelemetry is not imported.

    Spans contain no messages of users, models or tools, unless `capture_content` is True. If the
    program has set a tracer provider of OpenTelemetry's SDK, all of its spans are sent too.
    `variables` replaces the environment.
    """
    targets = targets_of(environment() if variables is None else variables)
    return Tracing(targets, content=capture_content, service_name=service_name)


class Tracing:
    """The export of spans. `close()` waits for unsent spans."""

    def __init__(
        self, targets: Sequence[OtlpTarget], *, content: bool, service_name: str | None
    ) -> None:
        self.targets = tuple(targets)
        self._content = content
        self._processors: list[Any] = []
        self._exporters: list[Any] = []
        self._is_open = bool(targets)
        if not targets:
            return
        try:
            from . import otlp_pipe as pipe  # noqa: PLC0415 -- an extra, and slow to import
        except ImportError as problem:
            raise UsageError(_NO_EXTRA) from problem
        provider = pipe.provider_for(
            service_name,
            {name: value for target in targets for name, value in target.resource.items()},
        )
        for target in targets:
            exporter = pipe.WatchedExporter(target)
            processor = pipe.Door(exporter)
            self._exporters.append(exporter)
            self._processors.append(processor)
            provider.add_span_processor(processor)
        switch.opened(content=content)

    def __repr__(self) -> str:
        names = ", ".join(target.name for target in self.targets) or "nowhere"
        return f"<Tracing to {names}{'' if self._is_open or not self.targets else ', closed'}>"

    def start_span(self, name: str, query: str | Message | None = None) -> RootSpan:
        """Open a span for the following work, with its query: runs that start here are nested.

        End it with the last message, or use it as a `with` block.
        """
        return RootSpan(name if self._is_open else None, query)

    def close(self, timeout: float = _SECONDS) -> bool:
        """Send the remaining spans, and stop.

        Returns True if all were sent; spans left after `timeout` seconds are dropped. It blocks:
        see `aclose`.
        """
        if not self._is_open:
            return all(exporter.is_well for exporter in self._exporters)
        self._is_open = False
        switch.closed(content=self._content)
        until = monotonic() + timeout
        threads = [
            threading.Thread(target=processor.close, name="offbook-tracing-close", daemon=True)
            for processor in self._processors
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - monotonic()))
        for thread, exporter in zip(threads, self._exporters, strict=True):
            if thread.is_alive():
                exporter.give_up()
                loggers.telemetry.warning(
                    "Not all spans could be sent to %s within %g s. The others are dropped.",
                    exporter.name,
                    timeout,
                )
        return all(exporter.is_well for exporter in self._exporters)

    async def aclose(self, timeout: float = _SECONDS) -> bool:
        """Close on an event loop, without blocking other work."""
        return await asyncio.to_thread(self.close, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class RootSpan:
    """A span with a query and the last message, both passed by the program.

    They are therefore in the span even if content is not captured.
    """

    def __init__(self, name: str | None, query: str | Message | None) -> None:
        self._span: Any = None
        self._token: object = None
        if name is None:
            return
        from opentelemetry import context, trace  # noqa: PLC0415 -- already imported

        self._span = trace.get_tracer("offbook").start_span(name)
        self._token = context.attach(trace.set_span_in_context(self._span))
        self._set("input", query)

    def _set(self, which: str, said: str | Message | None) -> None:
        if said is not None:
            text = said.text if isinstance(said, Message) else said
            self._span.set_attributes(
                {f"{which}.value": text, f"langfuse.trace.{which}": text, f"cozeloop.{which}": text}
            )

    def end(self, last_message: str | Message | None = None) -> None:
        """End the span, where it was opened. A second call does nothing."""
        span, self._span = self._span, None
        if span is None:
            return
        from opentelemetry import context  # noqa: PLC0415 -- see above

        self._span = span
        self._set("output", last_message)
        self._span = None
        context.detach(self._token)  # type: ignore[arg-type]  # the result of `attach`
        span.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._span is not None:
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 -- see above

            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        self.end()
