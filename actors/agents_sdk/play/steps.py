"""What a reply asks for, and what follows from a turn.

Owns: these values. It must never do what they say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from ..handoffs import Handoff
    from ..handoffs.owned import Owned
    from ..items import ModelResponse, ToolApprovalItem

__all__ = ["Again", "Asked", "Final", "FunctionRun", "HandOver", "HandoffRun", "Interrupted", "LocalRun", "McpRequest", "NextStep", "Step", "Unknown"]


class FunctionRun(NamedTuple):
    """A call of a function."""

    call: Any
    tool: Any


class HandoffRun(NamedTuple):
    """A call of a handoff."""

    call: Any
    handoff: Handoff[Any, Any]


class LocalRun(NamedTuple):
    """A call of a shell, an editor, a computer or a custom tool."""

    call: Any
    tool: Any


class Unknown(NamedTuple):
    """A call of a function that there is not."""

    call: Any
    name: str


class McpRequest(NamedTuple):
    """A hosted MCP server's tool that has to be approved."""

    request: Any
    tool: Any


@dataclass
class Asked:
    """What a reply asks for."""

    items: list[Any] = field(default_factory=list)
    functions: list[FunctionRun] = field(default_factory=list)
    handoffs: list[HandoffRun] = field(default_factory=list)
    local: list[LocalRun] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    mcp: list[McpRequest] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    """The names of the tools that it has used, those at the provider among them."""
    skipped: set[int] = field(default_factory=set)
    """Calls that were made before, by the ids of their raw items."""

    def wants_work(self) -> bool:
        """Whether something has to be done here."""
        return bool(self.functions or self.handoffs or self.local or self.unknown or self.mcp)


@dataclass
class Final:
    """The run has found its final output."""

    output: Any


@dataclass
class Again:
    """The model is asked again."""


@dataclass
class HandOver:
    """Another agent goes on."""

    agent: Any


@dataclass
class Interrupted:
    """The run waits for decisions."""

    items: list[ToolApprovalItem]


NextStep: TypeAlias = Final | Again | HandOver | Interrupted


@dataclass
class Step:
    """What follows from a turn."""

    next: NextStep
    response: ModelResponse
    original_input: Any
    before: list[Any]
    """What the model is given of earlier turns."""
    new: list[Any]
    """What the model is given of this one."""
    recorded: list[Any] | None = None
    """What is recorded of this one, if it is something else."""
    asked: Asked | None = None
    owned: list[Owned] | None = None
    """If history was rewritten: which of its items are recorded as well."""
    input_results: list[Any] = field(default_factory=list)
    output_results: list[Any] = field(default_factory=list)

    @property
    def items(self) -> list[Any]:
        """What is recorded of this turn."""
        return list(self.new if self.recorded is None else self.recorded)
