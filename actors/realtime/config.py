"""The settings of sessions, models and agents, as typed dicts, and the check for misspelt names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from ...runtime.backoff import Backoff
from ...runtime.errors import UsageError
from ...runtime.option_names import meant

__all__ = [
    "RealtimeAudioConfig",
    "RealtimeAudioFormat",
    "RealtimeAudioInputConfig",
    "RealtimeAudioOutputConfig",
    "RealtimeClientMessage",
    "RealtimeCustomVoice",
    "RealtimeGuardrailsSettings",
    "RealtimeInputAudioNoiseReductionConfig",
    "RealtimeInputAudioTranscriptionConfig",
    "RealtimeLimits",
    "RealtimeModelName",
    "RealtimeModelTracingConfig",
    "RealtimeReasoningConfig",
    "RealtimeReasoningEffort",
    "RealtimeRunConfig",
    "RealtimeSessionModelSettings",
    "RealtimeToolExecutionConfig",
    "RealtimeTurnDetectionConfig",
    "RealtimeUserInput",
    "RealtimeUserInputImage",
    "RealtimeUserInputMessage",
    "RealtimeUserInputText",
    "RealtimeVoice",
    "Reconnect",
    "checked_config",
]

RealtimeModelName: TypeAlias = str
"""For example `gpt-realtime-2.1`."""
RealtimeAudioFormat: TypeAlias = str | Mapping[str, Any] | object
"""`pcm16`, `g711_ulaw` or `g711_alaw`, in any spelling that `audio_formats` accepts."""
RealtimeReasoningEffort: TypeAlias = Literal["minimal", "low", "medium", "high", "xhigh"] | str  # noqa: PYI051 -- documents the values


class RealtimeCustomVoice(TypedDict):
    """A custom voice."""

    id: str


RealtimeVoice: TypeAlias = str | RealtimeCustomVoice | Mapping[str, Any]


class RealtimeClientMessage(TypedDict):
    """A message of the protocol."""

    type: str
    other_data: NotRequired[dict[str, Any]]


class RealtimeInputAudioTranscriptionConfig(TypedDict, total=False):
    """The transcription of the user's speech."""

    language: str
    model: str
    prompt: str
    keywords: list[str]
    languages: list[str]
    delay: Literal["minimal", "low", "medium", "high", "xhigh"]


class RealtimeInputAudioNoiseReductionConfig(TypedDict, total=False):
    """The kind of microphone."""

    type: Literal["near_field", "far_field"]


class RealtimeTurnDetectionConfig(TypedDict, total=False):
    """The detection of the end of the user's turn.

    With `interrupt_response=False`, the user's speech interrupts nothing.
    """

    type: Literal["semantic_vad", "server_vad"]
    create_response: bool
    eagerness: Literal["auto", "low", "medium", "high"]
    interrupt_response: bool
    prefix_padding_ms: int
    silence_duration_ms: int
    threshold: float
    idle_timeout_ms: int
    model_version: str


class RealtimeAudioInputConfig(TypedDict, total=False):
    """The audio input."""

    format: RealtimeAudioFormat
    noise_reduction: RealtimeInputAudioNoiseReductionConfig | None
    transcription: RealtimeInputAudioTranscriptionConfig | None
    turn_detection: RealtimeTurnDetectionConfig | None


class RealtimeAudioOutputConfig(TypedDict, total=False):
    """The audio output."""

    format: RealtimeAudioFormat
    voice: RealtimeVoice
    speed: float


class RealtimeAudioConfig(TypedDict, total=False):
    """The nested spelling of the audio settings."""

    input: RealtimeAudioInputConfig | None
    output: RealtimeAudioOutputConfig | None


class RealtimeReasoningConfig(TypedDict, total=False):
    """The amount of reasoning."""

    effort: RealtimeReasoningEffort


class RealtimeModelTracingConfig(TypedDict, total=False):
    """The names of the server's own traces."""

    workflow_name: str
    group_id: str
    metadata: dict[str, Any]


class RealtimeSessionModelSettings(TypedDict, total=False):
    """The settings of a model, in flat or nested spelling."""

    model_name: RealtimeModelName
    instructions: str
    prompt: Any
    modalities: list[Literal["text", "audio"]]
    output_modalities: list[Literal["text", "audio"]]
    audio: RealtimeAudioConfig
    voice: RealtimeVoice
    speed: float
    max_output_tokens: int | Literal["inf"]
    input_audio_format: RealtimeAudioFormat
    output_audio_format: RealtimeAudioFormat
    input_audio_transcription: RealtimeInputAudioTranscriptionConfig | None
    input_audio_noise_reduction: RealtimeInputAudioNoiseReductionConfig | None
    turn_detection: RealtimeTurnDetectionConfig | None
    tool_choice: Any
    parallel_tool_calls: bool
    reasoning: RealtimeReasoningConfig
    tools: Sequence[Any]
    handoffs: Sequence[Any]
    tracing: RealtimeModelTracingConfig | Literal["auto"] | None


class RealtimeGuardrailsSettings(TypedDict, total=False):
    """The settings of guardrails."""

    debounce_text_length: int
    feedback: str | Callable[[Sequence[str]], str] | None
    """The message to the model after a trip. None: no message and no response."""
    on_error: Literal["skip", "trip"]
    hold_audio: bool


