"""Tools that the program executes itself: shells, patches, computers, and custom ones.

Owns: their settings, what their executors are given and return. It must never execute anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from ....runtime.maybe_await import maybe_await
from ..computer import AsyncComputer, Computer
from ..exceptions import UserError
from ..logger import logger
from .function import ToolCaller, checked_callers

if TYPE_CHECKING:
    from ..run_context import RunContextWrapper

__all__ = [
    "ApplyPatchTool",
    "ApplyPatchToolCustomDataContext",
    "ComputerProvider",
    "ComputerTool",
    "ComputerToolCustomDataContext",
    "ComputerToolSafetyCheckData",
    "CustomTool",
    "CustomToolCustomDataContext",
    "LocalShellCommandRequest",
    "LocalShellTool",
    "ShellActionRequest",
    "ShellCallData",
    "ShellCallOutcome",
    "ShellCommandOutput",
    "ShellCommandRequest",
    "ShellResult",
    "ShellTool",
    "dispose_resolved_computers",
    "resolve_computer",
]

ComputerT = TypeVar("ComputerT", default=Any)


# --- custom data ---


@dataclass(frozen=True)
class CustomToolCustomDataContext:
    """What an extractor of custom data is given after a call of a custom tool."""

    tool_context: Any
    tool: CustomTool
    input: str
    output: str
    raw_item: Any


@dataclass(frozen=True)
class ComputerToolCustomDataContext:
    """What an extractor of custom data is given after an action of a computer."""

    run_context: Any
    tool: ComputerTool[Any]
    tool_call: Any
    output: str
    raw_item: Any


@dataclass(frozen=True)
class ApplyPatchToolCustomDataContext:
    """What an extractor of custom data is given after a patch."""

    run_context: Any
    tool: ApplyPatchTool
    operations: list[Any]
    output: str
    status: Literal["completed", "failed"]
    raw_item: Any


# --- computers ---


@dataclass
class ComputerProvider(Generic[ComputerT]):
    """Makes a computer for each run, and gives it back."""

    create: Callable[..., Any]
    dispose: Callable[..., Any] | None = None


@dataclass
class ComputerToolSafetyCheckData:
    """Something that the model asks to be acknowledged before it acts."""

    ctx_wrapper: RunContextWrapper[Any]
    agent: Any
    tool_call: Any
    safety_check: Any


@dataclass(eq=False)
class ComputerTool(Generic[ComputerT]):
    """A computer that the model uses."""

    computer: Any
    on_safety_check: Callable[[ComputerToolSafetyCheckData], Any] | None = None
    custom_data_extractor: Callable[[ComputerToolCustomDataContext], Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.of_runs: list[tuple[Any, Any, Any]] = []
        """The computers that were made for runs which have not ended."""

    @property
    def name(self) -> str:
        return "computer_use_preview"

    @property
    def trace_name(self) -> str:
        return "computer"


async def resolve_computer(*, tool: ComputerTool[Any], run_context: RunContextWrapper[Any]) -> Any:
    """The computer of a run: the tool's, or one that is made for the run."""
    config = tool.computer
    if isinstance(config, Computer | AsyncComputer):
        return config
    for context, computer, _ in tool.of_runs:
        if context is run_context:
            return computer
    make, dispose = (config.create, getattr(config, "dispose", None)) if hasattr(config, "create") else (config, None)
    computer = await maybe_await(make(run_context=run_context)) if callable(make) else config
    if not isinstance(computer, Computer | AsyncComputer):
        msg = "The computer tool did not provide a computer instance."
        raise UserError(msg)
    tool.of_runs.append((run_context, computer, dispose))
    return computer


async def dispose_resolved_computers(*, run_context: RunContextWrapper[Any], tools: list[Any] | None = None) -> None:
    """Give back the computers that were made for a run."""
    for tool in tools or ():
        for entry in [one for one in getattr(tool, "of_runs", ()) if one[0] is run_context]:
            tool.of_runs.remove(entry)
            if entry[2] is not None:
                try:
                    await maybe_await(entry[2](run_context=run_context, computer=entry[1]))
                except Exception:
                    logger.exception("Failed to dispose computer for run context")


# --- shells ---


