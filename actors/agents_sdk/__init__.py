"""OpenAI's Agents SDK, run by understudy: a program of the SDK changes the name of the import, and nothing else.

    from understudy.actors.agents_sdk import Agent, Runner, function_tool

Whatever the SDK has and this has not is refused by name; docs/from-agents-sdk.md has the list. Beyond the SDK, `Runner.run` takes `store=`, `durability=` and
`run_id=`: the run is kept, and goes on after a crash. The names are found in modules of the SDK's names, which are loaded when a name is first used.

Owns the SDK's interface. Its files, each importing only from those above it (`agent_as_tool`, `play` and `run_state` close the circle where they are used):

    version             which version of the SDK this is
    logger              the SDK's logger
    exceptions          its exceptions
    missing             what is refused
    coercion            settings that are given as dicts
    strict_schema       strict JSON schemas
    usage               what model calls cost
    tool_names          names of tools, with their namespaces
    invocation          what makes two calls the same
    run_context         the context of a run, and decisions about calls
    tool_context        the context of one call
    tracing             traces and spans
    docstrings          what docstrings say
    function_schema     schemas of functions
    agent_output        the form of a final output
    guardrail           guardrails of inputs and outputs
    tool_guardrails     guardrails of tools
    lifecycle           hooks
    retry               whether a call of a model is made again
    model_settings      settings of models
    items               what a run produces, and its way to understudy's messages
    stream_events       events of a run
    prompts             prompts that are kept at OpenAI
    computer, editor    what tools use that programs bring
    tool                tools
    decorators          decorators for tools
    handoffs            handoffs
    memory              sessions
    models              models
    agent               `Agent`
    run_config          what holds for a run
    run_error_handlers  what is put in the place of an error
    run_state           runs that go on later
    play                an agent's turns
    result              results
    running             a run as one of the runtime's
    run                 `Runner`
    agent_tool_input    what an agent that is a tool is given
    agent_tool          agents as tools
    apply_diff          diffs as models write them
    missing_names       names behind which there is nothing
    repl                `run_demo_loop`
    extensions          filters, prompts, graphs
    testing             models for tests
    realtime            agents that speak: the package `understudy.actors.realtime`
    sandbox             sandboxes: names alone
    voice               an error that says that it is missing
    mcp                 MCP servers: names alone

It must never have a loop of its own: a run of the SDK is one of the runtime's runs.
"""

from importlib import import_module as _import_module
from types import MappingProxyType as _MappingProxyType
from typing import Any as _Any