class RealtimeToolExecutionConfig(TypedDict, total=False):
    """The settings of tool execution."""

    pre_approval_tool_input_guardrails: bool


@dataclass(frozen=True, slots=True)
class Reconnect:
    """The rules for reconnecting a lost connection."""

    attempts: int = 5
    within: float = 60.0
    backoff: Backoff = field(default_factory=lambda: Backoff(initial=0.25, maximum=8.0))
    max_age: float | None = 3300.0
    """Seconds after which the next pause is used to reconnect.

    The server would close an older connection itself.
    """

    def __post_init__(self) -> None:
        if self.attempts < 1 or not self.within > 0:
            msg = (
                "Reconnect: attempts must be 1 or more and within a number of seconds "
                f"above 0, got attempts={self.attempts!r}, within={self.within!r}. Pass "
                "reconnect=None to never reconnect."
            )
            raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class RealtimeLimits:
    """Limits after which a session closes at its next pause."""

    max_duration: float | None = None
    idle_timeout: float | None = None
    max_responses: int | None = None
    max_tokens: int | None = None


class RealtimeRunConfig(TypedDict, total=False):
    """The settings of one Runner's sessions. Those below the line are not in the Agents SDK."""

    model_settings: RealtimeSessionModelSettings
    output_guardrails: list[Any]
    guardrails_settings: RealtimeGuardrailsSettings
    tracing_disabled: bool
    async_tool_calls: bool
    tool_execution: RealtimeToolExecutionConfig
    tool_error_formatter: Callable[[Any], Any]
    # ---
    input_guardrails: list[Any]
    voice_change: Literal["keep", "reconnect"]
    raw_events: Literal["none", "model", "wire"]
    event_buffer: int
    max_output_audio_ms: int
    max_input_audio_ms: int
    input_overflow: Literal["block", "drop_oldest"]
    history_updates: Literal["live", "items"]
    close_timeout: float
    settings_timeout: float
    max_parallel_tools: int
    max_tool_rounds: int
    max_handoffs: int
    multiple_handoffs_message: str
    on_tool_error: Literal["report", "raise"]
    background_tools: Collection[str]
    tool_wait: float
    tool_interrupt: Literal["keep", "cancel"] | Mapping[str, Literal["keep", "cancel"]]
    approval_timeout: float | None
    tools_on_resume: Literal["rerun", "report"]
    reconnect: Reconnect | None
    replay: Any
    limits: RealtimeLimits


class RealtimeUserInputText(TypedDict):
    """A text in a message."""

    type: Literal["input_text"]
    text: str


class RealtimeUserInputImage(TypedDict, total=False):
    """An image in a message."""

    type: Literal["input_image"]
    image_url: str
    detail: NotRequired[str]


class RealtimeUserInputMessage(TypedDict):
    """A user message, in parts."""

    type: Literal["message"]
    role: Literal["user"]
    content: list[RealtimeUserInputText | RealtimeUserInputImage]


RealtimeUserInput: TypeAlias = str | RealtimeUserInputMessage

ApiKey: TypeAlias = str | Callable[[], str | Awaitable[str]]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "voice_change": ("keep", "reconnect"),
    "raw_events": ("none", "model", "wire"),
    "input_overflow": ("block", "drop_oldest"),
    "history_updates": ("live", "items"),
    "on_tool_error": ("report", "raise"),
    "tools_on_resume": ("rerun", "report"),
}
_POSITIVE = (
    "event_buffer",
    "max_output_audio_ms",
    "max_input_audio_ms",
    "close_timeout",
    "settings_timeout",
    "max_parallel_tools",
    "tool_wait",
)


def checked_config(config: Mapping[str, Any] | None) -> RealtimeRunConfig:
    """Return the config. Raise if a key or value is invalid."""
    given: dict[str, Any] = dict(config or {})
    _check_names("config", given, RealtimeRunConfig)
    _check_names(
        "config['guardrails_settings']",
        given.get("guardrails_settings") or {},
        RealtimeGuardrailsSettings,
    )
    _check_names(
        "config['model_settings']", given.get("model_settings") or {}, RealtimeSessionModelSettings
    )
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            msg = (
                f"config[{name!r}] must be one of {', '.join(map(repr, choices))}, got "
                f"{given[name]!r}."
            )
            raise UsageError(msg)
    for name in _POSITIVE:
        if name in given and not given[name] > 0:
            msg = f"config[{name!r}] must be a number above 0, got {given[name]!r}."
            raise UsageError(msg)
    if not isinstance(given.get("reconnect"), Reconnect | None):
        msg = f"config['reconnect'] must be Reconnect(...), or None, got {given['reconnect']!r}."
        raise UsageError(msg)
    if not isinstance(given.get("limits", RealtimeLimits()), RealtimeLimits):
        msg = f"config['limits'] must be RealtimeLimits(...), got {given['limits']!r}."
        raise UsageError(msg)
    return given  # type: ignore[return-value]  # checked above


def _check_names(where: str, given: Mapping[str, Any], kind: type) -> None:
    for name in given:
        if name not in kind.__annotations__:
            msg = (
                f"{where} has the unknown key {name!r}. {meant(name, sorted(kind.__annotations__))}"
            )
            raise UsageError(msg)
