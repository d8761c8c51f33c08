"""The metrics of runs, and OpenTelemetry's instruments for them.

The module defines their names, units and labels, which follow the semantic conventions for
generative AI where these exist. It does not read messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from ..data.chat import Usage

__all__ = [
    "BUCKETS",
    "COUNTED",
    "GAUGED",
    "WAITING",
    "CalledModel",
    "Meters",
    "OtelMeters",
    "SystemReadings",
    "token_counts",
]

BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""In seconds."""


GAUGED: Final = MappingProxyType(
    {
        "actors": ("actors", "{actor}", "Actors that have not ended."),
        "queued": ("mailbox.messages", "{message}", "Messages that wait in all mailboxes."),
        "deepest": ("mailbox.deepest", "{message}", "Messages that wait in the fullest mailbox."),
    }
)
"""A system's current values: the name, unit and description of each field."""
COUNTED: Final = MappingProxyType(
    {
        "handled": ("actor.messages", "{message}", "Messages that actors have handled."),
        "restarts": ("actor.restarts", "{restart}", "Restarts of actors."),
        "dead_letters": ("dead_letters", "{message}", "Messages that no actor has handled."),
    }
)
"""A system's totals since its start."""
WAITING: Final = (
    (
        "interrupts.waiting",
        "{interrupt}",
        "Interrupts in the stores of this process that wait for an answer.",
    ),
    ("interrupts.oldest", "s", "The time that the oldest of them has waited."),
)


class CalledModel(NamedTuple):
    """The model of a call."""

    model: str
    provider: str
    server: Mapping[str, str | int]
    """`server.address` and `server.port`, as far as they are known."""


class Meters(Protocol):
    """Records the metrics, on the loop of the run."""

    def run_began(self, agent: str) -> None: ...
    def run_ended(
        self, agent: str, status: str, seconds: float, error: str | None, *, in_session: bool
    ) -> None: ...
    def model_called(
        self,
        called: CalledModel,
        seconds: float,
        first: float | None,
        usage: Usage | None,
        error: str | None,
    ) -> None: ...
    def tool_called(self, tool: str, agent: str, seconds: float, error: str | None) -> None: ...
    def store_wrote(self, seconds: float) -> None: ...
    def recovered(self, agent: str) -> None: ...
    def lease_lost(self, agent: str) -> None: ...


class SystemReadings(Protocol):
    """A system with readings for any thread, including the interrupts in its runs' stores."""

    @property
    def name(self) -> str: ...
    def gauges(self) -> Mapping[str, float]: ...
    def waiting(self) -> tuple[int, float]: ...


def token_counts(usage: Usage) -> tuple[tuple[str, int], ...]:
    """Return the token counts by type.

    Tokens read from a cache are part of the input: a separate type would count them twice.
    """
    return ("input", usage.input_tokens), ("output", usage.output_tokens)


class OtelMeters:
    """OpenTelemetry's instruments."""

    def __init__(self, provider: Any) -> None:
        meter = provider.get_meter("offbook")
        self._lock = Lock()
        self._systems: WeakSet[Any] = WeakSet()
        self._runs = meter.create_counter(
            "offbook.runs", "{run}", "Runs that have ended or come to rest, by status."
        )
        self._active = meter.create_up_down_counter(
            "offbook.runs.active", "{run}", "Running runs in this process."
        )
        self._run_time = _seconds(
            meter, "gen_ai.workflow.duration", "The time that runs were running."
        )
        self._turns = meter.create_counter("offbook.turns", "{turn}", "Turns of sessions.")
        self._model_time = _seconds(
            meter, "gen_ai.client.operation.duration", "How long calls of models took."
        )
        self._first = _seconds(
            meter,
            "gen_ai.client.operation.time_to_first_chunk",
            "How long the first piece of a streamed reply took.",
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of calls of models, by model and kind."
        )
        self._tool_time = _seconds(
            meter, "gen_ai.execute_tool.duration", "How long calls of tools took."
        )
        self._store_time = _seconds(
            meter,
            "offbook.store.write.duration",
            "How long runs waited for a write to their store.",
        )
        self._recovered = meter.create_counter(
            "offbook.runs.recovered", "{run}", "Runs of lost processes that this one has continued."
        )
        self._lost = meter.create_counter(
            "offbook.leases.lost", "{lease}", "Runs that another process has taken from this one."
        )
        for field, (name, unit, what) in GAUGED.items():
            meter.create_observable_gauge(
                f"offbook.{name}", [self._observer(_gauge_of(field))], unit, what
            )
        for field, (name, unit, what) in COUNTED.items():
            meter.create_observable_counter(
                f"offbook.{name}", [self._observer(_gauge_of(field))], unit, what
            )
        for index, (name, unit, what) in enumerate(WAITING):
            meter.create_observable_gauge(
                f"offbook.{name}", [self._observer(_waiting_of(index))], unit, what
            )

    def knows(self, system: object) -> None:
        """Include that system in the readings, as long as it exists."""
        if system not in self._systems:
            with self._lock:
                self._systems.add(system)

    def _observer(self, read: Callable[[Any], float]) -> Callable[[object], Iterable[Any]]:
        def observe(_options: object) -> Iterable[Any]:
            from opentelemetry.metrics import Observation  # noqa: PLC0415 -- already imported

            with self._lock:
                systems = list(self._systems)
            sums: dict[str, float] = {}
            for system in systems:
                sums[system.name] = sums.get(system.name, 0) + read(system)
            return [Observation(value, {"offbook.system": name}) for name, value in sums.items()]

        return observe

    def run_began(self, agent: str) -> None:
        self._active.add(1, {"gen_ai.agent.name": agent})

    def run_ended(
        self, agent: str, status: str, seconds: float, error: str | None, *, in_session: bool
    ) -> None:
        labels = {"gen_ai.agent.name": agent, "offbook.status": status}
        self._active.add(-1, {"gen_ai.agent.name": agent})
        self._runs.add(1, labels)
        workflow = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": agent,
            "offbook.status": status,
        }
        self._run_time.record(
            seconds, workflow if error is None else {**workflow, "error.type": error}
        )
        if in_session:
            self._turns.add(1, labels)

    def model_called(
        self,
        called: CalledModel,
        seconds: float,
        first: float | None,
        usage: Usage | None,
        error: str | None,
    ) -> None:
        labels = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": called.provider,
            "gen_ai.request.model": called.model,
            **called.server,
        }
        self._model_time.record(
            seconds, labels if error is None else {**labels, "error.type": error}
        )
        if first is not None:
            self._first.record(first, labels)
        if usage is not None:
            for kind, count in token_counts(usage):
                self._tokens.record(count, {**labels, "gen_ai.token.type": kind})

    def tool_called(self, tool: str, agent: str, seconds: float, error: str | None) -> None:
        labels = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": agent,
        }
        self._tool_time.record(
            seconds, labels if error is None else {**labels, "error.type": error}
        )

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
