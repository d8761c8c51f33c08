"""The metrics of one system, for Prometheus to scrape.

The module defines Prometheus' names of the metrics, and the ASGI application for a scrape. It never
blocks the system's loop: it reads counters, and awaits the readings of stores.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..durability.store_access import StoreAccess
from ..errors import UsageError
from ..loopback import LoopbackGate
from ..run.watched_system import watched_system
from ..system.system import ActorSystem
from ..telemetry.meters import BUCKETS, COUNTED, GAUGED, WAITING, CalledModel, token_counts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ..data.chat import Usage
    from ..runner import Runner

__all__ = ["prometheus_app"]

_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[MutableMapping[str, Any], _Receive, _Send], Awaitable[None]]

_NO_EXTRA: Final = (
    "prometheus_app() needs the package prometheus_client: pip install 'offbook[otel]'."
)


class _Meters:
    """Prometheus' instruments, of one system."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 -- an extra

        def seconds(name: str, what: str, labels: tuple[str, ...] = ()) -> Histogram:
            return Histogram(name, what, labels, registry=registry, buckets=BUCKETS)

        model = ("model", "provider")
        self._runs = Counter(
            "offbook_runs",
            "Runs that have ended or come to rest.",
            ("agent", "status"),
            registry=registry,
        )
        self._active = Gauge("offbook_runs_active", "Running runs.", ("agent",), registry=registry)
        self._run_time = seconds(
            "offbook_run_seconds", "The time that runs were running.", ("agent", "status")
        )
        self._turns = Counter(
            "offbook_turns", "Turns of sessions.", ("agent", "status"), registry=registry
        )
        self._model_time = seconds(
            "offbook_model_seconds", "How long calls of models took.", (*model, "error")
        )
        self._first = seconds(
            "offbook_model_first_piece_seconds",
            "How long the first piece of a streamed reply took.",
            model,
        )
        self._tokens = Counter(
            "offbook_tokens", "Tokens of calls of models.", (*model, "kind"), registry=registry
        )
        self._tool_time = seconds(
            "offbook_tool_seconds", "How long calls of tools took.", ("tool", "agent", "failed")
        )
        self._store_time = seconds(
            "offbook_store_write_seconds", "How long runs waited for a write to their store."
        )
        self._recovered = Counter(
            "offbook_runs_recovered",
            "Runs of lost processes that were continued.",
            ("agent",),
            registry=registry,
        )
        self._lost = Counter(
            "offbook_leases_lost",
            "Runs that another process has taken.",
            ("agent",),
            registry=registry,
        )

    def run_began(self, agent: str) -> None:
        self._active.labels(agent).inc()

    def run_ended(
        self, agent: str, status: str, seconds: float, error: str | None, *, in_session: bool
    ) -> None:
        del error  # the status shows it
        self._active.labels(agent).dec()
        self._runs.labels(agent, status).inc()
        self._run_time.labels(agent, status).observe(seconds)
        if in_session:
            self._turns.labels(agent, status).inc()

    def model_called(
        self,
        called: CalledModel,
        seconds: float,
        first: float | None,
        usage: Usage | None,
        error: str | None,
    ) -> None:
        model, provider, _ = called
        self._model_time.labels(model, provider, error or "").observe(seconds)
        if first is not None:
            self._first.labels(model, provider).observe(first)
        for kind, count in () if usage is None else token_counts(usage):
            self._tokens.labels(model, provider, kind).inc(count)

    def tool_called(self, tool: str, agent: str, seconds: float, error: str | None) -> None:
        self._tool_time.labels(tool, agent, "false" if error is None else "true").observe(seconds)

    def store_wrote(self, seconds: float) -> None:
        self._store_time.observe(seconds)

    def recovered(self, agent: str) -> None:
        self._recovered.labels(agent).inc()

    def lease_lost(self, agent: str) -> None:
        self._lost.labels(agent).inc()


class _Readings:
    """The system's readings at the time of a scrape."""

    def __init__(self, system: ActorSystem) -> None:
        self._own = watched_system(system)
        self.waits: tuple[float, float] = (0, 0.0)

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 -- an extra

        said = self._own.gauges()
        for field, (name, _, what) in GAUGED.items():
            yield GaugeMetricFamily(_named(name), what, said.get(field, 0))
        for field, (name, _, what) in COUNTED.items():
            yield CounterMetricFamily(_named(name), what, said.get(field, 0))
        for value, (name, unit, what) in zip(self.waits, WAITING, strict=True):
            yield GaugeMetricFamily(_named(name) + ("_seconds" if unit == "s" else ""), what, value)


def _named(name: str) -> str:
    return f"offbook_{name.replace('.', '_')}"


def prometheus_app(
    system: ActorSystem, runners: Iterable[Runner] = (), *, allow_anonymous: bool = False
) -> Application:
    """Create an ASGI application for Prometheus.

        app.mount("/metrics", prometheus_app(system))           # with FastAPI, or Starlette

    It counts the runs that start in `system` from now on. Waiting interrupts are read from the
    stores of those runs, and of `runners`. On a loopback address, requests with another host's
    name, and requests from web pages of other origins, are refused, unless `allow_anonymous` is
    set.
    """
    if not isinstance(system, ActorSystem):
        msg = (
            "prometheus_app: system must be the ActorSystem of the runs to count, got "
            f"{system!r}. Pass it to the Runner, too: Runner(agent, system=system)."
        )
        raise UsageError(msg)
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 -- an extra
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 -- see above
    except ImportError as problem:
        raise UsageError(_NO_EXTRA) from problem
    registry, own, readings = CollectorRegistry(), watched_system(system), _Readings(system)
    own.add(_Meters(registry))
    registry.register(readings)
    for runner in runners:
        if runner.store is not None:
            own.waits_in(StoreAccess(runner.store))

    async def answer(scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            return
        if scope["method"] not in ("GET", "HEAD"):
            await _respond(send, 405, b"GET or HEAD\n", "text/plain")
            return
        readings.waits = await own.look_from_anywhere()
        accepted = next(
            (value.decode("latin-1") for name, value in scope["headers"] if name == b"accept"), ""
        )
        try:
            encode, kind = choose_encoder(accepted)
        except ValueError:  # an invalid version
            encode, kind = choose_encoder("")
        await _respond(send, 200, encode(registry), kind, has_body=scope["method"] == "GET")

    return (
        answer
        if allow_anonymous
        else LoopbackGate(answer, "prometheus_app(allow_anonymous=True) answers all.")
    )


async def _respond(
    send: _Send, status: int, body: bytes, kind: str, *, has_body: bool = True
) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": headers if status == HTTPStatus.OK else [*headers, (b"allow", b"GET, HEAD")],
        }
    )
    await send({"type": "http.response.body", "body": body if has_body else b""})
