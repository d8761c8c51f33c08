"""What a span says of its kind.

Owns: the fields of each kind, and what of them is exported. It must never say when something happened.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "AgentSpanData",
    "CustomSpanData",
    "FunctionSpanData",
    "GenerationSpanData",
    "GuardrailSpanData",
    "HandoffSpanData",
    "MCPListToolsSpanData",
    "ResponseSpanData",
    "SpanData",
    "SpeechGroupSpanData",
    "SpeechSpanData",
    "TaskSpanData",
    "TranscriptionSpanData",
    "TurnSpanData",
]


class SpanData:
    """What a span says of its kind: `type` names it, `export()` is what of it goes out."""

    kind: ClassVar[str] = "custom"
    shown: ClassVar[tuple[str, ...]] = ()

    @property
    def type(self) -> str:
        return self.kind

    def export(self) -> dict[str, Any]:
        return {"type": self.kind, **{name: getattr(self, name) for name in self.shown}}


class AgentSpanData(SpanData):
    """An agent at work."""

    kind = "agent"
    shown = ("name", "handoffs", "tools", "output_type")

    def __init__(
        self,
        name: str,
        handoffs: list[str] | None = None,
        tools: list[str] | None = None,
        output_type: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.handoffs, self.tools, self.output_type, self.metadata = name, handoffs, tools, output_type, metadata


class _OfTheRunner(SpanData):
    shown_inside: ClassVar[tuple[str, ...]] = ()

    def export(self) -> dict[str, Any]:
        data = {"sdk_span_type": self.kind, **{name: getattr(self, name) for name in self.shown_inside}}
        usage = getattr(self, "usage", None)
        return {"type": "custom", "name": self.kind, "data": data if usage is None else {**data, "usage": usage}}


class TaskSpanData(_OfTheRunner):
    """A whole run."""

    kind = "task"
    shown_inside = ("name",)

    def __init__(self, name: str, usage: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None) -> None:
        self.name, self.usage, self.metadata = name, usage, metadata


class TurnSpanData(_OfTheRunner):
    """One turn of a run."""

    kind = "turn"
    shown_inside = ("turn", "agent_name")

    def __init__(self, turn: int, agent_name: str, usage: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None) -> None:
        self.turn, self.agent_name, self.usage, self.metadata = turn, agent_name, usage, metadata


class FunctionSpanData(SpanData):
    """A call of a function."""

    kind = "function"

    def __init__(self, name: str, input: str | None = None, output: Any | None = None, mcp_data: dict[str, Any] | None = None) -> None:
        self.name, self.input, self.output, self.mcp_data = name, input, output, mcp_data

    def export(self) -> dict[str, Any]:
        output = None if self.output is None else str(self.output)
        return {"type": self.kind, "name": self.name, "input": self.input, "output": output, "mcp_data": self.mcp_data}


class GenerationSpanData(SpanData):
    """A call of a model."""

    kind = "generation"
    shown = ("input", "output", "model", "model_config", "usage")

    def __init__(self, input: Any = None, output: Any = None, model: str | None = None, model_config: Any = None, usage: dict[str, Any] | None = None) -> None:
        self.input, self.output, self.model, self.model_config, self.usage = input, output, model, model_config, usage


class ResponseSpanData(SpanData):
    """A call of the Responses API."""

    kind = "response"

    def __init__(self, response: Any = None, input: Any = None, usage: dict[str, Any] | None = None) -> None:
        self.response, self.input, self.usage = response, input, usage

    def export(self) -> dict[str, Any]:
        return {"type": self.kind, "response_id": None if self.response is None else self.response.id, "usage": self.usage}


class HandoffSpanData(SpanData):
    """A handoff."""

    kind = "handoff"
    shown = ("from_agent", "to_agent")

    def __init__(self, from_agent: str | None = None, to_agent: str | None = None) -> None:
        self.from_agent, self.to_agent = from_agent, to_agent


class CustomSpanData(SpanData):
    """Something of the program's own."""

    kind = "custom"
    shown = ("name", "data")

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name, self.data = name, data


class GuardrailSpanData(SpanData):
    """A guardrail at work."""

    kind = "guardrail"
    shown = ("name", "triggered")

    def __init__(self, name: str, triggered: bool = False) -> None:
        self.name, self.triggered = name, triggered


class TranscriptionSpanData(SpanData):
    """Speech that becomes text."""

    kind = "transcription"

    def __init__(
        self, input: str | None = None, input_format: str | None = "pcm", output: str | None = None, model: str | None = None, model_config: Any = None
    ) -> None:
        self.input, self.input_format, self.output, self.model, self.model_config = input, input_format, output, model, model_config

    def export(self) -> dict[str, Any]:
        heard = {"data": self.input or "", "format": self.input_format}
        return {"type": self.kind, "input": heard, "output": self.output, "model": self.model, "model_config": self.model_config}


class SpeechSpanData(SpanData):
    """Text that becomes speech."""

    kind = "speech"

    def __init__(
        self,
        input: str | None = None,
        output: str | None = None,
        output_format: str | None = "pcm",
        model: str | None = None,
        model_config: Any = None,
        first_content_at: str | None = None,
    ) -> None:
        self.input, self.output, self.output_format, self.model, self.model_config = input, output, output_format, model, model_config
        self.first_content_at = first_content_at

    def export(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "input": self.input,
            "output": {"data": self.output or "", "format": self.output_format},
            "model": self.model,
            "model_config": self.model_config,
            "first_content_at": self.first_content_at,
        }


class SpeechGroupSpanData(SpanData):
    """What is said in one go."""

    kind = "speech_group"
    shown = ("input",)

    def __init__(self, input: str | None = None) -> None:
        self.input = input


class MCPListToolsSpanData(SpanData):
    """An MCP server is asked for its tools."""

    kind = "mcp_tools"
    shown = ("server", "result")

    def __init__(self, server: str | None = None, result: list[str] | None = None) -> None:
        self.server, self.result = server, result
