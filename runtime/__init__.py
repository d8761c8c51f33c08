"""The runtime: `Actor` with mailboxes and supervision, and the runs of agents.

The agents themselves are in `offbook.actors`, which the runtime never imports. Topics that users
import are plain modules, and machinery is in packages. Each row imports only from the rows above
it, which a test enforces:

    errors, clock                       the errors; the source of time
    log, backoff                        the packages' loggers; delays between attempts
    environment                         environment variables, including those of a `.env` file
    option_names                        hints for misspelt options
    greenlets                           refuses what needs threads where gevent has replaced them
    listening                           the socket of a server that the library starts
    loopback                            checks for a local server without authentication: foreign
                                        host names and pages are refused
    maybe_await                         the results of def and async def functions
    shown_text                          text for display, with hidden characters escaped
    tasks                               tasks for user code: its exceptions do not end the loop
    tracing                             spans, if the program traces
    unpicklable                         errors for objects that cannot be pickled
    data                                messages and events: plain frozen values
    models                              chat models behind one protocol
    telemetry                           observing runs from inside: spans, metrics, log records
    codec                               bytes and back, for registered types only
    stores                              storage of bytes: memory, SQLite, Redis, PostgreSQL
    actor                               one actor: mailbox, handle, supervision, lifecycle
    system                              the actors' system: spawning, threads, stats, drain,
                                        shutdown
    agent                               one running agent: its tree, history, invocation, context,
                                        actor
    durability                          data that outlives a process: image, journal, checkpoint,
                                        lease, recovery
    sessions                            one conversation over many runs: log, policy, turn
    run                                 one run: supervisor, agents, event log, cancellation, API
    session, runner                     the two entry points: `Session`, `Runner`
    blocking                            the same for synchronous code: `runner.blocking`
    services                            `service()`: a Runner with its system and store
    observe                             observing runs and agents from outside: JSON, server-sent
                                        events, diagrams
    testing                             test support: a clock, transcripts, recordings, contexts
                                        for tools, pytest fixtures
    a2a                                 Agent2Agent; an extra, not imported from here
    console                             runs in the browser; an extra, not imported from here
    mcp                                 the Model Context Protocol; an extra
    cluster                             many machines, on Ray; an extra, not imported from here
    cli                                 the command `offbook`; an extra
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
from .agent.session_values import (
    SessionValues,
    add_session_value,
    add_session_values,
    current_session,
    get_session_value,
    get_session_values,
)
from .backoff import Backoff
from .blocking import BlockingRunner, BlockingSession
from .clock import Clock
from .codec.packing import register_type
from .data.agent_input import AgentInput
from .data.chat import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessageDelta,
    Part,
    Role,
    TextPart,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from .data.events import (
    Action,
    AgentEvent,
    BreakLoop,
    CustomAction,
    Exit,
    Interrupted,
    TransferToAgent,
)
from .data.interrupt import AddressStep, InterruptContext
from .data.outcome import Outcome
from .data.posts import Post, Posted
from .data.run_info import RunInfo
from .data.run_result import RunResult, RunStatus
from .durability.unfinished_run import UnfinishedRun
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
    InboxFull,
    MailboxFull,
    MaxIterationsExceeded,
    MaxTransfersExceeded,
    ModelBehaviorError,
    ModelError,
    ModelRetry,
    OffbookError,
    ResumeError,
    RetryExhausted,
    RunCancelled,
    RunEnded,
    RunLost,
    RunNotFound,
    SessionBusy,
    StoreError,
    SystemDraining,
    ToolError,
    TransferError,
    UsageError,
    ValueRefused,
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
from .run.background import BackgroundTask, TaskInfo
from .run.map_progress import MapProgress
from .run.mapping import MapResult, RunMap
from .run.run import CancelHandle, Run
from .run.schedules import ScheduleInfo
from .runner import Runner
from .services import Service, service
from .session import Session
from .sessions.session_policy import SessionPolicy, keep_last, summarize
from .stores import (
    JournalStore,
    MemoryStore,
    PostgresStore,
    RedisStore,
    SQLiteStore,
    Store,
    encrypted,
)
from .system.shutdown_signal import Shutdown
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
    "BackgroundTask",
    "Backoff",
    "BlockingRunner",
    "BlockingSession",
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
    "InboxFull",
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
    "OffbookError",
    "OpenAIChatModel",
    "OpenAIEmbeddingModel",
    "OpenAIResponsesModel",
    "Options",
    "Outcome",
    "OutputSchema",
    "Part",
    "Post",
    "Posted",
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
    "RunEnded",
    "RunHooks",
    "RunInfo",
    "RunLost",
    "RunMap",
    "RunNotFound",
    "RunResult",
    "RunStatus",
    "Runner",
    "SQLiteStore",
    "ScheduleInfo",
    "ScriptedModel",
    "Service",
    "Session",
    "SessionBusy",
    "SessionPolicy",
    "SessionValues",
    "Shutdown",
    "Stop",
    "Stopped",
    "Store",
    "StoreError",
    "Supervision",
    "SystemDraining",
    "SystemStats",
    "TaskInfo",
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
    "UnfinishedRun",
    "Usage",
    "UsageError",
    "ValueRefused",
    "WriteRefused",
    "__version__",
    "add_global_hooks",
    "add_session_value",
    "add_session_values",
    "current_session",
    "encrypted",
    "event_json",
    "get_session_value",
    "get_session_values",
    "graph",
    "keep_last",
    "model_from_env",
    "prometheus_app",
    "register_type",
    "service",
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
else:  # a type checker would otherwise accept any name of this module
    _LATER = frozenset(
        (
            "EVENT_SCHEMA",
            "Graph",
            "Timeline",
            "Tracing",
            "event_json",
            "graph",
            "prometheus_app",
            "sse",
            "timeline",
            "tracing_from_env",
        )
    )

    def __getattr__(name: str) -> object:
        """Load the observation names and the version on first access, to keep importing fast."""
        if name in _LATER:
            from . import observe  # noqa: PLC0415 -- most programs need none of these

            return getattr(observe, name)
        if name != "__version__":
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib.metadata import version  # noqa: PLC0415 -- imports csv, email and zipfile

        return version("offbook")
