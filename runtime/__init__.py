"""How it runs: actors, their mailboxes, their supervision and the system that they live in.

Files, each importing only from those above it (but for `cell`, `lifecycle` and `ref`, which are one thing in three parts):

    errors, clock, tracing              what can go wrong; where time comes from; spans for whoever traces
    supervision, phase                  what to do with a failed child, and where an actor is in its life, as data
    envelope, mailbox                   what is sent; the one queue that it waits in
    directory, registry, fork           which system is where; which actors pykka knows of; what a forked process gets
    future, waiting                     the reply that is still to come; waiting for room in a mailbox
    messages, receive, replies          what the runtime itself sends; what proxies send; what whoever asked is told
    steps, monitor, dispatcher          a user's coroutine, driven by hand; the counters; who is next
    ref, cell, lifecycle, watching      an actor from outside, from inside, through its life; who is told of its end
    loop_cell, thread_cell              the handling of messages, on the loop and in a thread
    actor                               what users subclass
    stats, draining, shutdown           a look from outside; waiting until all is quiet; the end
    spawning                            what may be spawned
    system, threaded                    where actors live; the same in a thread
    workers                             the threads in which single calls block
    testing                             the clock that is moved by hand

    values, either                      quick constructors for what is made very often; what def and async def return
    chat, interrupt, events             what is said; where a run waits; what it shows
    session, models                     shared values; chat models, behind one protocol
    definition, history, outcome        a tree of agents; what each gets to see; how one has ended
    codec, codec_types, codec_values    bytes and back, for registered types only
    options, stores                     what is asked of one run only; what outlives a run, behind one protocol
    hooks, run_context, run_result      who looks on; what belongs to a run; what is left of it
    protocol, invocation, delivery      what the actors of a run send; an agent at work, as data; how they send
    stream, run_record                  events on their way; what is known of a run
    context, agent_actor                an agent's door to its run; an agent at work
    shape, image, journal               a tree that may have changed; a run as plain data; the same, step by step
    checkpoint                          what one is called, and what its bytes say
    leases, vault                       who works on what; a store, as runs use it
    segments, keeping                   a long history, in pieces; what is kept of one run
    session_policy, session_log, turn   how much of a session a model is given; what it holds; one turn of it
    resuming, recovering, opening       answers to an interrupt; runs that nobody has finished; how a run is opened
    ledger, stage, stopping             what a run has written down; who plays in it; how it is ended before its end
    run_supervisor, consuming, run      the single writer; one iteration over events; a run from outside
    conversation, runner                a session from outside; the front door

It knows no agent, and never imports `understudy.actors`.
"""

from .actor import Actor, ThreadActor
from .chat import AudioPart, FilePart, ImagePart, Message, MessageDelta, Part, Role, TextPart, ToolCall, ToolCallDelta, Usage
from .clock import Clock
from .codec import register_type
from .context import AgentContext, ResumeInfo
from .conversation import Session
from .definition import AgentInput
from .envelope import MailboxSettings
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
    SessionBusy,
    StoreError,
    SystemDraining,
    ToolError,
    TransferError,
    UnderstudyError,
    UsageError,
)
from .events import Action, AgentEvent, BreakLoop, CustomAction, Exit, Interrupted, TransferToAgent
from .future import ActorFuture
from .history import HistoryEntry, HistoryPolicy, HistoryRewriter
from .hooks import AgentHooks, RunHooks
from .interrupt import AddressStep, InterruptContext
from .messages import Failed, Stopped, Terminated
from .models import (
    ChatModel,
    FailoverModel,
    LimitedModel,
    ModelRequest,
    ModelSettings,
    OpenAIChatModel,
    OpenAIResponsesModel,
    OutputSchema,
    RetryModel,
    ScriptedModel,
    ToolCalls,
    ToolSpec,
    model_from_env,
)
from .monitor import DeadLetter
from .options import ModelOptions, Options, ToolOptions
from .outcome import Outcome
from .ref import ActorRef
from .run import CancelHandle, Run
from .run_context import RunContext
from .run_result import RunResult, RunStatus
from .runner import Runner
from .session import SessionValues, add_session_value, add_session_values, current_session, get_session_value, get_session_values
from .session_policy import SessionPolicy, keep_last, summarize
from .stats import ActorNode, DrainReport, SystemStats
from .stores import JournalStore, MemoryStore, PostgresStore, RedisStore, SQLiteStore, Store
from .supervision import Backoff, Directive, Escalate, Restart, Resume, Stop, Supervision
from .system import ActorSystem

__all__ = [
    "Action",
    "Actor",
    "ActorDeadError",
    "ActorFailed",
    "ActorFuture",
    "ActorNode",
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
    "Escalate",
    "Exit",
    "Failed",
    "FailoverModel",
    "FilePart",
    "GuardrailTripped",
    "HandlerCancelled",
    "HandoffError",
    "HistoryEntry",
    "HistoryPolicy",
    "HistoryRewriter",
    "ImagePart",
    "InterruptContext",
    "Interrupted",
    "JournalStore",
    "LimitedModel",
    "MailboxFull",
    "MailboxSettings",
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
    "ToolCall",
    "ToolCallDelta",
    "ToolCalls",
    "ToolError",
    "ToolOptions",
    "ToolSpec",
    "TransferError",
    "TransferToAgent",
    "UnderstudyError",
    "Usage",
    "UsageError",
    "add_session_value",
    "add_session_values",
    "current_session",
    "get_session_value",
    "get_session_values",
    "keep_last",
    "model_from_env",
    "register_type",
    "summarize",
]
