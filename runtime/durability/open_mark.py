"""The mark in a store that a run is unfinished, so that another process can find it.

This module never writes: it returns the writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from ..clock import boottime_of
from ..codec.packing import pack, unpack
from ..data.chat import new_id
from ..data.value import Value
from ..errors import CheckpointError
from ..stores.writes import Put, Remove, Write
from .store_keys import open_key

if TYPE_CHECKING:
    from ..agent.tree import Node
    from ..clock import Clock
    from ..data.agent_input import AgentInput

__all__ = [
    "OpenMark",
    "UnfinishedRun",
    "definitions_of",
    "input_mark",
    "labels_of",
    "lost_text",
    "read_mark",
    "trace_of",
    "why_foreign",
]

_OPEN_SECONDS: Final = 30.0
"""Seconds after which a running run rewrites its mark.

Pruning a store may delete marks that are this old, but not newer ones.
"""

_LONGEST_ID: Final = 2000
_LONGEST_DEFINITIONS: Final = 1000
_TRACE: Final = 55
"""The length of a span's name in W3C format, in characters."""


class UnfinishedRun(Value, frozen=True):
    """An unfinished run, as its mark in the store describes it."""

    id: str
    agent: str
    checkpoint_id: str
    steps: bool
    """Whether each of its steps is recorded."""
    session_id: str | None = None
    version: str | None = None
    """The version of the program that started it, if it has one."""
    attempts: int = 0
    """The number of processes lost while they ran it, before the current one."""
    keep: float | None = 0.0
    """The retention of its result, in seconds; None: forever."""
    input: str | None = None
    """The fingerprint of its input, if the caller has named the run."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that its caller has set."""
    trace: str | None = None
    """The name of its span, if it is traced. The span of the continued run links to it."""
    queued: bool = False
    """Whether it waits for its turn in a session: only this mark is stored yet."""
    unwritten: int = 0
    """The number of consecutive attempts that ended because the next step could not be written."""
    failure: str | None = None
    """The last such step, and the reason."""
    app: str | None = None
    """The program that started it, if its Runner names it: no other program recovers the run."""
    definitions: str | None = None
    """Without `app`: the names of that program's agents and tools, from `definitions_of`."""
    progressed: int = 0
    """The last attempt that recorded a step, as the store counts attempts, if it was not the first.

    Earlier losses no longer count.
    """

    def counted(self, attempts: int) -> int:
        """Return how many of the store's attempts count: those since the last progress."""
        return attempts - max(0, self.progressed - 1)


class OpenMark:
    """The mark of one run: closed, or open until it must be rewritten."""

    __slots__ = ("_until", "_writer", "is_open", "key", "run", "trace_before")

    def __init__(self, run: UnfinishedRun, trace_before: str | None = None) -> None:
        self.run = run
        # The span of the run that this one continues, in any process.
        self.trace_before = trace_before or run.trace
        self.key = open_key(run.agent, run.id)
        self.is_open = False
        self._until = math.inf
        # Makes the bytes unique, so that another process's mark is never taken for this one's.
        self._writer = new_id()

    def of_saved(
        self,
        content: Mapping[str, Any],
        checkpoint_id: str,
        keep: float | None,
        input: str | None,  # noqa: A002 -- the natural name
    ) -> OpenMark:
        """Return the mark of the run that a save belongs to."""
        run, agent = self.run, content.get("agent")
        agent, keep = (
            agent if isinstance(agent, str) else run.agent,
            run.keep if keep == 0.0 else keep,
        )
        labels, before = labels_of(content), trace_of(content)
        own = UnfinishedRun(
            content["run"],
            agent,
            checkpoint_id,
            run.steps,
            run.session_id,
            run.version,
            run.attempts,
            keep,
            input,
            labels,
            run.trace,
        )
        own = own.replace(app=run.app, definitions=run.definitions)
        return OpenMark(own, before)

    def put(self) -> Put:
        """Return the write that marks the run as unfinished."""
        run = self.run
        said: dict[str, Any] = {
            "checkpoint": run.checkpoint_id,
            "steps": run.steps,
            "by": self._writer,
        }
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
        if run.queued:
            said["queued"] = True
        if run.unwritten:
            said["unwritten"], said["failure"] = run.unwritten, run.failure
        if run.progressed:
            said["progressed"] = run.progressed
        if run.app is not None:
            said["app"] = run.app
        elif run.definitions is not None:
            said["definitions"] = run.definitions
        return Put(self.key, pack(said))

    def queue(self, *, queued: bool) -> None:
        """Record whether it waits for its turn."""
        if queued != self.run.queued:
            self.run = self.run.replace(queued=queued)

    def note_trace(self, trace: str) -> None:
        """Record the name of its span, for the run that continues it."""
        self.run = self.run.replace(trace=trace)

    def kept_with_saves(self) -> dict[str, Any]:
        """Return the fields that a save repeats."""
        run = self.run
        return ({"labels": dict(run.labels)} if run.labels else {}) | (
            {} if run.trace is None else {"trace": run.trace}
        )

    def progress(self, attempt: int) -> None:
        """Record that this attempt, by the store's count, has recorded a step."""
        self.run = self.run.replace(attempts=0, progressed=attempt)

    def count(self, attempts: int) -> None:
        """Set the number of attempts, this one included, since the last progress or orderly
        release.
        """
        if attempts == 0 and self.run.progressed:
            self.run = self.run.replace(progressed=0)
        before = max(0, attempts - 1)
        if before != self.run.attempts:
            self.run = self.run.replace(attempts=before)

    def not_written(self, failure: str, *, has_progressed: bool) -> None:
        """Record that an attempt ends because a step could not be written.

        Only attempts that have recorded nothing before that add up.
        """
        self.run = self.run.replace(
            unwritten=1 if has_progressed else self.run.unwritten + 1, failure=failure
        )

    def know_failures(self, run: UnfinishedRun) -> None:
        """Take over the failures of earlier attempts."""
        if run.progressed != self.run.progressed:
            self.run = self.run.replace(progressed=run.progressed)
        if run.unwritten != self.run.unwritten:
            self.run = self.run.replace(unwritten=run.unwritten, failure=run.failure)

    def opened(self, clock: Clock | None) -> None:
        """Record that the mark was written."""
        self.is_open = True
        self._until = math.inf if clock is None else boottime_of(clock) + _OPEN_SECONDS

    def is_due(self, clock: Clock | None) -> bool:
        """Return whether it must be rewritten."""
        return self.is_open and clock is not None and boottime_of(clock) > self._until

    def remove(self) -> list[Write]:
        """Return the write that removes the mark, if it is open."""
        return [Remove(self.key)] if self.is_open else []