@dataclass
class LocalShellCommandRequest:
    """A command for a local shell."""

    ctx_wrapper: RunContextWrapper[Any]
    data: Any


@dataclass
class LocalShellTool:
    """A shell on this machine, by the older interface."""

    executor: Callable[[LocalShellCommandRequest], Any]

    @property
    def name(self) -> str:
        return "local_shell"


@dataclass
class ShellCallOutcome:
    """How a command has ended."""

    type: Literal["exit", "timeout"]
    exit_code: int | None = None


@dataclass
class ShellCommandOutput:
    """What a command has written."""

    stdout: str = ""
    stderr: str = ""
    outcome: ShellCallOutcome = field(default_factory=lambda: ShellCallOutcome(type="exit"))
    command: str | None = None
    provider_data: dict[str, Any] | None = None

    @property
    def exit_code(self) -> int | None:
        return self.outcome.exit_code

    @property
    def status(self) -> Literal["completed", "timeout"]:
        return "timeout" if self.outcome.type == "timeout" else "completed"


@dataclass
class ShellResult:
    """What the commands of a call have written."""

    output: list[ShellCommandOutput]
    max_output_length: int | None = None
    provider_data: dict[str, Any] | None = None


@dataclass
class ShellActionRequest:
    """The commands of a call."""

    commands: list[str]
    timeout_ms: int | None = None
    max_output_length: int | None = None


@dataclass
class ShellCallData:
    """A call of a shell."""

    call_id: str
    action: ShellActionRequest
    status: Literal["in_progress", "completed"] | None = None
    raw: Any | None = None


@dataclass
class ShellCommandRequest:
    """A call of a shell, for its executor."""

    ctx_wrapper: RunContextWrapper[Any]
    data: ShellCallData


@dataclass
class ShellTool:
    """A shell: on this machine, by an executor of the program's, or in a container at OpenAI."""

    executor: Callable[[ShellCommandRequest], Any] | None = None
    name: str = "shell"
    needs_approval: Any = False
    on_approval: Any = None
    environment: Any = None
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)
        if self.environment is not None and not hasattr(self.environment, "keys"):
            msg = "ShellTool environment must be a mapping."
            raise UserError(msg)
        self.environment = {"type": "local", **(self.environment or {})}
        if self.is_local and self.executor is None:
            msg = "ShellTool with local environment requires an executor."
            raise UserError(msg)
        if not self.is_local and self.executor is not None:
            msg = "ShellTool with hosted environment does not accept an executor."
            raise UserError(msg)
        if not self.is_local and (self.needs_approval is not False or self.on_approval is not None):
            msg = "ShellTool with hosted environment does not support needs_approval or on_approval."
            raise UserError(msg)

    @property
    def is_local(self) -> bool:
        """Whether the program executes it."""
        return bool(self.environment["type"] == "local")

    @property
    def type(self) -> str:
        return "shell"


# --- patches, custom tools ---


@dataclass
class ApplyPatchTool:
    """Changes files, by an editor of the program's."""

    editor: Any
    name: str = "apply_patch"
    needs_approval: Any = False
    on_approval: Any = None
    custom_data_extractor: Callable[[ApplyPatchToolCustomDataContext], Any] | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)

    @property
    def type(self) -> str:
        return "apply_patch"


@dataclass
class CustomTool:
    """A tool that is given a text of any form."""

    name: str
    description: str
    on_invoke_tool: Callable[[Any, str], Any]
    format: object | None = None
    needs_approval: Any = False
    on_approval: Any = None
    defer_loading: bool = False
    custom_data_extractor: Callable[[CustomToolCustomDataContext], Any] | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)
    tool_config: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.name)
        more = {"format": self.format, "defer_loading": self.defer_loading or None, "allowed_callers": self.allowed_callers}
        named = {"type": "custom", "name": self.name, "description": self.description}
        self.tool_config = {**named, **{key: value for key, value in more.items() if value is not None}}

    @property
    def type(self) -> str:
        return "custom"

    def runtime_needs_approval(self) -> Any:
        """Whether calls have to be approved first."""
        return self.needs_approval

    def runtime_on_approval(self) -> Any:
        """What decides at once, if anything does."""
        return self.on_approval
