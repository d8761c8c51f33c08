"""The measures of runs: what is counted, and OpenTelemetry's instruments for it.

Owns: the names, units and labels of the measures. A name of the conventions for generative AI is used where there is one. It must never read what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from ..data.chat import Usage

__all__ = ["BUCKETS", "COUNTED", "GAUGED", "WAITING", "Meters", "OtelMeters", "SystemReadings", "token_counts"]

BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Seconds."""


GAUGED: Final = MappingProxyType(
    {
        "actors": ("actors", "{actor}", "Actors that have not ended."),
        "queued": ("mailbox.messages", "{message}", "Messages that wait in all mailboxes."),
        "deepest": ("mailbox.deepest", "{message}", "Messages that wait in the fullest mailbox."),
    }
)
"""What a system says of itself now: by its field, the name, unit and description."""
COUNTED: Final = MappingProxyType(
    {
        "handled": ("actor.messages", "{message}", "Messages that actors have handled."),
        "restarts": ("actor.restarts", "{restart}", "Restarts of actors."),
        "dead_letters": ("dead_letters", "{message}", "Messages that no actor has handled."),
    }
)
"""What it says of all its time."""
WAITING: Final = (
    ("interrupts.waiting", "{interrupt}", "Interrupts in the stores of this process that wait for an answer."),
    ("interrupts.oldest", "s", "For how long the oldest of them has waited."),
)


class Meters(Protocol):
    """Takes the measures, on the loop of the run."""

    def run_began(self, agent: str) -> None: ...
    def run_ended(self, agent: str, status: str, seconds: float, *, in_session: bool) -> None: ...
    def model_called(self, model: str, provider: str, seconds: float, first: float | None, usage: Usage | None, error: str | None) -> None: ...
    def tool_called(self, tool: str, agent: str, seconds: float, *, failed: bool) -> None: ...
    def store_wrote(self, seconds: float) -> None: ...
    def recovered(self, agent: str) -> None: ...
    def lease_lost(self, agent: str) -> None: ...


class SystemReadings(Protocol):
    """A system that can be read from any thread, and what waits in the stores of its runs."""

    @property
    def name(self) -> str: ...
    def gauges(self) -> Mapping[str, float]: ...
    def waiting(self) -> tuple[int, float]: ...


def token_counts(usage: Usage) -> tuple[tuple[str, int], ...]:
    return ("input", usage.input_tokens), ("output", usage.output_tokens), ("cached", usage.cached_tokens)


class OtelMeters:
    """OpenTelemetry's instruments."""

    def __init__(self, provider: Any) -> None:
        meter = provider.get_meter("understudy")
        self._lock = Lock()
        self._systems: WeakSet[Any] = WeakSet()
        self._runs = meter.create_counter("understudy.runs", "{run}", "Runs that have ended or come to rest, by status.")
        self._active = meter.create_up_down_counter("understudy.runs.active", "{run}", "Runs at work in this process.")
        self._run_time = _seconds(meter, "understudy.run.duration", "How long runs were at work.")
        self._turns = meter.create_counter("understudy.turns", "{turn}", "Turns of sessions.")
        self._model_time = _seconds(meter, "gen_ai.client.operation.duration", "How long calls of models took.")
        self._first = _seconds(meter, "gen_ai.client.operation.time_to_first_chunk", "How long the first piece of a streamed reply took.")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of calls of models, by model and kind.")
        self._tool_time = _seconds(meter, "understudy.tool.duration", "How long calls of tools took.")
        self._store_time = _seconds(meter, "understudy.store.write.duration", "How long runs waited for a write to their store.")
        self._recovered = meter.create_counter("understudy.runs.recovered", "{run}", "Runs of lost processes that this one has continued.")
        self._lost = meter.create_counter("understudy.leases.lost", "{lease}", "Runs that another process has taken from this one.")
        for field, (name, unit, what) in GAUGED.items():
            meter.create_observable_gauge(f"understudy.{name}", [self._observer(_gauge_of(field))], unit, what)
        for field, (name, unit, what) in COUNTED.items():
            meter.create_observable_counter(f"understudy.{name}", [self._observer(_gauge_of(field))], unit, what)
        for index, (name, unit, what) in enumerate(WAITING):
            meter.create_observable_gauge(f"understudy.{name}", [self._observer(_waiting_of(index))], unit, what)

    def knows(self, system: object) -> None:
        """Read that system, too, as long as it is there."""
        if system not in self._systems:
            with self._lock:
                self._systems.add(system)

    def _observer(self, read: Callable[[Any], float]) -> Callable[[object], Iterable[Any]]:
        def observe(_options: object) -> Iterable[Any]:
            from opentelemetry.metrics import Observation  # noqa: PLC0415 -- it is already imported

            with self._lock:
                systems = list(self._systems)
            sums: dict[str, float] = {}
            for system in systems:
                sums[system.name] = sums.get(system.name, 0) + read(system)
            return [Observation(value, {"understudy.system": name}) for name, value in sums.items()]

        return observe

    def run_began(self, agent: str) -> None:
        self._active.add(1, {"gen_ai.agent.name": agent})

    def run_ended(self, agent: str, status: str, seconds: float, *, in_session: bool) -> None:
        labels = {"gen_ai.agent.name": agent, "understudy.status": status}
        self._active.add(-1, {"gen_ai.agent.name": agent})
        self._runs.add(1, labels)
        self._run_time.record(seconds, labels)
        if in_session:
            self._turns.add(1, labels)

    def model_called(self, model: str, provider: str, seconds: float, first: float | None, usage: Usage | None, error: str | None) -> None:
        labels = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model}
        self._model_time.record(seconds, labels if error is None else {**labels, "error.type": error})
        if first is not None:
            self._first.record(first, labels)
        if usage is not None:
            for kind, count in token_counts(usage):
                self._tokens.record(count, {**labels, "gen_ai.token.type": kind})

    def tool_called(self, tool: str, agent: str, seconds: float, *, failed: bool) -> None:
        self._tool_time.record(seconds, {"gen_ai.tool.name": tool, "gen_ai.agent.name": agent, "understudy.failed": failed})

    def store_wrote(self, seconds: float) -> None:
        self._store_time.record(seconds)

    def recovered(self, agent: str) -> None:
        self._recovered.add(1, {"gen_ai.agent.name": agent})

    def lease_lost(self, agent: str) -> None:
        self._lost.add(1, {"gen_ai.agent.name": agent})


def _seconds(meter: Any, name: str, what: str) -> Any:
    return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=BUCKETS)


def _gauge_of(field: str) -> Callable[[SystemReadings], float]:
    def read(system: SystemReadings) -> float:
        return system.gauges()[field]

    return read


def _waiting_of(index: int) -> Callable[[SystemReadings], float]:
    def read(system: SystemReadings) -> float:
        return system.waiting()[index]

    return read
