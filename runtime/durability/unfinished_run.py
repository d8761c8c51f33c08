"""A run that a process has to continue, and the conditions under which a program may do so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from ..codec.packing import pack
from ..data.value import Value

if TYPE_CHECKING:
    from ..agent.tree import Node
    from ..data.agent_input import AgentInput

__all__ = [
    "UnfinishedRun",
    "definitions_of",
    "input_mark",
    "labels_of",
    "lost_text",
    "trace_of",
    "why_foreign",
]

_LONGEST_DEFINITIONS: Final = 1000
_TRACE: Final = 55
"""The length of a span's name in W3C format, in characters."""


class UnfinishedRun(Value, frozen=True):
    """An unfinished run, as its row in the store describes it."""

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
    """Whether it waits for its turn in a session: only its row is stored yet."""
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
                f"it belongs to the app {run.app!r}, and this Runner belongs to "
                f"{'none' if app is None else repr(app)}"
            )
        )
    if run.definitions is None or definitions is None:
        return None
    own = set(definitions.split("\0"))
    missing = [name for name in run.definitions.split("\0") if name not in own]
    return (
        f"the program that started it has {', '.join(missing)}, which this one lacks"
        if missing
        else None
    )


def lost_text(run: UnfinishedRun) -> str:
    """Return the reason why a run that has lost its process cannot be continued."""
    if run.queued:
        return (
            f"run {run.id!r} waited for its turn in session {run.session_id!r} when its process "
            "was lost. It had not started: send it again."
        )
    return (
        f"the process of run {run.id!r} ended, and the run was not stored. Start it again; with "
        "durability='step', recover() continues such a run."
    )


def labels_of(content: Mapping[str, Any]) -> dict[str, str]:
    """Read the labels of a run from a checkpoint. Damaged ones count as none."""
    labels = content.get("labels")
    return (
        labels
        if isinstance(labels, dict)
        and all(isinstance(part, str) for label in labels.items() for part in label)
        else {}
    )


def trace_of(content: Mapping[str, Any]) -> str | None:
    """Read the name of a run's span. A damaged one counts as none."""
    trace = content.get("trace")
    return trace if isinstance(trace, str) and len(trace) == _TRACE else None


def input_mark(given: AgentInput) -> str:
    """Return a fingerprint of the input."""
    from hashlib import sha256  # noqa: PLC0415 -- a part of the standard library that most programs do without

    said = [
        (message.role, message.content, message.tool_calls, message.tool_call_id)
        for message in given.messages
    ]
    return sha256(pack(said)).hexdigest()[:32]
