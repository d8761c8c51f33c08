"""The log of this package: one logger for each package, and the run that a record is about.

The module stores the current run and agent of a context, and stamps records with `run_id`, `agent`
and `session_id`. Ids, names and texts from outside are escaped, so that they cannot break a line or
move a cursor. The module sets no level and adds no handler: the program does. If the program has
not configured logging, Python writes warnings and errors to stderr.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol

from .shown_text import in_line

__all__ = ["LogContext", "OfRun", "at_work", "loggers", "work_as", "work_for"]


_STAMPED: Final = ("run_id", "agent", "session_id")


class OfRun(Protocol):
    """An object that belongs to a run. The run's id may change when its checkpoint is found."""

    @property
    def run_id(self) -> str | None: ...
    @property
    def session_id(self) -> str | None: ...


_run: Final[ContextVar[OfRun | None]] = ContextVar("offbook_run", default=None)
_agent: Final[ContextVar[str | None]] = ContextVar("offbook_agent", default=None)


def at_work() -> OfRun | None:
    """Return the object of the run whose code is running."""
    return _run.get()


work_for: Final = _run.set
"""Marks this context, and all its copies, as running code of that run."""
work_as: Final = _agent.set
"""Marks this context, and all its copies, as running code of that agent."""


class LogContext(logging.Filter):
    """A filter that adds `run_id`, `agent` and `session_id` to each log record.

    They identify the run and agent whose code writes the record, and are None outside of a run.

        handler.addFilter(LogContext())                  # allows "%(run_id)s %(agent)s %(message)s"
        handler.addFilter(LogContext(run_id="order-7"))  # passes only the records of that run

    The records of this package have them anyway. With `run_id`, `agent` or `session_id`, records of
    others are dropped.
    """

    def __init__(
        self, *, run_id: str | None = None, agent: str | None = None, session_id: str | None = None
    ) -> None:
        super().__init__()
        self._wanted = {
            name: in_line(value)
            for name, value in (("run_id", run_id), ("agent", agent), ("session_id", session_id))
            if value is not None
        }

    def filter(self, record: logging.LogRecord) -> bool:
        run = _run.get()
        said = record.__dict__  # values from `extra=` take precedence
        said.setdefault("run_id", getattr(run, "run_id", None))
        said.setdefault("agent", _agent.get())
        said.setdefault("session_id", getattr(run, "session_id", None))
        for name in _STAMPED:
            if isinstance(value := said[name], str):
                said[name] = in_line(value)
        return all(said[name] == value for name, value in self._wanted.items())


class Loggers(NamedTuple):
    """The logger of each package: `offbook.durability`, and so on."""

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


class _OneLine:
    """A value of a log record, whose text cannot break a line or move a cursor."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return in_line(str(self._value))

    def __repr__(self) -> str:
        return in_line(repr(self._value))


def _shown(value: object) -> object:
    return (
        value
        if isinstance(value, int | float)
        or (isinstance(value, str) and value.isascii() and value.isprintable())
        else _OneLine(value)
    )


class _OneLineEach(logging.Filter):
    """Escapes the values of each record.

    Ids, tool names and error texts come from models, callers and servers.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_shown, record.args))
        return True


def _of_room(room: str) -> logging.Logger:
    made = logging.getLogger(f"offbook.{room}")
    if not any(isinstance(one, LogContext) for one in made.filters):
        made.addFilter(LogContext())
        made.addFilter(_OneLineEach())
    return made


loggers: Final = Loggers(*map(_of_room, Loggers._fields))
