"""The settings of a connection: those of an agent and of its surroundings, as one flat mapping.

The layers are merged and checked before anything is sent. The difference between the settings in
force and the wanted ones is computed here, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ....runtime.agent.run_context import RunContext
from ....runtime.errors import UsageError
from ....runtime.tasks import all_at_once, guarded
from ...handoffs.handoff import Handoff
from ...tools.tool import Tool
from ..agent import RealtimeAgent
from ..audio_formats import as_audio_format
from ..handoffs import as_realtime_handoff

__all__ = [
    "DEFAULT_MODEL_SETTINGS",
    "AgentSettings",
    "agent_settings",
    "difference",
    "flatten",
    "spec_of",
]

DEFAULT_MODEL_SETTINGS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "output_modalities": ("audio",),
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "input_audio_transcription": MappingProxyType({"model": "gpt-4o-mini-transcribe"}),
        "turn_detection": MappingProxyType({"type": "semantic_vad", "interrupt_response": True}),
    }
)

_NESTED: Final = MappingProxyType(
    {
        ("input", "format"): "input_audio_format",
        ("input", "noise_reduction"): "input_audio_noise_reduction",
        ("input", "transcription"): "input_audio_transcription",
        ("input", "turn_detection"): "turn_detection",
        ("output", "format"): "output_audio_format",
        ("output", "voice"): "voice",
        ("output", "speed"): "speed",
    }
)
_TOOLS: Final = ("tools", "handoffs")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings in force for one agent, and the tools that its model can call."""

    agent: RealtimeAgent
    flat: Mapping[str, Any]
    tools: Mapping[str, Any]
    handoffs: Mapping[str, Handoff]


def flatten(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert settings to the flat spelling. Nested settings override flat ones."""
    flat = {
        name: value for name, value in (given or {}).items() if name not in ("audio", "modalities")
    }
    if given and "modalities" in given and "output_modalities" not in given:
        flat["output_modalities"] = given["modalities"]
    audio = (given or {}).get("audio")
    for (side, key), name in _NESTED.items():
        part = (audio or {}).get(side) if isinstance(audio, Mapping) else None
        if (
            isinstance(part, Mapping)
            and key in part
            and (part[key] is not None or name in ("turn_detection", "input_audio_transcription"))
        ):
            flat[name] = part[key]
    for name in ("input_audio_format", "output_audio_format"):
        if flat.get(name) is not None:
            flat[name] = as_audio_format(flat[name])
        else:
            flat.pop(name, None)
    return flat


async def agent_settings(
    agent: RealtimeAgent,
    context: RunContext,
    layers: Sequence[Mapping[str, Any] | None],
    *,
    first: Mapping[str, Any] | None = None,
) -> AgentSettings:
    """Compute the settings of an agent: the layers, from low to high, then its own.

    `first` overrides the agent with which a session starts.
    """
    flat: dict[str, Any] = {}
    for layer in layers:
        flat.update(
            {
                name: value
                for name, value in flatten(layer).items()
                if name not in (*_TOOLS, "instructions")
            }
        )
    prompt = guarded(agent.get_system_prompt(context), f"the instructions of agent {agent.name!r}")
    found = guarded(agent.get_all_tools(context), f"the tools of agent {agent.name!r}")
    text, tools, handoffs = await asyncio.gather(
        prompt, found, _enabled(agent, context, agent.handoffs)
    )
    if text is not None:
        flat["instructions"] = text
    if agent.prompt is not None:
        flat["prompt"] = agent.prompt
    if agent.voice is not None:
        flat["voice"] = agent.voice
    own = flatten(first)
    flat.update({name: own[name] for name in ("instructions", "prompt") if name in own})
    if "tools" in own:
        tools = await agent.enabled_tools(own["tools"], context)
    if "handoffs" in own:
        handoffs = await _enabled(agent, context, own["handoffs"])
    by_name = _named(agent.name, tools, handoffs)
    _check(flat, agent.name)
    flat["tools"], flat["handoffs"] = tools, handoffs
    return AgentSettings(
        agent,
        flat,
        {name: one for name, one in by_name.items() if not isinstance(one, Handoff)},
        {name: one for name, one in by_name.items() if isinstance(one, Handoff)},
    )


async def _enabled(
    agent: RealtimeAgent, context: RunContext, handoffs: Sequence[Any]
) -> list[Handoff]:
    found = [as_realtime_handoff(one, agent.name) for one in handoffs]
    states = await all_at_once(
        (one.enabled(context, agent) for one in found),
        f"is_enabled of a handoff of agent {agent.name!r}",
    )
    return [one for one, state in zip(found, states, strict=True) if state]


def _named(whose: str, tools: Sequence[Any], handoffs: Sequence[Handoff]) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for one in tools:
        if not isinstance(one, Tool) and not hasattr(one, "on_invoke_tool"):
            msg = (
                f"agent {whose!r}: tools of a realtime agent must be function tools, got "
                f"{one!r}. Pass @tool functions."
            )
            raise UsageError(msg, agent=whose)
    for one in (*tools, *handoffs):
        name = one.tool_name if isinstance(one, Handoff) else one.name
        if name in by_name:
            kinds = " and ".join(
                "a handoff" if isinstance(each, Handoff) else "a tool"
                for each in (by_name[name], one)
            )
            msg = (
                f"agent {whose!r} has {kinds} named {name!r}. The model cannot tell them apart. "
                "Rename one."
            )
            raise UsageError(msg, agent=whose)
        by_name[name] = one
    return by_name


def _check(flat: Mapping[str, Any], whose: str) -> None:
    modalities = flat.get("output_modalities")
    if modalities is not None and sorted(modalities) not in (["audio"], ["text"]):
        msg = (
            f"agent {whose!r}: output_modalities must be ['audio'] (which includes a "
            f"transcript) or ['text'], got {list(modalities)!r}."
        )
        raise UsageError(msg, agent=whose)
    if isinstance(turn := flat.get("turn_detection"), Mapping) is False and turn is not None:
        msg = (
            f"agent {whose!r}: turn_detection must be a mapping such as {{'type': "
            f"'server_vad'}}, or None for turns that the program ends, got {turn!r}."
        )
        raise UsageError(msg, agent=whose)


def spec_of(one: Any) -> dict[str, Any]:
    """Return the description of a tool or a handoff for a model."""
    if isinstance(one, Handoff | Tool):
        spec = one.spec
        return {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": dict(spec.parameters),
        }
    return {
        "type": "function",
        "name": one.name,
        "description": one.description,
        "parameters": dict(one.params_json_schema),
    }


def difference(in_force: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ.

    Tools and handoffs change together, as one list for the model.
    """
    changed = {
        name: value
        for name, value in wanted.items()
        if name not in _TOOLS and in_force.get(name, _NONE) != value
    }
    if "instructions" in in_force and "instructions" not in wanted:
        changed["instructions"] = ""
    if "prompt" in in_force and "prompt" not in wanted:
        changed["prompt"] = None
    if _specs(in_force) != _specs(wanted):
        changed.update({name: wanted.get(name, ()) for name in _TOOLS})
    return changed


def _specs(flat: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [spec_of(one) for name in _TOOLS for one in flat.get(name, ())]


_NONE: Final = object()
