"""The log of this package: one logger for each room, and whose work a line is about.

Owns: the loggers, the run and agent at work in a context, and the stamp that lines get from it: `run_id`, `agent`, `session_id`. It must never show a line
or set a level: the program does. Where the program has set up nothing, only errors are shown.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol

__all__ = ["LogContext", "OfRun", "at_work", "loggers", "work_as", "work_for"]


class OfRun(Protocol):
    """What belongs to a run, and says to which. Its id may change when its checkpoint is found."""

    @property
    def run_id(self) -> str | None: ...
    @property
    def session_id(self) -> str | None: ...


_run: Final[ContextVar[OfRun | None]] = ContextVar("understudy_run", default=None)
_agent: Final[ContextVar[str | None]] = ContextVar("understudy_agent", default=None)


def at_work() -> OfRun | None:
    """What belongs to the run in whose code this is called."""
    return _run.get()


work_for: Final = _run.set
"""From here on, in this context and all that are copied from it, code is that of a run."""
work_as: Final = _agent.set
"""The same, for an agent of it, by its name."""


class LogContext(logging.Filter):
    """Gives each line `run_id`, `agent` and `session_id`: those of the run and agent in whose code it is written, and None outside of a run.

        handler.addFilter(LogContext())                         # now "%(run_id)s %(agent)s %(message)s" is a format for all lines
        handler.addFilter(LogContext(run_id="order-7"))         # and only the lines of that run pass

    The lines of this package have them by themselves. With `run_id`, `agent` or `session_id`, lines that are about another one do not pass.
    """

    def __init__(self, *, run_id: str | None = None, agent: str | None = None, session_id: str | None = None) -> None:
        super().__init__()
        self._wanted = {name: value for name, value in (("run_id", run_id), ("agent", agent), ("session_id", session_id)) if value is not None}

    def filter(self, record: logging.LogRecord) -> bool:
        run = _run.get()
        said = record.__dict__  # what a line says itself, by `extra=`, goes before
        said.setdefault("run_id", getattr(run, "run_id", None))
        said.setdefault("agent", _agent.get())
        said.setdefault("session_id", getattr(run, "session_id", None))
        return all(said[name] == value for name, value in self._wanted.items())


class Loggers(NamedTuple):
    """The logger of each room: `understudy.durability`, and so on."""

    models: logging.Logger
    stores: logging.Logger
    actor: logging.Logger
    system: logging.Logger
    agent: logging.Logger
    durability: logging.Logger
    sessions: logging.Logger
    run: logging.Logger
    runner: logging.Logger
    telemetry: logging.Logger
    a2a: logging.Logger
    console: logging.Logger
    cluster: logging.Logger
    mcp: logging.Logger
    tools: logging.Logger
    workflow: logging.Logger
    chat_agent: logging.Logger
    handoffs: logging.Logger
    remote: logging.Logger
    realtime: logging.Logger


class _Unheard(logging.Handler):
    """Where the program has set up no logging, Python writes lines from WARNING on to stderr. Of ours only errors: what failed that no program asks about."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        own = logging.getLogger("understudy")
        if logging.lastResort is not None and own.handlers == [self] and not (own.propagate and logging.getLogger().handlers):
            logging.lastResort.handle(record)


def _silenced(logger: logging.Logger) -> None:
    if not logger.handlers:
        logger.addHandler(_Unheard())


def _of_room(room: str) -> logging.Logger:
    made = logging.getLogger(f"understudy.{room}")
    if not any(isinstance(one, LogContext) for one in made.filters):
        made.addFilter(LogContext())
    return made


_silenced(logging.getLogger("understudy"))
loggers: Final = Loggers(*map(_of_room, Loggers._fields))
