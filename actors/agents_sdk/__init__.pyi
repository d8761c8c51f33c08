"""The names of this room, for type checkers."""

from .agent import (
    Agent as Agent,
    AgentBase as AgentBase,
    AgentToolStreamEvent as AgentToolStreamEvent,
    StopAtTools as StopAtTools,
    ToolsToFinalOutputFunction as ToolsToFinalOutputFunction,
    ToolsToFinalOutputResult as ToolsToFinalOutputResult,
)
from .agent_output import (
    AgentOutputSchema as AgentOutputSchema,
    AgentOutputSchemaBase as AgentOutputSchemaBase,
)
from .apply_diff import (
    apply_diff as apply_diff,
)
from .computer import (
    AsyncComputer as AsyncComputer,
    Button as Button,
    Computer as Computer,
    Environment as Environment,
)
from .editor import (
    ApplyPatchEditor as ApplyPatchEditor,
    ApplyPatchOperation as ApplyPatchOperation,
    ApplyPatchResult as ApplyPatchResult,
)
from .exceptions import (
    AgentsException as AgentsException,
    InputGuardrailTripwireTriggered as InputGuardrailTripwireTriggered,
    MCPToolCancellationError as MCPToolCancellationError,
    MaxTurnsExceeded as MaxTurnsExceeded,
    ModelBehaviorError as ModelBehaviorError,
    ModelRefusalError as ModelRefusalError,
    ModelTimeoutError as ModelTimeoutError,
    OutputGuardrailTripwireTriggered as OutputGuardrailTripwireTriggered,
    RunErrorDetails as RunErrorDetails,
    ToolInputGuardrailTripwireTriggered as ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered as ToolOutputGuardrailTripwireTriggered,
    ToolTimeoutError as ToolTimeoutError,
    UserError as UserError,
)
from .extensions.handoff_filters import (
    remove_all_tools as remove_all_tools,
)
from .extensions.handoff_prompt import (
    RECOMMENDED_PROMPT_PREFIX as RECOMMENDED_PROMPT_PREFIX,
    prompt_with_handoff_instructions as prompt_with_handoff_instructions,
)
from .guardrail import (
    GuardrailFunctionOutput as GuardrailFunctionOutput,
    InputGuardrail as InputGuardrail,
    InputGuardrailResult as InputGuardrailResult,
    OutputGuardrail as OutputGuardrail,
    OutputGuardrailResult as OutputGuardrailResult,
    input_guardrail as input_guardrail,
    output_guardrail as output_guardrail,
)
from .handoffs import (
    Handoff as Handoff,
    HandoffInputData as HandoffInputData,
    HandoffInputFilter as HandoffInputFilter,
    OnHandoffWithInput as OnHandoffWithInput,
    OnHandoffWithoutInput as OnHandoffWithoutInput,
    THandoffInput as THandoffInput,
    handoff as handoff,
)
from .handoffs.history import (
    default_handoff_history_mapper as default_handoff_history_mapper,
    get_conversation_history_wrappers as get_conversation_history_wrappers,
    nest_handoff_history as nest_handoff_history,
    reset_conversation_history_wrappers as reset_conversation_history_wrappers,
    set_conversation_history_wrappers as set_conversation_history_wrappers,
)
from .items import (
    CompactionItem as CompactionItem,
    HandoffCallItem as HandoffCallItem,
    HandoffOutputItem as HandoffOutputItem,
    InputItem as InputItem,
    ItemHelpers as ItemHelpers,
    MCPApprovalRequestItem as MCPApprovalRequestItem,
    MCPApprovalResponseItem as MCPApprovalResponseItem,
    MCPListToolsItem as MCPListToolsItem,
    MessageOutputItem as MessageOutputItem,
    ModelResponse as ModelResponse,
    ReasoningItem as ReasoningItem,
    RunItem as RunItem,
    RunItemBase as RunItemBase,
    TResponse as TResponse,
    TResponseInputItem as TResponseInputItem,
    TResponseOutputItem as TResponseOutputItem,
    TResponseStreamEvent as TResponseStreamEvent,
    ToolApprovalItem as ToolApprovalItem,
    ToolCallItem as ToolCallItem,
    ToolCallOutputItem as ToolCallOutputItem,
    ToolSearchCallItem as ToolSearchCallItem,
    ToolSearchOutputItem as ToolSearchOutputItem,
)
from .lifecycle import (
    AgentHooks as AgentHooks,
    RunHooks as RunHooks,
)
from .logger import (
    enable_verbose_stdout_logging as enable_verbose_stdout_logging,
)
from .memory import (
    OpenAIConversationsSession as OpenAIConversationsSession,
    OpenAIResponsesCompactionArgs as OpenAIResponsesCompactionArgs,
    OpenAIResponsesCompactionAwareSession as OpenAIResponsesCompactionAwareSession,
    OpenAIResponsesCompactionSession as OpenAIResponsesCompactionSession,
    SQLiteSession as SQLiteSession,
    Session as Session,
    SessionABC as SessionABC,
    SessionSettings as SessionSettings,
    StoreSession as StoreSession,
    is_openai_responses_compaction_aware_session as is_openai_responses_compaction_aware_session,
)
from .missing_names import (
    OpenAIResponsesWebSocketOptions as OpenAIResponsesWebSocketOptions,
    ResponsesWebSocketSession as ResponsesWebSocketSession,
    responses_websocket_session as responses_websocket_session,
)
from .model_settings import (
    ModelSettings as ModelSettings,
)
from .models.interface import (
    Model as Model,
    ModelProvider as ModelProvider,
    ModelTracing as ModelTracing,
)
from .models.multi_provider import (
    MultiProvider as MultiProvider,
)
from .models.openai_agent_registration import (
    OpenAIAgentRegistrationConfig as OpenAIAgentRegistrationConfig,
)
from .models.openai_chatcompletions import (
    OpenAIChatCompletionsModel as OpenAIChatCompletionsModel,
)
from .models.openai_provider import (
    OpenAIProvider as OpenAIProvider,
)
from .models.openai_responses import (
    OpenAIResponsesModel as OpenAIResponsesModel,
    OpenAIResponsesWSModel as OpenAIResponsesWSModel,
)
from .models.settings import (
    set_default_openai_agent_registration as set_default_openai_agent_registration,
    set_default_openai_api as set_default_openai_api,
    set_default_openai_client as set_default_openai_client,
    set_default_openai_harness as set_default_openai_harness,
    set_default_openai_key as set_default_openai_key,
    set_default_openai_responses_transport as set_default_openai_responses_transport,
)
from .prompts import (
    DynamicPromptFunction as DynamicPromptFunction,
    GenerateDynamicPromptData as GenerateDynamicPromptData,
    Prompt as Prompt,
)
from .repl import (
    run_demo_loop as run_demo_loop,
)
from .result import (
    AgentToolInvocation as AgentToolInvocation,
    RunResult as RunResult,
    RunResultStreaming as RunResultStreaming,
)
from .retry import (
    ModelRetryAdvice as ModelRetryAdvice,
    ModelRetryAdviceRequest as ModelRetryAdviceRequest,
    ModelRetryBackoffSettings as ModelRetryBackoffSettings,
    ModelRetryNormalizedError as ModelRetryNormalizedError,
    ModelRetrySettings as ModelRetrySettings,
    RetryDecision as RetryDecision,
    RetryPolicy as RetryPolicy,
    RetryPolicyContext as RetryPolicyContext,
    retry_policies as retry_policies,
)
from .run import (
    Runner as Runner,
    run as run,
    set_default_store as set_default_store,
)
from .run_config import (
    ReasoningItemIdPolicy as ReasoningItemIdPolicy,
    RunConfig as RunConfig,
    ToolErrorFormatter as ToolErrorFormatter,
    ToolErrorFormatterArgs as ToolErrorFormatterArgs,
    ToolExecutionConfig as ToolExecutionConfig,
    ToolNameCollisionPolicy as ToolNameCollisionPolicy,
    ToolNotFoundBehavior as ToolNotFoundBehavior,
)
from .run_context import (
    AgentHookContext as AgentHookContext,
    RunContextWrapper as RunContextWrapper,
    TContext as TContext,
)
from .run_error_handlers import (
    RunErrorData as RunErrorData,
    RunErrorHandler as RunErrorHandler,
    RunErrorHandlerInput as RunErrorHandlerInput,
    RunErrorHandlerResult as RunErrorHandlerResult,
    RunErrorHandlers as RunErrorHandlers,
)
from .run_state import (
    RunState as RunState,
)
from .stream_events import (
    AgentUpdatedStreamEvent as AgentUpdatedStreamEvent,
    RawResponsesStreamEvent as RawResponsesStreamEvent,
    RunItemStreamEvent as RunItemStreamEvent,
    StreamEvent as StreamEvent,
)
from .tool import (
    ApplyPatchTool as ApplyPatchTool,
    ApplyPatchToolCustomDataContext as ApplyPatchToolCustomDataContext,
    ApplyPatchToolCustomDataExtractor as ApplyPatchToolCustomDataExtractor,
    CodeInterpreterTool as CodeInterpreterTool,
    ComputerProvider as ComputerProvider,
    ComputerTool as ComputerTool,
    ComputerToolCustomDataContext as ComputerToolCustomDataContext,
    ComputerToolCustomDataExtractor as ComputerToolCustomDataExtractor,
    CustomTool as CustomTool,
    CustomToolCustomDataContext as CustomToolCustomDataContext,
    CustomToolCustomDataExtractor as CustomToolCustomDataExtractor,
    FileSearchTool as FileSearchTool,
    FunctionTool as FunctionTool,
    FunctionToolCustomDataContext as FunctionToolCustomDataContext,
    FunctionToolCustomDataExtractor as FunctionToolCustomDataExtractor,
    FunctionToolResult as FunctionToolResult,
    HostedMCPTool as HostedMCPTool,
    ImageGenerationTool as ImageGenerationTool,
    LocalShellCommandRequest as LocalShellCommandRequest,
    LocalShellExecutor as LocalShellExecutor,
    LocalShellTool as LocalShellTool,
    MCPToolApprovalFunction as MCPToolApprovalFunction,
    MCPToolApprovalFunctionResult as MCPToolApprovalFunctionResult,
    MCPToolApprovalRequest as MCPToolApprovalRequest,
    ProgrammaticToolCallingTool as ProgrammaticToolCallingTool,
    ShellActionRequest as ShellActionRequest,
    ShellCallData as ShellCallData,
    ShellCallOutcome as ShellCallOutcome,
    ShellCommandOutput as ShellCommandOutput,
    ShellCommandRequest as ShellCommandRequest,
    ShellExecutor as ShellExecutor,
    ShellResult as ShellResult,
    ShellTool as ShellTool,
    ShellToolContainerAutoEnvironment as ShellToolContainerAutoEnvironment,
    ShellToolContainerNetworkPolicy as ShellToolContainerNetworkPolicy,
    ShellToolContainerNetworkPolicyAllowlist as ShellToolContainerNetworkPolicyAllowlist,
    ShellToolContainerNetworkPolicyDisabled as ShellToolContainerNetworkPolicyDisabled,
    ShellToolContainerNetworkPolicyDomainSecret as ShellToolContainerNetworkPolicyDomainSecret,
    ShellToolContainerReferenceEnvironment as ShellToolContainerReferenceEnvironment,
    ShellToolContainerSkill as ShellToolContainerSkill,
    ShellToolEnvironment as ShellToolEnvironment,
    ShellToolHostedEnvironment as ShellToolHostedEnvironment,
    ShellToolInlineSkill as ShellToolInlineSkill,
    ShellToolInlineSkillSource as ShellToolInlineSkillSource,
    ShellToolLocalEnvironment as ShellToolLocalEnvironment,
    ShellToolLocalSkill as ShellToolLocalSkill,
    ShellToolSkillReference as ShellToolSkillReference,
    Tool as Tool,
    ToolCaller as ToolCaller,
    ToolOrigin as ToolOrigin,
    ToolOriginType as ToolOriginType,
    ToolOutputFileContent as ToolOutputFileContent,
    ToolOutputFileContentDict as ToolOutputFileContentDict,
    ToolOutputImage as ToolOutputImage,
    ToolOutputImageDict as ToolOutputImageDict,
    ToolOutputText as ToolOutputText,
    ToolOutputTextDict as ToolOutputTextDict,
    ToolSearchTool as ToolSearchTool,
    WebSearchTool as WebSearchTool,
    default_tool_error_function as default_tool_error_function,
    dispose_resolved_computers as dispose_resolved_computers,
    function_tool as function_tool,
    resolve_computer as resolve_computer,
    tool_namespace as tool_namespace,
)
from .tool_guardrails import (
    ToolGuardrailFunctionOutput as ToolGuardrailFunctionOutput,
    ToolInputGuardrail as ToolInputGuardrail,
    ToolInputGuardrailData as ToolInputGuardrailData,
    ToolInputGuardrailResult as ToolInputGuardrailResult,
    ToolOutputGuardrail as ToolOutputGuardrail,
    ToolOutputGuardrailData as ToolOutputGuardrailData,
    ToolOutputGuardrailResult as ToolOutputGuardrailResult,
    tool_input_guardrail as tool_input_guardrail,
    tool_output_guardrail as tool_output_guardrail,
)
from .tracing import (
    AgentSpanData as AgentSpanData,
    CustomSpanData as CustomSpanData,
    FunctionSpanData as FunctionSpanData,
    GenerationSpanData as GenerationSpanData,
    GuardrailSpanData as GuardrailSpanData,
    HandoffSpanData as HandoffSpanData,
    MCPListToolsSpanData as MCPListToolsSpanData,
    ResponseSpanData as ResponseSpanData,
    Span as Span,
    SpanData as SpanData,
    SpanError as SpanError,
    SpeechGroupSpanData as SpeechGroupSpanData,
    SpeechSpanData as SpeechSpanData,
    TaskSpanData as TaskSpanData,
    Trace as Trace,
    TracingProcessor as TracingProcessor,
    TranscriptionSpanData as TranscriptionSpanData,
    TurnSpanData as TurnSpanData,
    add_trace_processor as add_trace_processor,
    agent_span as agent_span,
    custom_span as custom_span,
    flush_traces as flush_traces,
    function_span as function_span,
    gen_span_id as gen_span_id,
    gen_trace_id as gen_trace_id,
    generation_span as generation_span,
    get_current_span as get_current_span,
    get_current_trace as get_current_trace,
    guardrail_span as guardrail_span,
    handoff_span as handoff_span,
    mcp_tools_span as mcp_tools_span,
    response_span as response_span,
    set_trace_processors as set_trace_processors,
    set_trace_provider as set_trace_provider,
    set_tracing_disabled as set_tracing_disabled,
    set_tracing_export_api_key as set_tracing_export_api_key,
    speech_group_span as speech_group_span,
    speech_span as speech_span,
    task_span as task_span,
    trace as trace,
    transcription_span as transcription_span,
    turn_span as turn_span,
)
from .usage import (
    Usage as Usage,
)
from .version import (
    __version__ as __version__,
)
