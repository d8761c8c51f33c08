"""How it runs: `Actor` is here, with mailboxes, supervision and the runs of agents; agents themselves are in `understudy.actors`.

What users import by topic is a plain module, machinery is in a room. Each row imports only from those above it, and a test holds that:

    errors, clock                       what can go wrong; where time comes from
    log, backoff                        the loggers of the rooms; delays between tries
    environment                         the variables, with those of a `.env` file
    option_names                        which option is meant where one is misspelt
    listening                           the socket at which the library serves something itself
    maybe_await, quick_init             what def and async def return; quick constructors for what is made very often
    tracing                             spans, if the program traces
    data                                what is said and shown: plain frozen values
    models                              chat models behind one protocol
    telemetry                           what looks on at runs from inside: spans, measures, lines in the log
    codec                               bytes and back, for registered types only
    stores                              where bytes lie: memory, SQLite, Redis, PostgreSQL
    actor                               one actor: mailbox, handle, supervision, life
    system                              where actors live: spawning, threads, stats, drain, shutdown
    agent                               one agent at work: its tree, history, invocation, context, actor
    durability                          what outlives a process: image, journal, checkpoint, lease, recovery
    sessions                            one conversation over many runs: log, policy, turn
    run                                 one run: supervisor, casting, event log, cancelling, its front
    session, runner                     the two doors: `Session`, `Runner`
    observe                             looking at runs and agents from outside: JSON, server-sent events, pictures
    testing                             for tests: a clock, transcripts, recordings, contexts for tools, fixtures of pytest
    a2a                                 Agent2Agent, with an extra of its own: imported by those who use it, and not from here
    console                             runs in the browser, with an extra of its own: imported by those who use it, and not from here
    mcp                                 the Model Context Protocol, with an extra of its own
    cluster                             many machines, on Ray, with an extra of its own: imported by those who use it, and not from here
    cli                                 the command `understudy`, with an extra of its own

It must never import `understudy.actors`.
"""

import typing as _typing

from .actor.actor import Actor, ThreadActor
from .actor.envelope import MailboxSettings
from .actor.extras.pool import ActorPool
from .actor.extras.timers import TimerHandle, Timers
from .actor.future import ActorFuture
from .actor.messages import Failed, Stopped, Terminated
from .actor.ref import ActorRef
from .actor.report import ActorNode, DeadLetter, DrainReport, SystemStats
from .actor.supervision import Directive, Escalate, Restart, Resume, Stop, Supervision
from .agent.context import AgentContext, ResumeInfo
from .agent.history import HistoryEntry, HistoryPolicy, HistoryRewriter
from .agent.hooks import AgentHooks, RunHooks, add_global_hooks
from .agent.options import InstructionOptions, ModelOptions, Options, ToolOptions
from .agent.run_context import RunContext
from .agent.session_values import SessionValues, add_session_value, add_session_values, current_session, get_session_value, get_session_values
from .backoff import Backoff
from .clock import Clock
from .codec.packing import register_type
from .data.agent_input import AgentInput
from .data.chat import AudioPart, FilePart, ImagePart, Message, MessageDelta, Part, Role, TextPart, ToolCall, ToolCallDelta, Usage
from .data.events import Action, AgentEvent, BreakLoop, CustomAction, Exit, Interrupted, TransferToAgent
from .data.interrupt import AddressStep, InterruptContext
from .data.outcome import Outcome
from .data.run_info import RunInfo
from .data.run_result import RunResult, RunStatus
from .durability.open_mark import UnfinishedRun
from .errors import (
    ActorDeadError,
    ActorFailed,
    AgentError,
    AskTimeout,
    CheckpointError,
    CheckpointNotFound,
    GuardrailTripped,
    HandlerCancelled,
    HandoffError,
    MailboxFull,
    MaxIterationsExceeded,
    MaxTransfersExceeded,
    ModelBehaviorError,
    ModelError,
    ModelRetry,
    ResumeError,
    RetryExhausted,
    RunCancelled,
    RunLost,
    SessionBusy,
    StoreError,
    SystemDraining,
    ToolError,
    TransferError,
    UnderstudyError,
    UsageError,
    WriteRefused,
)
from .log import LogContext
from .models import (
    ChatModel,
    EmbeddingModel,
    FailoverModel,
    LimitedModel,
    ModelRequest,
    ModelSettings,
    OpenAIChatModel,
    OpenAIEmbeddingModel,
    OpenAIResponsesModel,
    OutputSchema,
    RetryModel,
    ScriptedModel,
    ToolCalls,
    ToolSpec,
    model_from_env,
)
from .run.map_progress import MapProgress
from .run.mapping import MapResult, RunMap
from .run.run import CancelHandle, Run
from .runner import Runner
from .session import Session
from .sessions.session_policy import SessionPolicy, keep_last, summarize
from .stores import JournalStore, MemoryStore, PostgresStore, RedisStore, SQLiteStore, Store
from .system.system import ActorSystem

