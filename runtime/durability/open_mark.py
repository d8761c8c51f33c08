"""What says in a store that a run is not finished, so that another process finds it.

Owns: what the mark holds, and whether it is there. It must never write: what is to be written is returned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ..clock import boottime_of
from ..codec.packing import pack, unpack
from ..data.chat import new_id
from ..errors import CheckpointError
from ..quick_init import quick
from ..stores.writes import Put, Remove, Write
from .store_keys import open_key

if TYPE_CHECKING:
    from ..clock import Clock
    from ..data.agent_input import AgentInput

__all__ = ["OpenMark", "UnfinishedRun", "input_mark", "labels_of", "read_mark", "trace_of"]

_OPEN_SECONDS: Final = 30.0
"""How often a run at work writes its mark again: a store that is pruned may forget what is as old as that, but not what was written since."""

_LONGEST_ID: Final = 2000
_TRACE: Final = 55
"""Characters of a span's name, as W3C has it."""


@quick
@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that is not finished, as its mark in the store has it."""

    id: str
    agent: str
    checkpoint_id: str
    steps: bool
    """Whether each of its steps is recorded."""
    session_id: str | None = None
    version: str | None = None
    """The version of the program that began it, if that has one."""
    attempts: int = 0
    """How often a process was lost while it worked on the run, before the last one."""
    keep: float | None = 0.0
    """For how many seconds it is kept how the run has ended; None: for ever."""
    input: str | None = None
    """What tells its input from another one, if the caller has named the run."""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What its caller has called it."""
    trace: str | None = None
    """The name of its span, if it is traced: that of what continues it links to it."""


class OpenMark:
    """The mark of one run: CLOSED, or OPEN until it is to be written again."""

    __slots__ = ("_until", "_writer", "is_open", "key", "run", "trace_before")

    def __init__(self, run: UnfinishedRun, trace_before: str | None = None) -> None:
        self.run = run
        self.trace_before = trace_before or run.trace  # the span of what came before, in whichever process, if it continues
        self.key = open_key(run.agent, run.id)
        self.is_open = False
        self._until = math.inf
        self._writer = new_id()  # so that no other process writes the same bytes, and what it has written is not taken for this one's

    def of_saved(self, content: Mapping[str, Any], checkpoint_id: str, keep: float | None, input: str | None) -> OpenMark:  # noqa: A002 -- what it is
        """That of the run which a save is of."""
        run, agent = self.run, content.get("agent")
        agent, keep = agent if isinstance(agent, str) else run.agent, run.keep if keep == 0.0 else keep
        labels, before = labels_of(content), trace_of(content)
        own = UnfinishedRun(content["run"], agent, checkpoint_id, run.steps, run.session_id, run.version, run.attempts, keep, input, labels, run.trace)
        return OpenMark(own, before)

    def put(self) -> Put:
        """Say that the run is not finished."""
        run = self.run
        said: dict[str, Any] = {"checkpoint": run.checkpoint_id, "steps": run.steps, "by": self._writer}
        if run.session_id is not None:
            said["session"] = run.session_id
        if run.version is not None:
            said["version"] = run.version
        if run.keep != 0.0:
            said["keep"] = run.keep
        if run.input is not None:
            said["input"] = run.input
        if run.labels:
            said["labels"] = dict(run.labels)
        if run.trace is not None:
            said["trace"] = run.trace
        if run.attempts:
            said["attempts"] = run.attempts
        return Put(self.key, pack(said))

    def note_trace(self, trace: str) -> None:
        """Its span has that name: what continues the run will find it."""
        self.run = replace(self.run, trace=trace)

    def kept_with_saves(self) -> dict[str, Any]:
        """What a save says of the run, too."""
        run = self.run
        return ({"labels": dict(run.labels)} if run.labels else {}) | ({} if run.trace is None else {"trace": run.trace})

    def count(self, attempts: int) -> None:
        """So often it was taken, this time included, since a process last left it in good order."""
        before = max(0, attempts - 1)
        if before != self.run.attempts:
            self.run = replace(self.run, attempts=before)

    def opened(self, clock: Clock | None) -> None:
        """It was written."""
        self.is_open = True
        self._until = math.inf if clock is None else boottime_of(clock) + _OPEN_SECONDS

    def is_due(self, clock: Clock | None) -> bool:
        """Whether it has to be written again."""
        return self.is_open and clock is not None and boottime_of(clock) > self._until

    def remove(self) -> list[Write]:
        """Say that there is nothing left to do."""
        return [Remove(self.key)] if self.is_open else []


def read_mark(agent: str, run_id: str, data: bytes) -> UnfinishedRun:
    """The run that a mark says is not finished. Raises `CheckpointError`."""
    said: Any = unpack(data)
    if isinstance(said, dict):
        checkpoint_id, steps, keep, attempts = said.get("checkpoint"), said.get("steps"), said.get("keep", 0.0), said.get("attempts", 0)
        texts = {name: said.get(name) for name in ("session", "version", "input")}
        fits = all(isinstance(text, str | None) for text in texts.values()) and isinstance(keep, int | float | None) and type(attempts) is int
        labels = labels_of(said)
        if isinstance(checkpoint_id, str) and 0 < len(checkpoint_id) <= _LONGEST_ID and type(steps) is bool and fits:
            return UnfinishedRun(
                run_id, agent, checkpoint_id, steps, texts["session"], texts["version"], attempts, keep, texts["input"], labels, trace_of(said)
            )
    msg = f"the mark that says that run {run_id} is not finished is damaged."
    raise CheckpointError(msg)


def labels_of(said: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a run, as a mark or a checkpoint has them. What is damaged is none."""
    labels = said.get("labels")
    return labels if isinstance(labels, dict) and all(isinstance(part, str) for label in labels.items() for part in label) else {}


def trace_of(said: Mapping[str, Any]) -> str | None:
    """The name of a run's span, as a mark or a checkpoint has it. What is damaged is none."""
    trace = said.get("trace")
    return trace if isinstance(trace, str) and len(trace) == _TRACE else None


def input_mark(given: AgentInput) -> str:
    """What tells this input from another one."""
    from hashlib import sha256  # noqa: PLC0415 -- a part of the standard library that most programs do without

    said = [(message.role, message.content, message.tool_calls, message.tool_call_id) for message in given.messages]
    return sha256(pack(said)).hexdigest()[:32]
