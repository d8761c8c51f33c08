"""How an agent introduces itself: what it is called, what it can do, and where and how it is reached.

Owns: `AgentCard`, a reading view of the card's JSON, which it keeps whole: what is not named here is not lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...codec.packing import register_type

__all__ = ["AgentCard", "AgentInterface", "AgentSkill"]


@register_type(name="a2a.AgentInterface")
@dataclass(frozen=True, slots=True)
class AgentInterface:
    """A door of the agent: its address, the transport spoken there (`JSONRPC`, `HTTP+JSON`, `GRPC`), and the version of the protocol."""

    url: str
    transport: str
    protocol_version: str = ""
    tenant: str = ""


@register_type(name="a2a.AgentSkill")
@dataclass(frozen=True, slots=True)
class AgentSkill:
    """Something that the agent can do."""

    id: str
    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@register_type(name="a2a.AgentCard")
@dataclass(frozen=True, slots=True)
class AgentCard:
    """An agent's card. `document` is the whole of it, as JSON; the other fields are read from there."""

    name: str
    description: str = ""
    version: str = ""
    interfaces: tuple[AgentInterface, ...] = ()
    skills: tuple[AgentSkill, ...] = ()
    streaming: bool = False
    push_notifications: bool = False
    extended_card: bool = False
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """The address of its first door; empty if it names none."""
        return self.interfaces[0].url if self.interfaces else ""