_NAMES = {
    "agent": "Agent AgentBase AgentToolStreamEvent StopAtTools ToolsToFinalOutputFunction ToolsToFinalOutputResult",
    "agent_output": "AgentOutputSchema AgentOutputSchemaBase",
    "apply_diff": "apply_diff",
    "computer": "AsyncComputer Button Computer Environment",
    "editor": "ApplyPatchEditor ApplyPatchOperation ApplyPatchResult",
    "exceptions": (
        "AgentsException InputGuardrailTripwireTriggered MCPToolCancellationError MaxTurnsExceeded ModelBehaviorError ModelRefusalError "
        "ModelTimeoutError OutputGuardrailTripwireTriggered RunErrorDetails ToolInputGuardrailTripwireTriggered "
        "ToolOutputGuardrailTripwireTriggered ToolTimeoutError UserError"
    ),
    "extensions.handoff_filters": "remove_all_tools",
    "extensions.handoff_prompt": "RECOMMENDED_PROMPT_PREFIX prompt_with_handoff_instructions",
    "guardrail": ("GuardrailFunctionOutput InputGuardrail InputGuardrailResult OutputGuardrail OutputGuardrailResult input_guardrail output_guardrail"),
    "handoffs": "Handoff HandoffInputData HandoffInputFilter OnHandoffWithInput OnHandoffWithoutInput THandoffInput handoff",
    "handoffs.history": (
        "default_handoff_history_mapper get_conversation_history_wrappers nest_handoff_history reset_conversation_history_wrappers "
        "set_conversation_history_wrappers"
    ),
    "items": (
        "CompactionItem HandoffCallItem HandoffOutputItem InputItem ItemHelpers MCPApprovalRequestItem MCPApprovalResponseItem MCPListToolsItem "
        "MessageOutputItem ModelResponse ReasoningItem RunItem RunItemBase TResponse TResponseInputItem TResponseOutputItem TResponseStreamEvent "
        "ToolApprovalItem ToolCallItem ToolCallOutputItem ToolSearchCallItem ToolSearchOutputItem"
    ),
    "lifecycle": "AgentHooks RunHooks",
    "logger": "enable_verbose_stdout_logging",
    "memory": (
        "OpenAIConversationsSession OpenAIResponsesCompactionArgs OpenAIResponsesCompactionAwareSession OpenAIResponsesCompactionSession "
        "SQLiteSession Session SessionABC SessionSettings StoreSession is_openai_responses_compaction_aware_session"
    ),
    "missing_names": "OpenAIResponsesWebSocketOptions ResponsesWebSocketSession responses_websocket_session",
    "model_settings": "ModelSettings",
    "models.interface": "Model ModelProvider ModelTracing",
    "models.multi_provider": "MultiProvider",
    "models.openai_agent_registration": "OpenAIAgentRegistrationConfig",
    "models.openai_chatcompletions": "OpenAIChatCompletionsModel",
    "models.openai_provider": "OpenAIProvider",
    "models.openai_responses": "OpenAIResponsesModel OpenAIResponsesWSModel",
    "models.settings": (
        "set_default_openai_agent_registration set_default_openai_api set_default_openai_client set_default_openai_harness "
        "set_default_openai_key set_default_openai_responses_transport"
    ),
    "prompts": "DynamicPromptFunction GenerateDynamicPromptData Prompt",
    "realtime": "RealtimeAgent RealtimeRunner RealtimeSession realtime_handoff",
    "repl": "run_demo_loop",
    "result": "AgentToolInvocation RunResult RunResultStreaming",
    "retry": (
        "ModelRetryAdvice ModelRetryAdviceRequest ModelRetryBackoffSettings ModelRetryNormalizedError ModelRetrySettings RetryDecision "
        "RetryPolicy RetryPolicyContext retry_policies"
    ),
    "run": "Runner run",
    "run_config": (
        "ReasoningItemIdPolicy RunConfig ToolErrorFormatter ToolErrorFormatterArgs ToolExecutionConfig ToolNameCollisionPolicy ToolNotFoundBehavior"
    ),
    "run_context": "AgentHookContext RunContextWrapper TContext",
    "run_error_handlers": "RunErrorData RunErrorHandler RunErrorHandlerInput RunErrorHandlerResult RunErrorHandlers",
    "run_state": "RunState",
    "running": "set_default_store",
    "stream_events": "AgentUpdatedStreamEvent RawResponsesStreamEvent RunItemStreamEvent StreamEvent",
    "tool": (
        "ApplyPatchTool ApplyPatchToolCustomDataContext ApplyPatchToolCustomDataExtractor CodeInterpreterTool ComputerProvider ComputerTool "
        "ComputerToolCustomDataContext ComputerToolCustomDataExtractor CustomTool CustomToolCustomDataContext CustomToolCustomDataExtractor "
        "FileSearchTool FunctionTool FunctionToolCustomDataContext FunctionToolCustomDataExtractor FunctionToolResult HostedMCPTool "
        "ImageGenerationTool LocalShellCommandRequest LocalShellExecutor LocalShellTool MCPToolApprovalFunction MCPToolApprovalFunctionResult "
        "MCPToolApprovalRequest ProgrammaticToolCallingTool ShellActionRequest ShellCallData ShellCallOutcome ShellCommandOutput "
        "ShellCommandRequest ShellExecutor ShellResult ShellTool ShellToolContainerAutoEnvironment ShellToolContainerNetworkPolicy "
        "ShellToolContainerNetworkPolicyAllowlist ShellToolContainerNetworkPolicyDisabled ShellToolContainerNetworkPolicyDomainSecret "
        "ShellToolContainerReferenceEnvironment ShellToolContainerSkill ShellToolEnvironment ShellToolHostedEnvironment ShellToolInlineSkill "
        "ShellToolInlineSkillSource ShellToolLocalEnvironment ShellToolLocalSkill ShellToolSkillReference Tool ToolCaller ToolOrigin "
        "ToolOriginType ToolOutputFileContent ToolOutputFileContentDict ToolOutputImage ToolOutputImageDict ToolOutputText ToolOutputTextDict "
        "ToolSearchTool WebSearchTool default_tool_error_function dispose_resolved_computers function_tool resolve_computer tool_namespace"
    ),
    "tool_guardrails": (
        "ToolGuardrailFunctionOutput ToolInputGuardrail ToolInputGuardrailData ToolInputGuardrailResult ToolOutputGuardrail "
        "ToolOutputGuardrailData ToolOutputGuardrailResult tool_input_guardrail tool_output_guardrail"
    ),
    "tracing": (
        "AgentSpanData CustomSpanData FunctionSpanData GenerationSpanData GuardrailSpanData HandoffSpanData MCPListToolsSpanData "
        "ResponseSpanData Span SpanData SpanError SpeechGroupSpanData SpeechSpanData TaskSpanData Trace TracingProcessor TranscriptionSpanData "
        "TurnSpanData add_trace_processor agent_span custom_span flush_traces function_span gen_span_id gen_trace_id generation_span "
        "get_current_span get_current_trace guardrail_span handoff_span mcp_tools_span response_span set_trace_processors set_trace_provider "
        "set_tracing_disabled set_tracing_export_api_key speech_group_span speech_span task_span trace transcription_span turn_span"
    ),
    "usage": "Usage",
    "version": "__version__",
}
_WHERE = _MappingProxyType({name: module for module, names in _NAMES.items() for name in names.split()})

__all__ = [*sorted((name for name in _WHERE if name != "__version__"), key=lambda name: (not name.isupper(), not name[0].isupper(), name))]  # noqa: PLE0604 -- they are texts


def __getattr__(name: str) -> _Any:
    module = _WHERE.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    home = _import_module(f".{module}", __name__)
    found = globals()[name] = home if name == module else getattr(home, name)  # `run` is the SDK's module, and can be called
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