__all__ = [
    "EVENT_SCHEMA",
    "Action",
    "Actor",
    "ActorDeadError",
    "ActorFailed",
    "ActorFuture",
    "ActorNode",
    "ActorPool",
    "ActorRef",
    "ActorSystem",
    "AddressStep",
    "AgentContext",
    "AgentError",
    "AgentEvent",
    "AgentHooks",
    "AgentInput",
    "AskTimeout",
    "AudioPart",
    "Backoff",
    "BreakLoop",
    "CancelHandle",
    "ChatModel",
    "CheckpointError",
    "CheckpointNotFound",
    "Clock",
    "CustomAction",
    "DeadLetter",
    "Directive",
    "DrainReport",
    "EmbeddingModel",
    "Escalate",
    "Exit",
    "Failed",
    "FailoverModel",
    "FilePart",
    "Graph",
    "GuardrailTripped",
    "HandlerCancelled",
    "HandoffError",
    "HistoryEntry",
    "HistoryPolicy",
    "HistoryRewriter",
    "ImagePart",
    "InstructionOptions",
    "InterruptContext",
    "Interrupted",
    "JournalStore",
    "LimitedModel",
    "LogContext",
    "MailboxFull",
    "MailboxSettings",
    "MapProgress",
    "MapResult",
    "MaxIterationsExceeded",
    "MaxTransfersExceeded",
    "MemoryStore",
    "Message",
    "MessageDelta",
    "ModelBehaviorError",
    "ModelError",
    "ModelOptions",
    "ModelRequest",
    "ModelRetry",
    "ModelSettings",
    "OpenAIChatModel",
    "OpenAIEmbeddingModel",
    "OpenAIResponsesModel",
    "Options",
    "Outcome",
    "OutputSchema",
    "Part",
    "PostgresStore",
    "RedisStore",
    "Restart",
    "Resume",
    "ResumeError",
    "ResumeInfo",
    "RetryExhausted",
    "RetryModel",
    "Role",
    "Run",
    "RunCancelled",
    "RunContext",
    "RunHooks",
    "RunInfo",
    "RunLost",
    "RunMap",
    "RunResult",
    "RunStatus",
    "Runner",
    "SQLiteStore",
    "ScriptedModel",
    "Session",
    "SessionBusy",
    "SessionPolicy",
    "SessionValues",
    "Stop",
    "Stopped",
    "Store",
    "StoreError",
    "Supervision",
    "SystemDraining",
    "SystemStats",
    "Terminated",
    "TextPart",
    "ThreadActor",
    "Timeline",
    "TimerHandle",
    "Timers",
    "ToolCall",
    "ToolCallDelta",
    "ToolCalls",
    "ToolError",
    "ToolOptions",
    "ToolSpec",
    "Tracing",
    "TransferError",
    "TransferToAgent",
    "UnderstudyError",
    "UnfinishedRun",
    "Usage",
    "UsageError",
    "WriteRefused",
    "__version__",
    "add_global_hooks",
    "add_session_value",
    "add_session_values",
    "current_session",
    "event_json",
    "get_session_value",
    "get_session_values",
    "graph",
    "keep_last",
    "model_from_env",
    "prometheus_app",
    "register_type",
    "sse",
    "summarize",
    "timeline",
    "tracing_from_env",
]

__version__: str

if _typing.TYPE_CHECKING:
    from .observe.event_json import EVENT_SCHEMA, event_json
    from .observe.graph import Graph, graph
    from .observe.otlp_export import Tracing, tracing_from_env
    from .observe.prometheus import prometheus_app
    from .observe.sse import sse
    from .observe.timeline import Timeline, timeline
else:  # a checker would take this for a module that has every name
    _LATER = frozenset(("EVENT_SCHEMA", "Graph", "Timeline", "Tracing", "event_json", "graph", "prometheus_app", "sse", "timeline", "tracing_from_env"))

    def __getattr__(name: str) -> object:
        """What programs ask for that look at runs, and the version: looked up when it is asked for, so that importing stays fast."""
        if name in _LATER:
            from . import observe  # noqa: PLC0415 -- most programs show nothing

            return getattr(observe, name)
        if name != "__version__":
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib.metadata import version  # noqa: PLC0415 -- brings csv, email and zipfile

        return version("understudy")