def read_mark(agent: str, run_id: str, data: bytes) -> UnfinishedRun:
    """Decode the mark of an unfinished run. Raises `CheckpointError`."""
    said: Any = unpack(data)
    if isinstance(said, dict):
        checkpoint_id, steps, keep, attempts = (
            said.get("checkpoint"),
            said.get("steps"),
            said.get("keep", 0.0),
            said.get("attempts", 0),
        )
        texts = {
            name: said.get(name) for name in ("session", "version", "input", "app", "definitions")
        }
        fits = (
            all(isinstance(text, str | None) for text in texts.values())
            and isinstance(keep, int | float | None)
            and type(attempts) is int
        )
        labels = labels_of(said)
        unwritten, failure, progressed = (
            said.get("unwritten", 0),
            said.get("failure"),
            said.get("progressed", 0),
        )
        fits = (
            fits
            and type(unwritten) is int
            and type(progressed) is int
            and isinstance(failure, str | None)
        )
        if (
            isinstance(checkpoint_id, str)
            and 0 < len(checkpoint_id) <= _LONGEST_ID
            and type(steps) is bool
            and fits
        ):
            return UnfinishedRun(
                run_id,
                agent,
                checkpoint_id,
                steps,
                texts["session"],
                texts["version"],
                attempts,
                keep,
                texts["input"],
                labels,
                trace_of(said),
                said.get("queued") is True,
                unwritten,
                failure,
                texts["app"],
                texts["definitions"],
                progressed,
            )
    msg = f"the stored mark of the unfinished run {run_id} is damaged."
    raise CheckpointError(msg)


def definitions_of(root: Node) -> str | None:
    """Join the names of all agents of a tree and of their tools; None if that is too long."""
    names: dict[str, None] = {}
    for node in (node for tree in root.trees() for node in tree.walk()):
        names[f"agent {node.name}"] = None
        names.update(
            (f"tool {one.name}", None)
            for one in getattr(node.agent, "tools", ())
            if isinstance(getattr(one, "name", None), str)
        )
    text = "\0".join(names)
    return text if len(text) <= _LONGEST_DEFINITIONS else None


def why_foreign(run: UnfinishedRun, app: str | None, definitions: str | None) -> str | None:
    """Return the reason why a program must not recover another program's run; None if it may."""
    if run.app is not None:
        return (
            None
            if run.app == app
            else (
                f"it is of the app {run.app!r}, and this Runner is of "
                f"{'none' if app is None else repr(app)}"
            )
        )
    if run.definitions is None or definitions is None:
        return None
    own = set(definitions.split("\0"))
    missing = [name for name in run.definitions.split("\0") if name not in own]
    return (
        f"the program that began it has {', '.join(missing)}, which this one has not"
        if missing
        else None
    )


def lost_text(run: UnfinishedRun) -> str:
    """Return the reason why a run that has lost its process cannot be continued."""
    if run.queued:
        return (
            f"run {run.id!r} waited for its turn in session {run.session_id!r} when its process "
            "was lost. It had not begun: send it again."
        )
    return (
        f"the process of run {run.id!r} is gone, and nothing of the run was kept: with "
        "durability='step' it could be continued."
    )


def labels_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Read the labels of a run from a mark or a checkpoint. Damaged ones count as none."""
    labels = said.get("labels")
    return (
        labels
        if isinstance(labels, dict)
        and all(isinstance(part, str) for label in labels.items() for part in label)
        else {}
    )


def trace_of(said: Mapping[str, Any]) -> str | None:
    """Read the name of a run's span from a mark or a checkpoint. A damaged one counts as none."""
    trace = said.get("trace")
    return trace if isinstance(trace, str) and len(trace) == _TRACE else None


def input_mark(given: AgentInput) -> str:
    """Return a fingerprint of the input."""
    from hashlib import sha256  # noqa: PLC0415 -- a part of the standard library that most programs do without

    said = [
        (message.role, message.content, message.tool_calls, message.tool_call_id)
        for message in given.messages
    ]
    return sha256(pack(said)).hexdigest()[:32]
