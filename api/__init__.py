"""Agents as actors: the names that most programs need, in one import.

    from offbook import ChatModelAgent, Runner, SQLiteStore, tool

The names come from `offbook.actors`, the parts of agents, and `offbook.runtime`, which runs them.
Each is imported at first use, so that `import offbook` alone is cheap.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .actors import (
        Agent,
        Approve,
        ChatModelAgent,
        Deny,
        DeterministicTransfer,
        GuardrailFunctionOutput,
        Handoff,
        Loop,
        McpTools,
        Middleware,
        Parallel,
        PlanExecute,
        RemoteAgent,
        Sequential,
        Supervisor,
        Tool,
        ToolContext,
        exit_tool,
        handoff,
        input_guardrail,
        make_executor,
        make_planner,
        make_replanner,
        output_guardrail,
        redact,
        set_sub_agents,
        tool,
    )
    from .runtime import (
        Actor,
        ActorRef,
        ActorSystem,
        AgentContext,
        AgentEvent,
        AgentHooks,
        AgentInput,
        BreakLoop,
        ChatModel,
        Exit,
        FailoverModel,
        GuardrailTripped,
        InterruptContext,
        MemoryStore,
        Message,
        ModelError,
        ModelRequest,
        OffbookError,
        OpenAIChatModel,
        OpenAIResponsesModel,
        PostgresStore,
        RedisStore,
        Restart,
        ResumeError,
        RetryModel,
        Run,
        RunCancelled,
        RunHooks,
        Runner,
        RunResult,
        RunStatus,
        ScriptedModel,
        Session,
        SessionPolicy,
        Shutdown,
        SQLiteStore,
        ThreadActor,
        ToolCall,
        ToolCalls,
        Usage,
        UsageError,
        encrypted,
        event_json,
        graph,
        keep_last,
        model_from_env,
        register_type,
        service,
        sse,
        summarize,
        timeline,
    )

__all__ = [
    "Actor",
    "ActorRef",
    "ActorSystem",
    "Agent",
    "AgentContext",
    "AgentEvent",
    "AgentHooks",
    "AgentInput",
    "Approve",
    "BreakLoop",
    "ChatModel",
    "ChatModelAgent",
    "Deny",
    "DeterministicTransfer",
    "Exit",
    "FailoverModel",
    "GuardrailFunctionOutput",
    "GuardrailTripped",
    "Handoff",
    "InterruptContext",
    "Loop",
    "McpTools",
    "MemoryStore",
    "Message",
    "Middleware",
    "ModelError",
    "ModelRequest",
    "OffbookError",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "Parallel",
    "PlanExecute",
    "PostgresStore",
    "RedisStore",
    "RemoteAgent",
    "Restart",
    "ResumeError",
    "RetryModel",
    "Run",
    "RunCancelled",
    "RunHooks",
    "RunResult",
    "RunStatus",
    "Runner",
    "SQLiteStore",
    "ScriptedModel",
    "Sequential",
    "Session",
    "SessionPolicy",
    "Shutdown",
    "Supervisor",
    "ThreadActor",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "ToolContext",
    "Usage",
    "UsageError",
    "__version__",
    "encrypted",
    "event_json",
    "exit_tool",
    "graph",
    "handoff",
    "input_guardrail",
    "keep_last",
    "make_executor",
    "make_planner",
    "make_replanner",
    "model_from_env",
    "output_guardrail",
    "redact",
    "register_type",
    "service",
    "set_sub_agents",
    "sse",
    "summarize",
    "timeline",
    "tool",
]

__version__: str

if not _typing.TYPE_CHECKING:  # a type checker would accept any name in this module

    def __getattr__(name: str) -> object:
        if name not in __all__:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from . import runtime  # noqa: PLC0415 -- `offbook.runtime` must be importable without the agents

        if name == "__version__" or name in runtime.__all__:
            value = getattr(runtime, name)
        else:
            from . import actors  # noqa: PLC0415 -- as above

            value = getattr(actors, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
