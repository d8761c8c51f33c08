"""What holds for a whole run, whichever agents play in it.

Owns: `RunConfig` and its parts. It must never be changed by a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias

from .coercion import as_settings
from .handoffs.input_data import HandoffHistoryMapper, HandoffInputFilter
from .memory.session_settings import SessionSettings
from .missing import refuse
from .model_settings import ModelSettings, as_model_settings
from .models.interface import Model, ModelProvider
from .run_context import RunContextWrapper, TContext

if TYPE_CHECKING:
    from .guardrail import InputGuardrail, OutputGuardrail
    from .tracing import TracingConfig

__all__ = [
    "DEFAULT_MAX_TURNS",
    "CallModelData",
    "CallModelInputFilter",
    "ModelInputData",
    "ReasoningItemIdPolicy",
    "RunConfig",
    "SandboxConcurrencyLimits",
    "SandboxRunConfig",
    "ToolErrorFormatter",
    "ToolErrorFormatterArgs",
    "ToolExecutionConfig",
    "ToolNameCollisionPolicy",
    "ToolNotFoundBehavior",
    "as_run_config",
]

DEFAULT_MAX_TURNS: Final = 10


@dataclass
class ModelInputData:
    """What a model is about to be given."""

    input: list[Any]
    instructions: str | None


@dataclass
class CallModelData(Generic[TContext]):
    """The same, with the agent and the context, for a filter."""

    model_data: ModelInputData
    agent: Any
    context: TContext | None


CallModelInputFilter: TypeAlias = Callable[[CallModelData[Any]], Any]
ReasoningItemIdPolicy: TypeAlias = Literal["preserve", "omit"]
ToolNotFoundBehavior: TypeAlias = Literal["raise_error", "return_error_to_model"]
ToolNameCollisionPolicy: TypeAlias = Literal["warn", "error"]


@dataclass
class ToolErrorFormatterArgs(Generic[TContext]):
    """A call that was rejected, or whose tool there is not."""

    kind: Literal["approval_rejected", "tool_not_found"]
    tool_type: Literal["function", "computer", "shell", "apply_patch", "custom"]
    tool_name: str
    call_id: str
    default_message: str
    run_context: RunContextWrapper[TContext]


ToolErrorFormatter: TypeAlias = Callable[[ToolErrorFormatterArgs[Any]], Any]


@dataclass
class ToolExecutionConfig:
    """How calls of functions are made."""

    max_function_tool_concurrency: int | None = None
    pre_approval_tool_input_guardrails: bool = False
    """Whether guardrails look at a call before an approval is asked for; they look again before it is made."""

    def __post_init__(self) -> None:
        if self.max_function_tool_concurrency is not None and self.max_function_tool_concurrency < 1:
            msg = "tool_execution.max_function_tool_concurrency must be at least 1"
            raise ValueError(msg)
        if not isinstance(self.pre_approval_tool_input_guardrails, bool):
            msg = "tool_execution.pre_approval_tool_input_guardrails must be a bool"
            raise ValueError(msg)  # noqa: TRY004 -- the SDK's


@dataclass
class SandboxConcurrencyLimits:
    """How much of a sandbox is made at once."""

    manifest_entries: int | None = 4
    local_dir_files: int | None = 4


@dataclass
class SandboxRunConfig:
    """Settings of sandboxes. They are read, and a run that would need one is refused."""

    client: Any = None
    options: Any = None
    session: Any = None
    session_state: Any = None
    manifest: Any = None
    snapshot: Any = None
    concurrency_limits: Any = field(default_factory=SandboxConcurrencyLimits)
    archive_limits: Any = None
    cwd: str | PurePath | None = None

    def __post_init__(self) -> None:
        from .sandbox.manifest import Manifest  # noqa: PLC0415 -- few programs have sandboxes
        from .sandbox.snapshot import as_snapshot  # noqa: PLC0415 -- as above

        if isinstance(self.cwd, PurePath | str):
            self.cwd = PurePosixPath(*(self.cwd.parts if isinstance(self.cwd, PurePath) else (self.cwd,))).as_posix()
        if isinstance(self.manifest, dict):
            self.manifest = Manifest(**self.manifest)
        if isinstance(self.snapshot, dict):
            self.snapshot = as_snapshot(self.snapshot)
        self.concurrency_limits = as_settings(self.concurrency_limits, SandboxConcurrencyLimits, "sandbox.concurrency_limits")


def _provider() -> ModelProvider:
    from .models.multi_provider import MultiProvider  # noqa: PLC0415 -- it brings OpenAI's client

    return MultiProvider()


def _includes_data() -> bool:
    return os.environ.get("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", "true").strip().lower() in ("1", "true", "yes", "on")


@dataclass
class RunConfig:
    """What holds for a whole run."""

    model: str | Model | None = None
    model_provider: ModelProvider = field(default_factory=_provider)
    model_settings: ModelSettings | None = None
    handoff_input_filter: HandoffInputFilter | None = None
    nest_handoff_history: bool = False
    handoff_history_mapper: HandoffHistoryMapper | None = None
    input_guardrails: list[InputGuardrail[Any]] | None = None
    output_guardrails: list[OutputGuardrail[Any]] | None = None
    tracing_disabled: bool = False
    tracing: TracingConfig | None = None
    trace_include_sensitive_data: bool = field(default_factory=_includes_data)
    workflow_name: str = "Agent workflow"
    trace_id: str | None = None
    group_id: str | None = None
    trace_metadata: dict[str, Any] | None = None
    session_input_callback: Callable[[list[Any], list[Any]], Any] | None = None
    call_model_input_filter: CallModelInputFilter | None = None
    tool_error_formatter: ToolErrorFormatter | None = None
    session_settings: SessionSettings | None = None
    reasoning_item_id_policy: ReasoningItemIdPolicy | None = None
    sandbox: SandboxRunConfig | None = None
    tool_execution: ToolExecutionConfig | None = None
    tool_not_found_behavior: ToolNotFoundBehavior = "raise_error"
    tool_name_collision_policy: ToolNameCollisionPolicy = "warn"

    def __post_init__(self) -> None:
        if self.tool_name_collision_policy not in ("warn", "error"):
            msg = "tool_name_collision_policy must be either 'warn' or 'error'"
            raise ValueError(msg)
        if self.model_settings is not None:
            self.model_settings = as_model_settings(self.model_settings, "RunConfig model_settings")
        if self.session_settings is not None:
            self.session_settings = as_settings(self.session_settings, SessionSettings, "session_settings")
        if self.sandbox is not None:
            self.sandbox = as_settings(self.sandbox, SandboxRunConfig, "run_config.sandbox")
        if self.tool_execution is not None:
            self.tool_execution = as_settings(self.tool_execution, ToolExecutionConfig, "run_config.tool_execution")
        given: Any = self.model
        if given is not None and not isinstance(given, str | Model):
            from .models.understudy_model import as_model  # noqa: PLC0415 -- for those who give one

            self.model = as_model(given)

    def check(self) -> None:
        """Raise, if a run with this needs what there is not."""
        if self.sandbox is not None and (self.sandbox.client is not None or self.sandbox.session is not None):
            refuse("RunConfig(sandbox=...)")

    @property
    def omits_reasoning_ids(self) -> bool:
        """Whether what a model has thought is given back to it without its ids."""
        return self.reasoning_item_id_policy == "omit"


def as_run_config(value: RunConfig | dict[str, Any] | None) -> RunConfig:
    """The configuration of a dict; or what was given, or one that says nothing."""
    return RunConfig() if value is None else as_settings(value, RunConfig, "run_config")
